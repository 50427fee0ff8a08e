//! Keys and certificates in files.

use std::fs;

use sshoal_testbed::sshd::SshdSpec;
use sshoal_testbed::sshd::key_files::KeyType;

use crate::fixture::{Scene, public_path, text};

const TYPES: [KeyType; 5] = [
    KeyType::Ed25519,
    KeyType::EcdsaNistP256,
    KeyType::EcdsaNistP384,
    KeyType::EcdsaNistP521,
    KeyType::Rsa2048,
];

#[test]
fn keys_of_every_type_log_in() {
    let scene = Scene::with(&[]);
    for (number, key_type) in TYPES.into_iter().enumerate() {
        let key = scene.key(&format!("key{number}"), key_type, "");
        scene.authorize(&key, &format!("environment=\"WITH={number}\""));
        scene.run(&["-i", text(&key)], "true").finish().all_ok();
    }
    assert_eq!(scene.server.logins(), TYPES.len());
    // A key in memory is never probed.
    assert_eq!(scene.logged("Postponed publickey"), 0);
}

#[test]
fn an_rsa_key_signs_as_the_configuration_says() {
    const ALGORITHMS: [&str; 2] = ["rsa-sha2-256", "rsa-sha2-512"];
    for theirs in ALGORITHMS {
        let scene = Scene::with(&[&format!("PubkeyAcceptedAlgorithms {theirs}")]);
        let key = scene.key("key", KeyType::Rsa2048, "");
        scene.authorize(&key, "");
        for ours in ALGORITHMS {
            let mut run = scene.run(&["-i", text(&key)], "true");
            run.option(&format!("PubkeyAcceptedAlgorithms={ours}"));
            let ended = run.finish();
            if ours == theirs {
                ended.all_ok();
            } else {
                ended.failed("auth-denied");
            }
        }
    }
}

#[test]
fn a_wrong_first_key_runs_the_command_once() {
    let scene = Scene::with(&[]);
    let wrong = scene.key("wrong", KeyType::Ed25519, "");
    let right = scene.authorized("right");
    let counter = scene.server.dir().join("counter");
    fs::write(&counter, "").unwrap();
    // Whoever logs in may write here.
    fs::set_permissions(
        &counter,
        std::os::unix::fs::PermissionsExt::from_mode(0o666),
    )
    .unwrap();
    let command = format!("echo ran >> {}; echo done", counter.display());
    let ended = scene
        .run(&["-i", text(&wrong), "-i", text(&right)], &command)
        .finish();
    assert_eq!(ended.all_ok(), ["done\n"]);
    assert_eq!(fs::read_to_string(&counter).unwrap(), "ran\n");
    assert_eq!(scene.logged("Failed publickey"), 1);
}

#[test]
fn a_certificate_beside_its_key_logs_in_where_only_the_authority_is_trusted() {
    let ca = tempfile::tempdir().unwrap();
    let authority = ca.path().join("ca");
    sshoal_testbed::sshd::key_files::generate(&authority, KeyType::Ed25519, "").unwrap();
    let line = format!("TrustedUserCAKeys {}", public_path(&authority).display());
    for key_type in TYPES {
        let scene = Scene::with(&[&line]);
        let key = scene.key("key", key_type, "");
        scene
            .run(&["-i", text(&key)], "true")
            .finish()
            .failed("auth-denied");
        let certificate = scene.certify(&authority, &key, &[scene.server.user()]);
        scene.run(&["-i", text(&key)], "true").finish().all_ok();

        let elsewhere = scene.path("certificate");
        fs::rename(&certificate, &elsewhere).unwrap();
        scene
            .run(&["-i", text(&key)], "true")
            .finish()
            .failed("auth-denied");
        let mut run = scene.run(&["-i", text(&key)], "true");
        run.option(&format!("CertificateFile={}", elsewhere.display()));
        run.finish().all_ok();
    }
}

