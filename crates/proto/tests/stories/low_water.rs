//! What is too little to wake anybody for: no honest server ever pauses with less sent.

use sshoal_crypto::{Cipher, KexAlgorithm, Mac};
use sshoal_proto::{Credential, Event, LocalChannel, Opening, SessionRequest, Settings};

use crate::methods::password;
use crate::support::{Pair, Policy, held, opening, settings};

/// SERVICE_ACCEPT under AES-GCM: length, padding length, payload and padding to a whole block, tag.
const SERVICE_ACCEPT: usize = 4 + 32 + 16;

/// A whole login and command by a caller that sleeps through what is too little.
fn sleeper(settings: Settings, opening: Opening, policy: Policy) -> (Pair, LocalChannel) {
    let mut pair = Pair::new(settings, opening, policy);
    pair.sleeps = true;
    let channel = pair.open(SessionRequest::exec("true"));
    (pair, channel)
}

fn runs_to_its_end((mut pair, channel): (Pair, LocalChannel)) {
    pair.run();
    let closed = pair.events.contains(&Event::Closed(channel));
    assert!(closed, "{:?} {:?}", pair.events, pair.error);
}

#[test]
fn no_cipher_is_slept_through() {
    for cipher in Cipher::ALL {
        for mac in Mac::ALL {
            for mut policy in [Policy::openssh(), Policy::unknown()] {
                policy.ciphers = vec![cipher.name()];
                policy.macs = vec![mac.name()];
                runs_to_its_end(sleeper(settings(), opening(), policy));
            }
        }
    }
}

#[test]
fn no_key_exchange_is_slept_through() {
    for kex in settings().kex {
        for guess_key_exchange in [false, true] {
            let mut policy = Policy::openssh();
            policy.kex = vec![kex.name];
            let mut settings = settings();
            settings.kex = KexAlgorithm::by_name(kex.name).into_iter().collect();
            let mut opening = opening();
            opening.guess_key_exchange = guess_key_exchange;
            runs_to_its_end(sleeper(settings, opening, policy));
        }
    }
}

#[test]
fn no_refusal_is_slept_through() {
    for policy in [Policy::openssh(), Policy::unknown()] {
        for first in [held(9), Credential::None, password("wrong")] {
            let (mut pair, channel) = sleeper(settings(), opening(), policy.clone());
            pair.credentials.push_front(first);
            runs_to_its_end((pair, channel));
        }
    }
}

#[test]
fn what_decides_nothing_wakes_nobody() {
    let mut pair = Pair::new(settings(), opening(), Policy::openssh());
    let identification = Policy::openssh().identification.len() + "\r\n".len();
    assert!(identification < pair.client.least_input());
    pair.feed(b"SSH-2.0-an_identification_of_a_server_that_has_come_alone\r\n");
    pair.feed(b"");
    assert!(pair.client.least_input() > 1, "KEXINIT is longer");
    pair.feed(b"\0\0");
    assert!(pair.client.least_input() > 1, "counted from what was taken");

    let mut pair = Pair::new(settings(), opening(), Policy::openssh());
    pair.run_until(|event| matches!(event, Event::AuthenticationNeeded(_)));
    assert!(pair.client.least_input() > SERVICE_ACCEPT);
    // Under chacha20-poly1305 neither SERVICE_ACCEPT without a name nor USERAUTH_SUCCESS has more than a block.
    assert!(pair.client.least_input() <= 2 * (4 + 8 + 16));
    pair.run();
    assert_eq!(pair.client.least_input(), 1);
}
