//! Decoding allocates nothing, whatever comes.

use sshoal_wire::{
    ChannelData, Counted, Dialect, ExtInfo, Extension, KexInit, Message, NameList, Phase, allowed,
};

#[test]
fn decoding_allocates_nothing() {
    let extensions = [Extension {
        name: b"server-sig-algs",
        value: b"ssh-ed25519,rsa-sha2-512",
    }; 20];
    let names = NameList::new("one,two,three");
    let kex_init = KexInit {
        cookie: [0; 16],
        kex_algorithms: names,
        server_host_key_algorithms: names,
        encryption_algorithms_client_to_server: names,
        encryption_algorithms_server_to_client: names,
        mac_algorithms_client_to_server: names,
        mac_algorithms_server_to_client: names,
        compression_algorithms_client_to_server: names,
        compression_algorithms_server_to_client: names,
        languages_client_to_server: names,
        languages_server_to_client: names,
        first_kex_packet_follows: false,
        reserved: 0,
    };
    let messages: [Message<'_>; 3] = [
        kex_init.into(),
        ExtInfo {
            extensions: Counted::from(&extensions),
        }
        .into(),
        ChannelData {
            recipient_channel: 0,
            data: &[7; 32 * 1024],
        }
        .into(),
    ];
    let mut payloads: Vec<Vec<u8>> = messages.iter().map(encoded).collect();
    // And one that fails half way.
    payloads.push(payloads[0][..100].to_vec());

    let mut seen = 0;
    let info = allocation_counter::measure(|| {
        for payload in &payloads {
            seen += match Message::decode(payload, Dialect::default()) {
                Ok(Message::KexInit(kex_init)) => kex_init.kex_algorithms.iter().count(),
                Ok(Message::ExtInfo(info)) => info.extensions.iter().count(),
                Ok(message) => usize::from(allowed(message.number(), Phase::Connection)),
                Err(error) => usize::from(error.field == "mac_algorithms_client_to_server"),
            };
        }
    });
    assert_eq!(info.count_total, 0);
    // Three names, twenty extensions, one message allowed, one error where it was expected.
    assert_eq!(seen, 3 + 20 + 1 + 1);
}

fn encoded(message: &Message<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    message.encode(&mut out);
    out
}
