//! Ways to log in other than a key held in memory.

use sshoal_proto::{
    AuthenticationFailure, ConnectionError, Credential, Event, ExecFate, Misbehaviour, Prompt,
    PublicKeyCredential, Secret, Signer,
};
use sshoal_wire::{
    Counted, Dialect, Message, Prompt as WirePrompt, UserauthBanner, UserauthDialect,
    UserauthInfoRequest, UserauthPasswdChangereq, UserauthPkOk,
};

use crate::support::{Pair, Policy, held, key, opening, settings};

pub(super) fn password(text: &str) -> Credential {
    Credential::Password(Secret::new(text.as_bytes().to_vec()))
}

/// The key of this seed, which an agent holds.
fn external(seed: u8, probe: bool) -> Credential {
    let mut key = PublicKeyCredential::held(key(seed));
    key.signer = Signer::External;
    key.probe = probe;
    Credential::PublicKey(key)
}

#[test]
fn a_password_never_brings_the_command_along() {
    let (mut pair, _) = Pair::with_command(settings(), Policy::openssh(), "true");
    pair.credentials = [password("wrong"), password("correct horse")].into();
    pair.run();
    assert_eq!(
        pair.flights[2..],
        [
            "NEWKEYS SERVICE_REQUEST USERAUTH_REQUEST(password)",
            "USERAUTH_REQUEST(password)",
            "CHANNEL_OPEN",
            "CHANNEL_REQUEST(exec) CHANNEL_EOF",
            "CHANNEL_CLOSE",
        ]
    );
    assert_eq!(pair.server.executions, [b"true"]);
}

#[test]
fn none_learns_the_methods() {
    let (mut pair, channel) = Pair::with_command(settings(), Policy::openssh(), "true");
    pair.credentials = [Credential::None].into();
    pair.run();
    let failure = AuthenticationFailure {
        methods: vec!["publickey".to_owned(), "password".to_owned()],
        partial_success: false,
    };
    assert_eq!(
        pair.events.last(),
        Some(&Event::AuthenticationNeeded(Some(failure)))
    );
    assert_eq!(pair.client.exec_fate(channel), ExecFate::NotSent);
}

/// A login by `credential` whose answers come from the story.
fn by_hand(credential: Credential) -> Pair {
    let mut policy = Policy::openssh();
    policy.answers_login = false;
    let mut pair = Pair::new(settings(), opening(), policy);
    pair.credentials = [credential].into();
    pair.run();
    pair.server.say(sshoal_wire::ServiceAccept {
        service_name: b"ssh-userauth",
    });
    pair.run();
    pair.server.unanswered.clear();
    pair
}

fn succeed(pair: &mut Pair) {
    pair.server.authenticated = true;
    pair.server.say(sshoal_wire::UserauthSuccess);
    pair.run();
    assert_eq!(pair.events.last(), Some(&Event::Authenticated));
}

#[test]
fn a_server_need_not_name_the_service_that_it_accepts() {
    for mut policy in [Policy::openssh(), Policy::unknown()] {
        policy.answers_login = false;
        let mut pair = Pair::new(settings(), opening(), policy);
        pair.sleeps = true;
        pair.credentials = [password("right")].into();
        pair.run();
        pair.server
            .packets
            .say(&[sshoal_wire::ServiceAccept::NUMBER]);
        pair.sleeps = false;
        pair.run();
        let request = "USERAUTH_REQUEST(password)";
        assert!(pair.flights.iter().any(|flight| flight.contains(request)));
        succeed(&mut pair);
    }
}

#[test]
fn an_expired_password_is_told() {
    let mut pair = by_hand(password("old"));
    pair.server.say(UserauthPasswdChangereq {
        prompt: b"change it",
        language_tag: b"",
    });
    pair.run();
    let prompt = b"change it".to_vec();
    assert_eq!(pair.events.last(), Some(&Event::PasswordExpired { prompt }));
    // Something else may be tried after it.
    pair.client.authenticate(held(2)).unwrap();
    pair.run();
    succeed(&mut pair);
}

