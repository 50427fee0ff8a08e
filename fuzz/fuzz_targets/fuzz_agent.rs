//! A client that asks what it likes, and an agent that answers what it likes: every request ends exactly once, in
//! order, and a connection that has failed stays failed.

#![no_main]

use std::collections::VecDeque;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use sshoal_agent::{AgentConnection, KEY_TYPES, MAX_REQUESTS, RequestId, SessionBind};
use sshoal_wire::Put;

#[derive(Arbitrary, Debug)]
enum Step<'a> {
    RequestIdentities,
    Sign { key_type: usize, algorithm: usize },
    SignWith { key: &'a [u8] },
    Bind { is_forwarding: bool },
    Write { len: usize },
    Read { bytes: &'a [u8] },
    ReadMessage { message: &'a [u8] },
    PollEvent,
    Close,
}

fuzz_target!(|steps: Vec<Step<'_>>| {
    let mut agent = AgentConnection::new();
    let mut asked = VecDeque::new();
    let mut failed = None;
    for step in steps {
        let input = match step {
            Step::Write { len } => {
                agent.transmitted(len % 64);
                continue;
            }
            Step::PollEvent => {
                if let Some(event) = agent.poll_event() {
                    assert_eq!(asked.pop_front(), Some(event.request));
                }
                continue;
            }
            Step::Close => {
                agent.handle_close();
                continue;
            }
            Step::Read { bytes } => bytes.to_vec(),
            Step::ReadMessage { message } => framed(message),
            request => {
                asked.extend(submit(&mut agent, &request));
                continue;
            }
        };
        let outcome = agent.handle_input(&input);
        assert!(failed.is_none() || Some(&outcome) == failed.as_ref());
        failed = outcome.is_err().then_some(outcome);
        assert!(asked.len() <= MAX_REQUESTS);
    }
    agent.handle_close();
    while let Some(event) = agent.poll_event() {
        assert_eq!(asked.pop_front(), Some(event.request));
    }
    assert!(asked.is_empty() && !agent.is_busy());
});

fn submit(agent: &mut AgentConnection, request: &Step<'_>) -> Option<RequestId> {
    let submitted = match *request {
        Step::RequestIdentities => agent.request_identities(),
        Step::Sign {
            key_type,
            algorithm,
        } => {
            let key_type = &KEY_TYPES[key_type % KEY_TYPES.len()];
            let algorithm = &key_type.algorithms[algorithm % key_type.algorithms.len()];
            let mut key = Vec::new();
            key.put_string(key_type.name.as_bytes());
            agent.sign(&key, algorithm.name, b"data")
        }
        Step::SignWith { key } => agent.sign(key, "ssh-ed25519", b"data"),
        Step::Bind { is_forwarding } => agent.bind_session(SessionBind {
            host_key: b"key",
            session_id: b"session",
            signature: b"signature",
            is_forwarding,
        }),
        _ => return None,
    };
    submitted.ok()
}

fn framed(message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_string(message);
    out
}
