//! Keys that an agent holds.

use std::fs;
use std::path::{Path, PathBuf};

use sshoal_testbed::sshd::SshdSpec;
use sshoal_testbed::sshd::key_files::KeyType;

use crate::agent_process::Agent;
use crate::fake_agent::{FakeAgent, Manner};
use crate::fixture::{Scene, public_path, text};

#[test]
fn an_agent_signs_with_keys_of_every_type() {
    let types = [
        KeyType::Ed25519,
        KeyType::EcdsaNistP256,
        KeyType::EcdsaNistP384,
        KeyType::EcdsaNistP521,
        KeyType::Rsa2048,
    ];
    for key_type in types {
        let scene = Scene::with(&[]);
        let key = scene.key("key", key_type, "");
        scene.authorize(&key, "");
        let agent = Agent::holding(&[&key]);
        let ended = scene
            .run(&[], "echo in")
            .with_agent(&agent.socket())
            .finish();
        assert_eq!(ended.all_ok(), ["in\n"]);
        // The only key needs no probe.
        assert_eq!(scene.logged("Postponed publickey"), 0);
    }
}

#[test]
fn an_agent_serves_many_hosts() {
    let scene = Scene::new(&SshdSpec::new(20));
    let agent = Agent::holding(&[&scene.authorized("key")]);
    let ended = scene
        .run(&[], "echo in")
        .with_agent(&agent.socket())
        .finish();
    assert_eq!(ended.all_ok(), ["in\n"; 20]);
}

/// Five keys, of which the servers let the fourth in.
fn five_keys(scene: &Scene) -> Vec<PathBuf> {
    let keys: Vec<PathBuf> = (0..5)
        .map(|number| scene.key(&format!("key{number}"), KeyType::Ed25519, ""))
        .collect();
    scene.authorize(&keys[3], "");
    keys
}

fn agent_with(keys: &[PathBuf]) -> Agent {
    Agent::holding(&keys.iter().map(PathBuf::as_path).collect::<Vec<_>>())
}

#[test]
fn of_several_keys_each_is_probed_and_the_accepted_one_signs_elsewhere_at_once() {
    let scene = Scene::new(&SshdSpec::new(6));
    let agent = agent_with(&five_keys(&scene));
    let ended = scene
        .run(&["-p", "1"], "echo in")
        .with_agent(&agent.socket())
        .finish();
    assert_eq!(ended.all_ok(), ["in\n"; 6]);
    let failures = |host| scene.log(host).matches("Failed publickey").count();
    let postponed = |host| {
        scene
            .server
            .log(host)
            .matches("Postponed publickey")
            .count()
    };
    assert_eq!((failures(0), postponed(0)), (3, 1));
    for host in 1..6 {
        assert_eq!((failures(host), postponed(host)), (0, 0), "host {host}");
    }
}

#[test]
fn too_many_keys_for_the_server_are_said_to_be_and_one_named_is_enough() {
    let scene = Scene::with(&["MaxAuthTries 2"]);
    let keys = five_keys(&scene);
    let agent = agent_with(&keys);
    let said = scene
        .run(&[], "true")
        .with_agent(&agent.socket())
        .finish()
        .failed("auth-denied");
    assert!(said.contains("Too many authentication failures"), "{said}");
    assert!(said.contains("IdentitiesOnly"), "{said}");

    // The key's public half tells which of the agent's is meant.
    let public = public_path(&keys[3]);
    scene
        .run(&["-i", text(&public)], "true")
        .with_agent(&agent.socket())
        .finish()
        .all_ok();
    let mut run = scene.run(&["-i", text(&public)], "true");
    run.option("IdentitiesOnly=yes");
    run.with_agent(&agent.socket()).finish().all_ok();
}

