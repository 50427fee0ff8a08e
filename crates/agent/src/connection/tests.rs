#![allow(clippy::unwrap_used)]

use proptest::collection::vec;
use proptest::prelude::*;
use sshoal_wire::Put;

use super::*;
use crate::key_type::KEY_TYPES;

/// A message with its length.
fn framed(message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_string(message);
    out
}

/// A string of strings: a key blob, or a signature.
fn blob(fields: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    fields.iter().for_each(|field| out.put_string(field));
    out
}

fn identities_answer(keys: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut message = vec![12];
    message.put_u32(u32::try_from(keys.len()).unwrap());
    for (key, comment) in keys {
        message.put_string(key);
        message.put_string(comment);
    }
    framed(&message)
}

fn sign_response(signature: &[u8]) -> Vec<u8> {
    let mut message = vec![14];
    message.put_string(signature);
    framed(&message)
}

/// Everything that is ready for the socket, as if it were written.
fn write_all(agent: &mut AgentConnection) -> Vec<u8> {
    let bytes = agent
        .poll_transmit()
        .map(<[u8]>::to_vec)
        .unwrap_or_default();
    agent.transmitted(bytes.len());
    bytes
}

/// An agent asked once, with everything written.
fn asked(
    ask: impl FnOnce(&mut AgentConnection) -> Result<RequestId, SubmitError>,
) -> AgentConnection {
    let mut agent = AgentConnection::new();
    ask(&mut agent).unwrap();
    write_all(&mut agent);
    agent
}

fn outcome(agent: &mut AgentConnection) -> Result<Answer, RequestError> {
    agent.poll_event().unwrap().outcome
}

const BIND: SessionBind<'_> = SessionBind {
    host_key: b"key",
    session_id: b"id",
    signature: b"sig",
    is_forwarding: false,
};

#[test]
fn requests_are_written_as_the_protocol_says() {
    let mut agent = AgentConnection::new();
    agent.request_identities().unwrap();
    assert_eq!(write_all(&mut agent), b"\0\0\0\x01\x0b");

    let key = blob(&[b"ssh-rsa", b"\x03", b"\x05"]);
    for (algorithm, flags) in [("rsa-sha2-256", 2), ("rsa-sha2-512", 4)] {
        let mut agent = AgentConnection::new();
        agent.sign(&key, algorithm, b"data").unwrap();
        let mut expected = vec![13];
        expected.put_string(&key);
        expected.put_string(b"data");
        expected.put_u32(flags);
        assert_eq!(write_all(&mut agent), framed(&expected));
    }

    let mut agent = AgentConnection::new();
    agent.bind_session(BIND).unwrap();
    let expected =
        b"\x1b\0\0\0\x18session-bind@openssh.com\0\0\0\x03key\0\0\0\x02id\0\0\0\x03sig\0";
    assert_eq!(write_all(&mut agent), framed(expected));
}

#[test]
fn all_types_of_keys_sign_and_state_their_flags() {
    for key_type in KEY_TYPES {
        let key = blob(&[key_type.name.as_bytes()]);
        for algorithm in key_type.algorithms {
            let mut agent = asked(|agent| agent.sign(&key, algorithm.name, b"data"));
            let signature = blob(&[algorithm.signature.as_bytes(), b"s"]);
            agent.handle_input(&sign_response(&signature)).unwrap();
            assert_eq!(outcome(&mut agent), Ok(Answer::Signature(signature)));
            assert!(!algorithm.signature.contains("-cert-"));
        }
        assert_eq!(key_type.certificate, key_type.name.contains("-cert-v01@"));
        assert_eq!(key_type.security_key, key_type.name.starts_with("sk-"));
    }
}

#[test]
fn keys_are_listed_and_unknown_types_left_out() {
    let key = blob(&[b"sk-ssh-ed25519@openssh.com", b"point", b"ssh:"]);
    let odd = blob(&[b"ssh-xmss@openssh.com", b"?"]);
    let mut agent = asked(AgentConnection::request_identities);
    let answer = identities_answer(&[(&odd, b"odd"), (&key, b"me\xff")]);
    agent.handle_input(&answer).unwrap();
    let Ok(Answer::Identities(keys)) = outcome(&mut agent) else {
        panic!("no identities");
    };
    assert_eq!(keys.len(), 1);
    assert_eq!(
        (&keys[0].key, keys[0].comment.as_str()),
        (&key, "me\u{fffd}")
    );
    assert!(keys[0].key_type.security_key);
}

#[test]
fn an_agent_without_keys_says_so() {
    for (keys, error) in [
        (vec![], RequestError::NoIdentities),
        (
            vec![(&b"\0\0\0\x01?"[..], &b""[..])],
            RequestError::NoUsableIdentities { count: 1 },
        ),
    ] {
        let mut agent = asked(AgentConnection::request_identities);
        agent.handle_input(&identities_answer(&keys)).unwrap();
        assert_eq!(outcome(&mut agent), Err(error));
    }
}