fn ask(pair: &mut Pair, prompts: &[(&'static str, bool)]) {
    let prompts: Vec<WirePrompt<'_>> = prompts
        .iter()
        .map(|&(text, echo)| WirePrompt {
            prompt: text.as_bytes(),
            echo,
        })
        .collect();
    pair.server.say(UserauthInfoRequest {
        name: b"Login",
        instruction: b"",
        language_tag: b"",
        prompts: Counted::from(&prompts),
    });
    pair.run();
}

/// What the server was answered.
fn answers(pair: &mut Pair) -> Vec<Vec<u8>> {
    let payload = pair.server.unanswered.pop_front().expect("an answer");
    let dialect = Dialect {
        userauth: UserauthDialect::KeyboardInteractive,
        ..Dialect::default()
    };
    match Message::decode(&payload, dialect) {
        Ok(Message::UserauthInfoResponse(response)) => {
            response.responses.iter().map(<[u8]>::to_vec).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn keyboard_interactive_asks_as_often_as_it_likes_to() {
    let mut pair = by_hand(Credential::KeyboardInteractive);
    ask(&mut pair, &[("Password: ", false), ("Colour: ", true)]);
    let prompt = |text: &str, echo| Prompt {
        text: text.as_bytes().to_vec(),
        echo,
    };
    assert_eq!(
        pair.events.last(),
        Some(&Event::PromptsToAnswer {
            name: b"Login".to_vec(),
            instruction: Vec::new(),
            prompts: vec![prompt("Password: ", false), prompt("Colour: ", true)],
        })
    );
    let secret = |text: &str| Secret::new(text.as_bytes().to_vec());
    pair.client
        .answer_prompts(&[secret("sesame"), secret("blue")])
        .unwrap();
    pair.run();
    assert_eq!(answers(&mut pair), [b"sesame".as_slice(), b"blue"]);
    // PAM likes to end with a request that asks nothing.
    ask(&mut pair, &[]);
    pair.client.answer_prompts(&[]).unwrap();
    pair.run();
    assert!(answers(&mut pair).is_empty());
    succeed(&mut pair);
}

#[test]
fn prompts_may_be_left_unanswered_for_another_credential() {
    let mut pair = by_hand(Credential::KeyboardInteractive);
    ask(&mut pair, &[("One-time code: ", false)]);
    pair.client.withhold_answers();
    pair.client.answer_prompts(&[]).unwrap();
    pair.run();
    assert!(pair.server.unanswered.is_empty(), "too late to answer");
    pair.client.authenticate(held(2)).unwrap();
    pair.run();
    assert_eq!(pair.server.unanswered.len(), 1);
    succeed(&mut pair);
}

#[test]
fn an_agents_signature_brings_the_command_along() {
    let (mut pair, _) = Pair::with_command(settings(), Policy::openssh(), "true");
    pair.credentials = [external(2, false)].into();
    pair.run();
    let Some(Event::SignatureNeeded(request)) = pair.events.last() else {
        panic!("{:?}", pair.told());
    };
    assert_eq!(request.key, key(2).public_blob());
    let signature = key(2).sign(&request.algorithm, &request.data).unwrap();
    pair.client.provide_signature(&signature).unwrap();
    pair.run();
    assert_eq!(
        pair.flights[2..4],
        [
            "NEWKEYS SERVICE_REQUEST",
            "USERAUTH_REQUEST(publickey) CHANNEL_OPEN CHANNEL_REQUEST(exec) CHANNEL_EOF",
        ]
    );
    assert_eq!(pair.server.executions, [b"true"]);
}

#[test]
fn a_key_that_needs_a_touch_leaves_the_command_behind() {
    let (mut pair, channel) = Pair::with_command(settings(), Policy::openssh(), "true");
    let mut touched = PublicKeyCredential::held(key(2));
    touched.pipeline = false;
    pair.credentials = [Credential::PublicKey(touched)].into();
    pair.run_until(|event| *event == Event::Authenticated);
    assert_eq!(pair.client.exec_fate(channel), ExecFate::NotSent);
    pair.run();
    assert_eq!(pair.server.executions, [b"true"]);
}

#[test]
fn a_withheld_signature_leaves_room_for_another_key() {
    let (mut pair, _) = Pair::with_command(settings(), Policy::openssh(), "true");
    pair.credentials = [external(3, false)].into();
    pair.run();
    pair.client.withhold_signature();
    pair.client.provide_signature(b"too late").unwrap();
    pair.client.authenticate(held(2)).unwrap();
    pair.run();
    let requests = pair.flights.concat().matches("USERAUTH_REQUEST").count();
    assert_eq!(requests, 1);
    assert_eq!(pair.server.executions, [b"true"]);
}

#[test]
fn a_probe_asks_before_it_signs() {
    let (mut pair, _) = Pair::with_command(settings(), Policy::openssh(), "true");
    pair.credentials = [external(3, true), external(2, true)].into();
    pair.run();
    assert_eq!(
        pair.flights[2..],
        [
            "NEWKEYS SERVICE_REQUEST USERAUTH_REQUEST(publickey)",
            "USERAUTH_REQUEST(publickey)",
        ]
    );
    let asked: Vec<_> = pair
        .events
        .iter()
        .filter(|event| matches!(event, Event::SignatureNeeded(_)))
        .collect();
    assert_eq!(asked.len(), 1, "only for the key that the server knows");
    let Event::SignatureNeeded(request) = asked[0] else {
        panic!("filtered");
    };
    let signature = key(2).sign(&request.algorithm, &request.data).unwrap();
    pair.client.provide_signature(&signature).unwrap();
    pair.run();
    assert_eq!(pair.server.executions, [b"true"]);
}

#[test]
fn an_ok_for_another_key_is_not_ok() {
    let mut pair = by_hand(external(2, true));
    pair.server.say(UserauthPkOk {
        algorithm: b"ssh-ed25519",
        key: key(3).public_blob(),
    });
    pair.run();
    assert_eq!(
        pair.error,
        Some(ConnectionError::Misbehaved(Misbehaviour::WrongPkOk))
    );
}

#[test]
fn an_ok_that_nobody_asked_for_is_refused() {
    let mut pair = by_hand(held(2));
    pair.server.say(UserauthPkOk {
        algorithm: b"ssh-ed25519",
        key: key(2).public_blob(),
    });
    pair.run();
    let message = "USERAUTH_PK_OK";
    assert_eq!(
        pair.error,
        Some(Misbehaviour::UnaskedReply { message }.into())
    );
}

#[test]
fn banners_are_told_in_their_order() {
    let mut pair = by_hand(held(2));
    for text in ["Authorised use only\n", ""] {
        pair.server.say(UserauthBanner {
            message: text.as_bytes(),
            language_tag: b"",
        });
    }
    succeed(&mut pair);
    let banners: Vec<_> = pair
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Banner(text) => Some(text.as_slice()),
            _ => None,
        })
        .collect();
    assert_eq!(banners, [b"Authorised use only\n".as_slice(), b""]);
}

#[test]
fn extensions_may_come_again_before_success() {
    let mut pair = by_hand(held(2));
    pair.server.say(sshoal_wire::ExtInfo {
        extensions: Counted::from(&[]),
    });
    succeed(&mut pair);
}