#[test]
fn a_named_file_is_tried_before_the_agents_keys() {
    let scene = Scene::with(&["MaxAuthTries 2"]);
    let keys = five_keys(&scene);
    let agent = agent_with(&keys[..3]);
    scene
        .run(&["-i", text(&keys[3])], "true")
        .with_agent(&agent.socket())
        .finish()
        .all_ok();
    assert_eq!(scene.logged("Failed publickey"), 0);
}

#[test]
fn identities_only_keeps_the_agents_other_keys_back() {
    let scene = Scene::with(&[]);
    let keys = five_keys(&scene);
    let agent = agent_with(&keys);
    let mut run = scene.run(&["-i", text(&keys[0])], "true");
    run.option("IdentitiesOnly=yes");
    run.with_agent(&agent.socket())
        .finish()
        .failed("auth-denied");
    assert_eq!(scene.logged("Failed publickey"), 1);
}

#[test]
fn identity_agent_names_the_socket_or_none() {
    let scene = Scene::with(&[]);
    let agent = Agent::holding(&[&scene.authorized("key")]);
    let mut run = scene.run(&[], "true");
    run.option(&format!("IdentityAgent={}", agent.socket().display()));
    run.finish().all_ok();
    let mut run = scene.run(&[], "true").with_agent(&agent.socket());
    run.option("IdentityAgent=none");
    run.finish().failed("auth-denied");
}

#[test]
fn a_certificate_is_signed_for_by_the_agent() {
    let ca = tempfile::tempdir().unwrap();
    let authority = ca.path().join("ca");
    sshoal_testbed::sshd::key_files::generate(&authority, KeyType::Ed25519, "").unwrap();
    let scene = Scene::with(&[&format!(
        "TrustedUserCAKeys {}",
        public_path(&authority).display()
    )]);
    for key_type in [KeyType::Ed25519, KeyType::Rsa2048] {
        let name = format!("{key_type:?}");
        let key = scene.key(&name, key_type, "");
        let only_the_key = Agent::holding(&[&key]);
        let certificate = scene.certify(&authority, &key, &[scene.server.user()]);
        let mut run = scene.run(&[], "true");
        run.option(&format!("CertificateFile={}", certificate.display()));
        run.with_agent(&only_the_key.socket()).finish().all_ok();
        // ssh-add takes the certificate beside the key along.
        let both = Agent::holding(&[&key]);
        scene
            .run(&[], "true")
            .with_agent(&both.socket())
            .finish()
            .all_ok();
    }
}

#[test]
fn a_key_restricted_to_a_host_signs_for_it_and_for_no_other() {
    let scene = Scene::new(&SshdSpec::new(2));
    let key = scene.authorized("key");
    let agent = Agent::start();
    // ssh-add looks for the host's name without a port, and takes the destination literally.
    let address = scene.server.addresses()[0];
    let known = scene.path("destination");
    let host_key = scene.server.host_key_path(0, KeyType::Ed25519);
    let public = fs::read_to_string(public_path(&host_key)).unwrap();
    fs::write(&known, format!("destination {public}")).unwrap();
    agent.add(&key, &["-h", "destination", "-H", text(&known)]);

    let ended = scene
        .run(&["-x", &scene.server.addresses()[1].to_string()], "true")
        .with_agent(&agent.socket())
        .finish();
    ended.all_ok();
    let said = scene
        .run(&["-x", &address.to_string()], "true")
        .with_agent(&agent.socket())
        .finish()
        .failed("agent");
    assert!(said.contains("refused to sign"), "{said}");
    assert!(said.contains("ssh-add -h"), "{said}");
}

#[test]
fn a_dead_agent_is_named_and_is_no_obstacle_to_other_keys() {
    let scene = Scene::with(&[]);
    let key = scene.authorized("key");
    let mut agent = Agent::holding(&[&key]);
    agent.kill();
    let said = scene
        .run(&[], "true")
        .with_agent(&agent.socket())
        .finish()
        .failed("agent");
    assert!(said.contains(text(&agent.socket())), "{said}");
    assert!(said.contains("ssh-add -l"), "{said}");

    scene.authorized(".ssh/id_ed25519");
    scene
        .run(&[], "true")
        .with_agent(&agent.socket())
        .finish()
        .all_ok();
    scene
        .run(&[], "true")
        .with_agent(Path::new("/nowhere/socket"))
        .finish()
        .all_ok();
}