#[test]
fn an_answer_may_come_in_any_pieces() {
    let key = blob(&[b"ssh-ed25519", b"k"]);
    let answer = identities_answer(&[(&key, b"c")]);
    for cut in 1..answer.len() {
        let mut agent = asked(AgentConnection::request_identities);
        agent.handle_input(&answer[..cut]).unwrap();
        assert_eq!(agent.poll_event(), None);
        agent.handle_input(&[]).unwrap();
        agent.handle_input(&answer[cut..]).unwrap();
        assert!(outcome(&mut agent).is_ok());
    }
}

#[test]
fn one_request_is_in_flight_and_the_others_wait_in_order() {
    let mut agent = AgentConnection::new();
    let key = blob(&[b"ssh-ed25519", b"k"]);
    let first = agent.request_identities().unwrap();
    let second = agent.sign(&key, "ssh-ed25519", b"d").unwrap();
    // Written in two parts.
    assert_eq!(agent.poll_transmit().unwrap()[3], 1);
    agent.transmitted(4);
    assert_eq!(agent.poll_transmit(), Some(&[11][..]));
    agent.transmitted(1);
    assert_eq!(agent.poll_transmit(), None);

    agent.handle_input(&identities_answer(&[])).unwrap();
    assert!(agent.is_busy());
    assert_eq!(write_all(&mut agent)[4], 13);
    agent.handle_input(&framed(&[5])).unwrap();
    assert!(!agent.is_busy());
    assert_eq!(agent.poll_event().unwrap().request, first);
    assert_eq!(agent.poll_event().unwrap().request, second);
    assert_eq!(agent.poll_event(), None);
}

#[test]
fn refusals_say_what_was_refused() {
    let touch = blob(&[b"sk-ecdsa-sha2-nistp256@openssh.com"]);
    let plain = blob(&[b"ssh-ed25519"]);
    // Three numbers mean failure.
    for failure in [5, 30, 102] {
        let refused = |mut agent: AgentConnection| {
            agent.handle_input(&framed(&[failure])).unwrap();
            outcome(&mut agent).unwrap_err()
        };
        let list = refused(asked(AgentConnection::request_identities));
        assert_eq!(list, RequestError::ListRefused);
        let bind = refused(asked(|agent| agent.bind_session(BIND)));
        assert_eq!(bind, RequestError::BindFailed);
        let sign = refused(asked(|agent| agent.sign(&plain, "ssh-ed25519", b"")));
        assert!(sign.remedy().contains("ssh-add -c"));
        let sign = refused(asked(|agent| {
            agent.sign(&touch, "sk-ecdsa-sha2-nistp256@openssh.com", b"")
        }));
        assert!(sign.remedy().contains("touch"));
        assert_eq!(
            sign.to_string(),
            "the ssh-agent refused to sign with the sk-ecdsa-sha2-nistp256@openssh.com key"
        );
    }
}

#[test]
fn a_binding_is_granted_refused_or_fails() {
    for (answer, expected) in [
        (6, Ok(Answer::Bound)),
        (28, Err(RequestError::BindRefused)),
        (5, Err(RequestError::BindFailed)),
    ] {
        let mut agent = asked(|agent| agent.bind_session(BIND));
        agent.handle_input(&framed(&[answer])).unwrap();
        assert_eq!(outcome(&mut agent), expected);
    }
}

#[test]
fn a_connection_is_bound_for_authentication_once() {
    let forwarding = SessionBind {
        is_forwarding: true,
        ..BIND
    };
    let mut agent = AgentConnection::new();
    agent.bind_session(forwarding).unwrap();
    agent.bind_session(BIND).unwrap();
    for again in [BIND, forwarding] {
        assert_eq!(agent.bind_session(again), Err(SubmitError::AlreadyBound));
    }
}

#[test]
fn a_signature_of_another_algorithm_is_refused() {
    let key = blob(&[b"ssh-rsa"]);
    let mut agent = asked(|agent| agent.sign(&key, "rsa-sha2-512", b"d"));
    agent
        .handle_input(&sign_response(&blob(&[b"ssh-rsa\x1b", b"s"])))
        .unwrap();
    assert_eq!(
        outcome(&mut agent),
        Err(RequestError::WrongAlgorithm {
            asked: "rsa-sha2-512",
            signed: "ssh-rsa\\x1b".to_owned(),
        })
    );
}

#[test]
fn requests_that_no_agent_can_serve_are_not_taken() {
    let mut agent = AgentConnection::new();
    for unknown in [&b""[..], b"\0\0\0\x09", b"\0\0\0\x07ssh-dss"] {
        let error = agent.sign(unknown, "ssh-dss", b"").unwrap_err();
        assert_eq!(error, SubmitError::UnknownKeyType);
    }
    let key = blob(&[b"ssh-rsa"]);
    assert_eq!(
        agent.sign(&key, "ssh-rsa", b"").unwrap_err().to_string(),
        "a key of type ssh-rsa does not sign with ssh-rsa"
    );
    let room = MAX_MESSAGE_LEN - 1 - 4 - key.len() - 4 - 4;
    agent.sign(&key, "rsa-sha2-256", &vec![0; room]).unwrap();
    assert_eq!(
        agent.sign(&key, "rsa-sha2-256", &vec![0; room + 1]),
        Err(SubmitError::TooLong {
            len: MAX_MESSAGE_LEN + 1
        })
    );
}

