#![allow(clippy::unwrap_used)]

use std::path::Path;

use sshoal_testbed::sshd::key_files::{Certified, KeyType, certify, generate};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

use super::*;
use crate::agent::Agent;
use crate::login::key::KeyFile;
use crate::login::plan::Method;

/// Keys by the names of their files.
struct Keys(TempDir);

impl Keys {
    fn new(names: &[&str]) -> Self {
        let keys = Keys(TempDir::new().unwrap());
        for name in names {
            generate(&keys.path(name), KeyType::Ed25519, "").unwrap();
        }
        keys
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn public(&self, name: &str) -> Arc<UserKey> {
        let line = std::fs::read_to_string(self.path(&format!("{name}.pub"))).unwrap();
        let (key, _) = sshoal_crypto::PublicKey::from_openssh_line(&line).unwrap();
        Arc::new(UserKey::new(key.blob(), name).unwrap())
    }

    fn file(&self, name: &str, named: bool, secret: SecretHalf) -> KeyFile {
        KeyFile {
            key: self.public(name),
            secret,
            certificate: None,
            named,
        }
    }

    fn held(&self, name: &str, named: bool) -> KeyFile {
        let private = PrivateKey::parse(&std::fs::read(self.path(name)).unwrap(), None).unwrap();
        self.file(name, named, SecretHalf::Held(Arc::new(private)))
    }

    fn locked(&self, name: &str, named: bool) -> KeyFile {
        let locked = LockedKey::new(name, Zeroizing::new(Vec::new()));
        self.file(name, named, SecretHalf::Locked(Arc::new(locked)))
    }

    fn certificate(&self, ca: &str, name: &str) -> Arc<UserKey> {
        let certified = Certified {
            host: false,
            key_id: "test",
            principals: &[],
            validity: "always:forever",
        };
        let path = certify(&self.path(ca), &self.path(name), certified).unwrap();
        let line = std::fs::read_to_string(path).unwrap();
        let (key, _) = sshoal_crypto::PublicKey::from_openssh_line(&line).unwrap();
        Arc::new(UserKey::new(key.blob(), format!("{name}-cert")).unwrap())
    }
}

fn plan(files: Vec<KeyFile>) -> LoginPlan {
    LoginPlan {
        methods: Method::ALL.to_vec(),
        certificates: Vec::new(),
        files,
        agent: Some(Arc::new(Agent::new("/nowhere"))),
        add_keys: sshoal_ssh_config::AddKeysToAgent {
            choice: sshoal_ssh_config::AddKeys::No,
            lifetime: None,
        },
        identities_only: false,
        algorithms: sshoal_agent::KEY_TYPES
            .iter()
            .flat_map(|key_type| key_type.algorithms)
            .map(|algorithm| algorithm.name)
            .collect(),
        required_rsa_size: 1024,
        may_ask: true,
        foreign: Vec::new(),
        left_out: Vec::new(),
        touch: Arc::new(Semaphore::new(1)),
    }
}

/// Labels with who signs: `h`eld, `a`gent or `l`ocked.
fn shown(found: &Candidates) -> Vec<String> {
    let shown = found.keys.iter().map(|candidate| {
        let signer = match candidate.signer {
            KeySigner::Held(_) => 'h',
            KeySigner::Agent(_) => 'a',
            KeySigner::Locked(_) => 'l',
        };
        let label = Path::new(&candidate.key.label).file_name().unwrap();
        format!("{}:{signer}", label.to_string_lossy())
    });
    shown.collect()
}

#[test]
fn named_keys_come_first_and_need_no_agent() {
    let keys = Keys::new(&["named", "usual", "other"]);
    let plan = plan(vec![keys.held("named", true), keys.held("usual", false)]);
    let found = candidates(&plan, None);
    assert_eq!(shown(&found), ["named:h"]);
    assert!(!found.complete);

    let agent = [keys.public("other")];
    let found = candidates(&plan, Some(&agent));
    assert_eq!(shown(&found), ["named:h", "other:a", "usual:h"]);
    assert!(found.complete);
}

#[test]
fn without_an_agent_everything_is_known_at_once() {
    let keys = Keys::new(&["named", "usual"]);
    let mut plan = plan(vec![keys.locked("named", true), keys.held("usual", false)]);
    plan.agent = None;
    let found = candidates(&plan, None);
    assert_eq!(shown(&found), ["named:l", "usual:h"]);
    assert!(found.complete);
}

#[test]
fn the_agent_signs_for_encrypted_files_and_public_ones() {
    let keys = Keys::new(&["encrypted", "public", "missing"]);
    let plan = plan(vec![
        keys.locked("encrypted", true),
        keys.file("public", true, SecretHalf::Elsewhere),
        keys.file("missing", true, SecretHalf::Elsewhere),
    ]);
    let found = candidates(&plan, None);
    assert!(found.keys.is_empty() && !found.complete);
    let agent = [keys.public("public"), keys.public("encrypted")];
    let found = candidates(&plan, Some(&agent));
    assert_eq!(shown(&found), ["encrypted:a", "public:a"]);
}

#[test]
fn identities_only_leaves_the_agents_other_keys_out() {
    let keys = Keys::new(&["named", "other"]);
    let mut plan = plan(vec![keys.file("named", true, SecretHalf::Elsewhere)]);
    plan.identities_only = true;
    let agent = [keys.public("other"), keys.public("named")];
    assert_eq!(shown(&candidates(&plan, Some(&agent))), ["named:a"]);
}

#[test]
fn what_other_hosts_accepted_comes_first_and_what_they_refused_last() {
    let keys = Keys::new(&["a", "b", "c", "named"]);
    let plan = plan(vec![keys.held("named", true)]);
    let agent = ["a", "b", "c"].map(|name| keys.public(name));
    agent[0].standing.refused();
    agent[2].standing.accepted();
    agent[2].standing.refused();
    plan.files[0].key.standing.refused();
    assert_eq!(
        shown(&candidates(&plan, Some(&agent))),
        ["named:h", "c:a", "b:a", "a:a"]
    );
}

#[test]
fn a_certificate_is_signed_for_by_its_key_wherever_that_is() {
    let keys = Keys::new(&["ca", "held", "agents", "nobodys"]);
    let mut plan = plan(vec![keys.held("held", false)]);
    plan.certificates = ["nobodys", "agents", "held"]
        .map(|name| keys.certificate("ca", name))
        .to_vec();
    let agent = [keys.public("agents")];
    let found = candidates(&plan, Some(&agent));
    assert_eq!(
        shown(&found),
        ["agents-cert:a", "held-cert:h", "agents:a", "held:h"]
    );
    let KeySigner::Agent(blob) = &found.keys[0].signer else {
        panic!("the agent signs");
    };
    assert_eq!(*blob, agent[0].blob);
    assert_eq!(
        found.keys[0].algorithms[0].request,
        "ssh-ed25519-cert-v01@openssh.com"
    );
    assert_eq!(found.keys[0].algorithms[0].signature, "ssh-ed25519");
}

#[test]
fn a_certificate_beside_a_key_comes_before_it() {
    let keys = Keys::new(&["ca", "key"]);
    let mut plan = plan(vec![keys.held("key", true)]);
    plan.files[0].certificate = Some(keys.certificate("ca", "key"));
    assert_eq!(shown(&candidates(&plan, None)), ["key-cert:h", "key:h"]);
}

#[test]
fn forbidden_algorithms_and_small_rsa_keys_are_left_out() {
    let keys = Keys::new(&["ed25519"]);
    generate(&keys.path("rsa"), KeyType::Rsa2048, "").unwrap();
    let mut plan = plan(vec![keys.held("ed25519", true), keys.held("rsa", true)]);
    plan.algorithms = vec!["rsa-sha2-256", "rsa-sha2-512"];
    let found = candidates(&plan, None);
    assert_eq!(shown(&found), ["rsa:h"]);
    let names = found.keys[0]
        .algorithms
        .iter()
        .map(|known| known.request.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["rsa-sha2-256", "rsa-sha2-512"]);
    plan.required_rsa_size = 3072;
    assert!(candidates(&plan, None).keys.is_empty());
}

#[test]
fn an_encrypted_key_is_of_no_use_in_batch_mode_and_when_it_stays_locked() {
    let keys = Keys::new(&["encrypted"]);
    let mut plan = plan(vec![keys.locked("encrypted", true)]);
    plan.may_ask = false;
    assert!(candidates(&plan, Some(&[])).keys.is_empty());
    plan.may_ask = true;
    assert_eq!(shown(&candidates(&plan, Some(&[]))), ["encrypted:l"]);
    let SecretHalf::Locked(locked) = &plan.files[0].secret else {
        panic!("it is locked");
    };
    locked.settle(Err("wrong passphrase".to_owned()));
    assert!(candidates(&plan, Some(&[])).keys.is_empty());
}