#[test]
fn an_agent_without_keys_says_so_and_is_no_obstacle() {
    let scene = Scene::with(&[]);
    let agent = Agent::start();
    let said = scene
        .run(&[], "true")
        .with_agent(&agent.socket())
        .finish()
        .failed("agent");
    assert!(said.contains("empty, or locked"), "{said}");
    scene.authorized(".ssh/id_ed25519");
    scene
        .run(&[], "true")
        .with_agent(&agent.socket())
        .finish()
        .all_ok();
}

#[test]
fn a_refusing_agent_fails_the_host_with_a_remedy_or_gives_way_to_the_next_key() {
    let scene = Scene::with(&[]);
    let key = scene.authorized("key");
    // It would have to ask somebody, and has nobody to ask with.
    let agent = Agent::start();
    agent.add(&key, &["-c"]);
    let said = scene
        .run(&[], "true")
        .with_agent(&agent.socket())
        .finish()
        .failed("agent");
    assert!(said.contains("refused to sign"), "{said}");
    assert!(said.contains("ssh-add -c"), "{said}");

    scene.authorized(".ssh/id_ed25519");
    scene
        .run(&[], "true")
        .with_agent(&agent.socket())
        .finish()
        .all_ok();
}

#[test]
fn an_agent_that_dies_after_it_showed_its_keys_is_named() {
    let scene = Scene::with(&[]);
    let agent = FakeAgent::start(&scene.authorized("key"), Manner::HangsUpOnSign);
    let said = scene
        .run(&[], "true")
        .with_agent(&agent.socket())
        .finish()
        .failed("agent");
    assert!(said.contains("closed the connection"), "{said}");
}

#[test]
fn an_agent_that_knows_no_session_bind_signs_all_the_same() {
    for manner in [Manner::RefusesToBind, Manner::HangsUpOnBind] {
        let scene = Scene::new(&SshdSpec::new(3));
        let agent = FakeAgent::start(&scene.authorized("key"), manner);
        let ended = scene
            .run(&[], "echo in")
            .with_agent(&agent.socket())
            .finish();
        assert_eq!(ended.all_ok(), ["in\n"; 3]);
    }
}

#[test]
fn a_silent_agent_fails_a_host_before_its_deadline_does() {
    let scene = Scene::with(&[]);
    let key = scene.authorized("key");
    for manner in [Manner::IsSilent, Manner::IsSilentOnSign] {
        let agent = FakeAgent::start(&key, manner);
        let said = scene
            .run(&["--login-timeout", "20"], "true")
            .with_agent(&agent.socket())
            .finish()
            .failed("agent");
        assert!(said.contains("did not answer within 10 s"), "{said}");
    }
    scene.authorized(".ssh/id_ed25519");
    let agent = FakeAgent::start(&key, Manner::IsSilentOnSign);
    scene
        .run(&["--login-timeout", "20"], "true")
        .with_agent(&agent.socket())
        .finish()
        .all_ok();
}

#[test]
fn signatures_in_flight_are_limited() {
    let scene = Scene::new(&SshdSpec::new(30));
    let agent = FakeAgent::start(&scene.authorized("key"), Manner::TakesItsTime);
    let ended = scene
        .run(&[], "echo in")
        .with_agent(&agent.socket())
        .finish();
    assert_eq!(ended.all_ok(), ["in\n"; 30]);
    let seen = agent.seen();
    assert_eq!((seen.lists, seen.signatures), (1, 30));
    assert!(seen.signatures_at_once <= 4, "{seen:?}");
}
