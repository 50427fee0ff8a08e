//! Against OpenSSH's ssh-agent.

#![allow(clippy::unwrap_used)]

mod fixture;

use sshoal_agent::{Answer, ConnectionError, Identity, RequestError, SessionBind, SubmitError};
use sshoal_crypto::{VerifyError, verify};
use sshoal_wire::{AuthMethod, Put, UserauthRequest};

use fixture::{Agent, Client};

const ED25519: &[&str] = &["-t", "ed25519"];

fn identities(client: &mut Client) -> Vec<Identity> {
    match client.ask(|agent| agent.request_identities()) {
        Ok(Answer::Identities(identities)) => identities,
        other => panic!("{other:?}"),
    }
}

fn sign(
    client: &mut Client,
    key: &[u8],
    algorithm: &str,
    data: &[u8],
) -> Result<Vec<u8>, RequestError> {
    match client.ask(|agent| agent.sign(key, algorithm, data))? {
        Answer::Signature(signature) => Ok(signature),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_key_and_certificate_signs_with_each_of_its_algorithms() {
    let agent = Agent::start();
    agent.new_key("ca", ED25519);
    let kinds: [(&str, &[&str]); 5] = [
        ("ed25519", ED25519),
        ("p256", &["-t", "ecdsa", "-b", "256"]),
        ("p384", &["-t", "ecdsa", "-b", "384"]),
        ("p521", &["-t", "ecdsa", "-b", "521"]),
        ("rsa", &["-t", "rsa", "-b", "2048"]),
    ];
    for (name, options) in kinds {
        agent.new_key(name, options);
        agent.certify(name, "ca");
        agent.ssh_add(&[], name);
    }

    let mut client = agent.connect();
    let identities = identities(&mut client);
    assert_eq!(identities.len(), 2 * kinds.len());
    let mut signatures = 0;
    for identity in &identities {
        // A certificate is signed with as its key is.
        let key = agent.public_key(&identity.comment);
        assert_eq!(identity.key == key, !identity.key_type.certificate);
        for algorithm in identity.key_type.algorithms {
            let signature = sign(&mut client, &identity.key, algorithm.name, b"data").unwrap();
            assert_eq!(
                verify(algorithm.signature, &key, &signature, b"data"),
                Ok(())
            );
            assert_eq!(
                verify(algorithm.signature, &key, &signature, b"Data"),
                Err(VerifyError::Wrong)
            );
            signatures += 1;
        }
    }
    assert_eq!(signatures, 12);
}

#[test]
fn an_empty_agent_and_one_that_lacks_the_key_say_so() {
    let agent = Agent::start();
    let key = agent.new_key("key", ED25519);
    let mut client = agent.connect();
    assert_eq!(
        client.ask(|agent| agent.request_identities()),
        Err(RequestError::NoIdentities)
    );
    let refused = RequestError::SignRefused {
        key_type: "ssh-ed25519",
        security_key: false,
    };
    assert_eq!(
        sign(&mut client, &key, "ssh-ed25519", b"data"),
        Err(refused)
    );
    // The connection goes on.
    agent.ssh_add(&[], "key");
    assert!(sign(&mut client, &key, "ssh-ed25519", b"data").is_ok());
}

#[test]
fn a_locked_agent_shows_and_signs_nothing_until_it_is_unlocked() {
    const LOCK: u8 = 22;
    const UNLOCK: u8 = 23;
    let password = |message: u8| {
        let mut out = vec![message];
        out.put_string(b"secret");
        out
    };
    let agent = Agent::start();
    let key = agent.new_key("key", ED25519);
    agent.ssh_add(&[], "key");
    agent.connect().send_raw(&password(LOCK));

    let mut client = agent.connect();
    let hidden = client.ask(|agent| agent.request_identities()).unwrap_err();
    assert_eq!(hidden, RequestError::NoIdentities);
    assert!(hidden.remedy().contains("ssh-add -X"));
    let refused = sign(&mut client, &key, "ssh-ed25519", b"data").unwrap_err();
    assert!(matches!(refused, RequestError::SignRefused { .. }));
    assert!(refused.remedy().contains("ssh-add -X"));

    agent.connect().send_raw(&password(UNLOCK));
    assert_eq!(identities(&mut client).len(), 1);
    assert!(sign(&mut client, &key, "ssh-ed25519", b"data").is_ok());
}

/// A host key that has signed a session identifier, as a key exchange makes it.
struct Session {
    host_key: Vec<u8>,
    id: &'static [u8],
    signature: Vec<u8>,
}

impl Session {
    /// The agent itself plays the host: it signs the identifier with the key in the file `host`.
    fn new(agent: &Agent, host: &str, id: &'static [u8]) -> Self {
        let host_key = agent.public_key(host);
        agent.ssh_add(&[], host);
        let signature = sign(&mut agent.connect(), &host_key, "ssh-ed25519", id).unwrap();
        agent.ssh_add(&["-d"], host);
        Self {
            host_key,
            id,
            signature,
        }
    }

    fn bind(&self) -> SessionBind<'_> {
        SessionBind {
            host_key: &self.host_key,
            session_id: self.id,
            signature: &self.signature,
            is_forwarding: false,
        }
    }

    /// What a client signs to log in to this host.
    fn login(&self, key: &[u8]) -> Vec<u8> {
        let request = UserauthRequest {
            user_name: b"me",
            service_name: b"ssh-connection",
            method: AuthMethod::HostboundPublicKey {
                algorithm: b"ssh-ed25519",
                key,
                signature: None,
                host_key: &self.host_key,
            },
        };
        let mut data = Vec::new();
        request.put_signed_data(self.id, &mut data);
        data
    }
}

#[test]
fn a_key_restricted_to_a_host_signs_on_a_connection_bound_to_it() {
    let agent = Agent::start();
    let key = agent.new_key("key", ED25519);
    agent.new_key("hosta", ED25519);
    agent.new_key("hostb", ED25519);
    let right = Session::new(&agent, "hosta", b"session identifier a");
    let wrong = Session::new(&agent, "hostb", b"session identifier b");
    let public = std::fs::read_to_string(agent.path("hosta.pub")).unwrap();
    std::fs::write(agent.path("known_hosts"), format!("hosta {public}")).unwrap();
    agent.ssh_add(&["-h", "hosta", "-H", "known_hosts"], "key");

    let mut bound = agent.connect();
    assert_eq!(
        bound.ask(|agent| agent.bind_session(right.bind())),
        Ok(Answer::Bound)
    );
    assert_eq!(identities(&mut bound)[0].key, key);
    let data = right.login(&key);
    let signature = sign(&mut bound, &key, "ssh-ed25519", &data).unwrap();
    assert_eq!(verify("ssh-ed25519", &key, &signature, &data), Ok(()));
    // Nothing but a login to that host, in that session.
    for other in [&b"data"[..], &wrong.login(&key)] {
        assert!(sign(&mut bound, &key, "ssh-ed25519", other).is_err());
    }

    let mut unbound = agent.connect();
    assert!(sign(&mut unbound, &key, "ssh-ed25519", &data).is_err());
    let mut elsewhere = agent.connect();
    elsewhere
        .ask(|agent| agent.bind_session(wrong.bind()))
        .unwrap();
    assert_eq!(
        elsewhere.ask(|agent| agent.request_identities()),
        Err(RequestError::NoIdentities)
    );
}

#[test]
fn an_agent_binds_only_what_the_host_key_has_signed_and_only_once() {
    let agent = Agent::start();
    agent.new_key("host", ED25519);
    let session = Session::new(&agent, "host", b"session identifier");
    let mut client = agent.connect();
    let forged = SessionBind {
        session_id: b"another identifier",
        ..session.bind()
    };
    // Before 10.3 in the words of an agent that does not know the extension.
    let refused = client.ask(|agent| agent.bind_session(forged));
    assert!(matches!(
        refused,
        Err(RequestError::BindRefused | RequestError::BindFailed)
    ));

    let mut client = agent.connect();
    assert_eq!(
        client.ask(|agent| agent.bind_session(session.bind())),
        Ok(Answer::Bound)
    );
    assert_eq!(
        client.agent.bind_session(session.bind()),
        Err(SubmitError::AlreadyBound)
    );
}

#[test]
fn an_agent_that_dies_fails_the_request() {
    let mut agent = Agent::start();
    let mut client = agent.connect();
    agent.kill();
    assert_eq!(
        client.ask(|agent| agent.request_identities()),
        Err(RequestError::Connection(ConnectionError::Closed))
    );
}
