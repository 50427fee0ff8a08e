//! Any payload, in every dialect: it decodes or fails, and what decodes is the same after another round.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sshoal_wire::{Dialect, KexDialect, Message, UserauthDialect};

const KEX: [KexDialect; 3] = [KexDialect::Ecdh, KexDialect::Dh, KexDialect::GroupExchange];
const USERAUTH: [UserauthDialect; 3] = [
    UserauthDialect::PublicKey,
    UserauthDialect::Password,
    UserauthDialect::KeyboardInteractive,
];

fuzz_target!(|payload: &[u8]| {
    for kex in KEX {
        for userauth in USERAUTH {
            round_trip(payload, Dialect { kex, userauth });
        }
    }
});

fn round_trip(payload: &[u8], dialect: Dialect) {
    let message = match Message::decode(payload, dialect) {
        Ok(message) => message,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    walk(&message);
    let mut encoded = Vec::new();
    message.encode(&mut encoded);
    assert_eq!(Message::decode(&encoded, dialect), Ok(message));
}

/// Lists are read again element by element: none may be missing.
fn walk(message: &Message<'_>) {
    match message {
        Message::ExtInfo(info) => {
            assert_eq!(info.extensions.iter().count(), info.extensions.len());
        }
        Message::UserauthInfoRequest(request) => {
            assert_eq!(request.prompts.iter().count(), request.prompts.len());
        }
        Message::UserauthInfoResponse(response) => {
            assert_eq!(response.responses.iter().count(), response.responses.len());
        }
        Message::KexInit(kex_init) => {
            let names = kex_init.kex_algorithms;
            assert!(names.iter().all(|name| names.contains(name)));
        }
        _ => {}
    }
}