#[test]
fn a_connection_holds_so_many_requests() {
    let mut agent = AgentConnection::new();
    for _ in 0..MAX_REQUESTS {
        agent.request_identities().unwrap();
    }
    assert_eq!(agent.request_identities(), Err(SubmitError::Full));
    // An answer that nobody fetched still takes its place.
    write_all(&mut agent);
    agent.handle_input(&identities_answer(&[])).unwrap();
    assert_eq!(agent.request_identities(), Err(SubmitError::Full));
    agent.poll_event().unwrap();
    assert!(agent.request_identities().is_ok());
}

#[test]
fn messages_have_a_longest_and_a_shortest_length() {
    for (length, fits) in [
        (0, false),
        (1, true),
        (MAX_MESSAGE_LEN, true),
        (MAX_MESSAGE_LEN + 1, false),
        (0xffff_ffff, false),
    ] {
        let len = u32::try_from(length).unwrap();
        let mut agent = asked(AgentConnection::request_identities);
        let result = agent.handle_input(&len.to_be_bytes());
        let expected = match fits {
            true => Ok(()),
            false => Err(ConnectionError::MessageLength { len }),
        };
        assert_eq!(result, expected);
    }
}

#[test]
fn what_was_not_asked_for_ends_the_connection() {
    let unasked = |len| Err(ConnectionError::Unasked { len });
    // Before any request; before the request is written whole; after the answer.
    let mut agent = AgentConnection::new();
    assert_eq!(agent.handle_input(&framed(&[5])), unasked(5));
    let mut agent = AgentConnection::new();
    agent.request_identities().unwrap();
    agent.transmitted(4);
    assert_eq!(agent.handle_input(&framed(&[5])), unasked(5));
    let mut agent = asked(AgentConnection::request_identities);
    agent.request_identities().unwrap();
    assert_eq!(agent.handle_input(&framed(&[5]).repeat(2)), unasked(5));

    let mut agent = asked(AgentConnection::request_identities);
    let error = agent.handle_input(&sign_response(b"")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the ssh-agent answered SSH_AGENTC_REQUEST_IDENTITIES with message number 14"
    );
    // The first error stays the answer.
    assert_eq!(agent.handle_input(&framed(&[5])), Err(error.clone()));
    assert_eq!(
        agent.request_identities(),
        Err(SubmitError::Connection(error))
    );
}

#[test]
fn too_many_keys_are_too_many() {
    let mut agent = asked(AgentConnection::request_identities);
    let error = agent.handle_input(&framed(&[12, 0, 0, 8, 1])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the ssh-agent's answer cannot be read: the peer's agent message is malformed: \
         nkeys has 2049 elements, more than the 2048 accepted"
    );
}

#[test]
fn a_closed_socket_fails_whatever_is_unanswered() {
    let mut agent = asked(AgentConnection::request_identities);
    agent.handle_input(&identities_answer(&[])).unwrap();
    let unanswered = agent.request_identities().unwrap();
    agent.handle_close();
    assert_eq!(outcome(&mut agent), Err(RequestError::NoIdentities));
    let event = agent.poll_event().unwrap();
    assert_eq!(event.request, unanswered);
    assert_eq!(
        event.outcome,
        Err(RequestError::Connection(ConnectionError::Closed))
    );
    assert!(ConnectionError::Closed.remedy().contains("SSH_AUTH_SOCK"));
    assert_eq!(agent.poll_transmit(), None);
}

proptest! {
    /// Whatever an agent sends, in whatever pieces, every request ends exactly once.
    #[test]
    fn every_request_ends_once(
        kinds in vec(0..3u8, 1..8),
        pieces in vec((0..4u8, vec(any::<u8>(), 0..40)), 0..12),
    ) {
        let mut agent = AgentConnection::new();
        let key = blob(&[b"ssh-ed25519", b"k"]);
        let mut open: Vec<_> = kinds.iter().filter_map(|kind| match kind {
            0 => agent.request_identities(),
            1 => agent.sign(&key, "ssh-ed25519", b"d"),
            _ => agent.bind_session(BIND),
        }.ok()).collect();
        for (form, bytes) in &pieces {
            write_all(&mut agent);
            let bytes = match form {
                0 => bytes.clone(),
                1 => framed(bytes),
                2 => identities_answer(&[(&key, bytes)]),
                _ => sign_response(&blob(&[b"ssh-ed25519", bytes])),
            };
            let ended = agent.handle_input(&bytes).is_err();
            prop_assert!(!(ended && agent.is_busy()));
        }
        agent.handle_close();
        while let Some(event) = agent.poll_event() {
            prop_assert_eq!(open.remove(0), event.request);
        }
        prop_assert!(open.is_empty());
    }
}