#[test]
fn default_keys_are_found_and_a_broken_one_is_no_obstacle() {
    let scene = Scene::with(&[]);
    scene.authorized(".ssh/id_ed25519");
    fs::write(scene.path(".ssh/id_rsa"), "not a key\n").unwrap();
    scene.run(&[], "true").finish().all_ok();
}

#[test]
fn a_key_that_was_named_must_be_usable_or_nothing_begins() {
    let scene = Scene::with(&[]);
    scene.authorized(".ssh/id_ed25519");
    let ended = scene.run(&["-i", "/nowhere/key"], "true").finish();
    assert_eq!(ended.status, Some(2));
    assert!(ended.stderr.contains("/nowhere/key"), "{}", ended.stderr);

    let open = scene.key("open", KeyType::Ed25519, "");
    fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let ended = scene.run(&["-i", text(&open)], "true").finish();
    assert_eq!(ended.status, Some(2));
    assert!(ended.stderr.contains("chmod 600"), "{}", ended.stderr);
    assert_eq!(scene.server.logins(), 0);

    // One that a configuration file names for many machines may be missing on this one.
    fs::write(
        scene.path(".ssh/config"),
        "IdentityFile ~/.ssh/absent\nIdentityFile ~/.ssh/id_ed25519\n",
    )
    .unwrap();
    scene.run(&[], "true").finish().all_ok();
}

#[test]
fn two_keys_are_given_where_two_are_asked_for() {
    let scene = Scene::with(&["AuthenticationMethods publickey,publickey"]);
    let first = scene.authorized("first");
    let second = scene.authorized("second");
    let ended = scene
        .run(&["-i", text(&first), "-i", text(&second)], "echo in")
        .finish();
    assert_eq!(ended.all_ok(), ["in\n"]);
    assert_eq!(scene.logged("Partial publickey"), 1);

    let ended = scene.run(&["-i", text(&first)], "true").finish();
    ended.failed("auth-denied");
}

#[test]
fn methods_that_are_switched_off_are_not_tried() {
    let scene = Scene::with(&[]);
    let key = scene.authorized("key");
    for option in [
        "PubkeyAuthentication=no",
        "PreferredAuthentications=password",
    ] {
        let mut run = scene.run(&["-i", text(&key)], "true");
        run.option(option);
        let said = run.finish().failed("auth-denied");
        assert!(said.contains("there was nothing to offer"), "{said}");
    }
    assert_eq!(scene.logged("Failed publickey"), 0);
}

#[test]
fn signatures_are_bound_to_the_host_key_unless_they_are_to_be_unbound() {
    let bound = "ssh-connection method publickey-hostbound-v00@openssh.com";
    let forms = [
        ("yes", bound),
        ("host-bound", bound),
        ("unbound", "ssh-connection method publickey "),
    ];
    for (value, method) in forms {
        let scene = Scene::with(&["LogVerbose auth2.c:*"]);
        let key = scene.authorized("key");
        let mut run = scene.run(&["-i", text(&key)], "echo in");
        run.option(&format!("PubkeyAuthentication={value}"));
        assert_eq!(run.finish().all_ok(), ["in\n"]);
        assert_eq!(scene.logged(method), 1, "{value}: {}", scene.log(0));
    }
}

#[test]
fn every_host_of_several_logs_in() {
    let scene = Scene::new(&SshdSpec::new(5));
    let key = scene.authorized("key");
    let ended = scene.run(&["-i", text(&key)], "echo in").finish();
    assert_eq!(ended.all_ok(), ["in\n"; 5]);
}

#[test]
fn too_many_wrong_keys_are_a_denial_and_not_a_lost_command() {
    let scene = Scene::with(&["MaxAuthTries 2"]);
    let wrong: Vec<_> = (0..3)
        .map(|number| scene.key(&format!("wrong{number}"), KeyType::Ed25519, ""))
        .collect();
    let options: Vec<&str> = wrong.iter().flat_map(|key| ["-i", text(key)]).collect();
    let said = scene.run(&options, "true").finish().failed("auth-denied");
    assert!(said.contains("Too many authentication failures"), "{said}");
    assert!(said.contains("2 keys were tried"), "{said}");
}
