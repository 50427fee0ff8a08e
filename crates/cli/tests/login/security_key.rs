//! FIDO keys: one touch at a time, and the host named.

use sshoal_testbed::sshd::key_files::KeyType;
use sshoal_testbed::sshd::{Layout, SshdSpec};

use crate::fake_agent::{FakeAgent, Manner};
use crate::fixture::Scene;

#[test]
fn one_touch_is_awaited_at_a_time_and_its_host_is_named() {
    let scene = Scene::new(&SshdSpec::new(6));
    let key = scene.key("key", KeyType::Ed25519, "");
    let agent = FakeAgent::start(&key, Manner::WaitsForTouch);
    scene.server.authorize(&agent.public_line()).unwrap();
    let ended = scene
        .run(&[], "echo in")
        .with_agent(&agent.socket())
        .finish();
    assert_eq!(ended.all_ok(), ["in\n"; 6]);
    let seen = agent.seen();
    assert_eq!((seen.signatures, seen.signatures_at_once), (6, 1));
    for address in scene.server.addresses() {
        let notice = format!("touch the security key to log in to {address}");
        assert_eq!(ended.stderr.matches(&notice).count(), 1, "{}", ended.stderr);
    }
}

#[test]
fn a_quiet_run_asks_for_the_touch_all_the_same() {
    let scene = Scene::with(&[]);
    let key = scene.key("key", KeyType::Ed25519, "");
    let agent = FakeAgent::start(&key, Manner::WaitsForTouch);
    scene.server.authorize(&agent.public_line()).unwrap();
    let ended = scene
        .run(&["-q"], "echo in")
        .with_agent(&agent.socket())
        .finish();
    assert_eq!(ended.all_ok(), ["in\n"]);
    let address = scene.server.addresses()[0];
    let notice = format!("touch the security key to log in to {address}");
    assert!(ended.stderr.contains(&notice), "{}", ended.stderr);
}

#[test]
fn hosts_do_not_connect_long_before_their_touch() {
    let mut spec = SshdSpec::new(16);
    spec.layout = Layout::Shared;
    let scene = Scene::new(&spec);
    let key = scene.key("key", KeyType::Ed25519, "");
    let agent = FakeAgent::start(&key, Manner::WaitsForTouch);
    scene.server.authorize(&agent.public_line()).unwrap();
    let ended = scene
        .run(&[], "echo in")
        .with_agent(&agent.socket())
        .finish();
    assert_eq!(ended.all_ok(), ["in\n"; 16]);
    assert_eq!(agent.seen().lists, 1);
    let (mut waiting, mut most) = (0, 0);
    for line in scene.log(0).lines() {
        waiting += i32::from(line.starts_with("Connection from "));
        waiting -= i32::from(line.starts_with("Accepted publickey "));
        most = most.max(waiting);
    }
    // Two connected, two logging in, and those that sshd has let in but not yet told of.
    assert!(most < 10, "{most} waited at once");
}

#[test]
fn nobody_touches_a_key_for_a_server_that_does_not_want_it() {
    let scene = Scene::with(&[]);
    let key = scene.key("key", KeyType::Ed25519, "");
    let agent = FakeAgent::start(&key, Manner::WaitsForTouch);
    let ended = scene.run(&[], "true").with_agent(&agent.socket()).finish();
    ended.failed("auth-denied");
    assert_eq!(agent.seen().signatures, 0);
    assert!(!ended.stderr.contains("touch"), "{}", ended.stderr);
}
