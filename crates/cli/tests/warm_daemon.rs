//! The process that keeps connections: there is one, it says how it is, and ends when it is told to.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use rustix::process::{Signal, getpgid, getsid, kill_process};
use sshoal_testbed::sshd::SshdSpec;
use support::program::Running;
use support::warm::{Warm, has_ended};
use support::{wait_until, write_program};

#[test]
fn up_goes_to_the_background_once_and_says_how_many_hosts_it_keeps() {
    let warm = Warm::cold(&SshdSpec::new(3));
    let up = || Running::start(&mut warm.up_command(&[])).wait();
    up().expect(0).says(&["3 up"]);
    let pid = warm.pid();
    assert_eq!(getsid(Some(pid)), Ok(pid), "it has left the terminal");
    assert_eq!(getpgid(Some(pid)), Ok(pid));
    up().expect(0).says(&["3 are kept already"]);
    let mut here = warm.up_command(&["--foreground"]);
    Running::start(&mut here).wait().expect(2).says(&[
        "are kept already",
        "--foreground",
        "sshoal down",
    ]);
    assert_eq!(warm.shoal.hosts.logins(), 3);
}

#[test]
fn status_tells_of_each_host() {
    let warm = Warm::up(&SshdSpec::new(2));
    Running::start(&mut warm.ssh("head -c 1000 /dev/zero"))
        .wait()
        .expect(0);
    wait_until("the session is over", || {
        warm.status()["hosts"][0]["sessions"] == 0
    });
    let status = warm.status();
    let host = &status["hosts"][0];
    assert_eq!(host["host"], warm.shoal.name(0));
    assert_eq!(host["state"], "up");
    assert_eq!(host["control_path"], warm.socket(0).to_str().unwrap());
    assert_eq!(
        (
            host["connections"].as_u64(),
            host["sessions_in_all"].as_u64()
        ),
        (Some(1), Some(1))
    );
    assert_eq!(host["octets_received"], 1000);
    assert!(host["connect_ms"].as_f64().unwrap() > 0.0);
    wait_until("the round trip is measured", || {
        warm.status()["hosts"][0]["round_trip_ms"].as_f64() > Some(0.0)
    });
    assert_eq!(status["hosts"][1]["sessions_in_all"], 0);
    let text = warm.run(&["status"]).expect(0).stdout();
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(text.contains("1000 B"), "{text}");
}

#[test]
fn down_ends_some_hosts_or_all_and_leaves_nothing() {
    let warm = Warm::up(&SshdSpec::new(3));
    let pid = warm.pid();
    warm.run(&["down", "nobody"]).expect(2).says(&["nobody"]);
    warm.run(&["down", &warm.shoal.name(1)]).expect(0);
    wait_until("it is down", || {
        warm.status()["hosts"][1]["state"] == "down"
    });
    assert_eq!(warm.status()["hosts"][0]["state"], "up");
    warm.run(&["down"]).expect(0);
    wait_until("it is gone", || has_ended(pid));
    let folder = warm.socket(0).parent().unwrap().to_owned();
    let left: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|it| it.unwrap().file_name())
        .collect();
    assert_eq!(left, ["lock"]);
    assert!(warm.status().is_null());
    warm.run(&["status"]).expect(1);
    warm.run(&["down"])
        .expect(2)
        .says(&["no connections are kept"]);
    warm.shoal.wait_for_sessions();
}

#[test]
fn what_a_killed_one_leaves_is_no_obstacle() {
    let warm = Warm::up(&SshdSpec::new(1));
    let pid = warm.pid();
    kill_process(pid, Signal::KILL).unwrap();
    wait_until("it is gone", || warm.status().is_null());
    assert!(
        fs::metadata(warm.socket(0)).is_ok(),
        "its socket is still there"
    );
    Running::start(&mut warm.up_command(&[])).wait().expect(0);
    let ended = Running::start(&mut warm.ssh("echo again")).wait();
    assert_eq!(ended.expect(0).stdout(), "again\n");
    assert_eq!(warm.shoal.hosts.logins(), 2);
}

#[test]
fn a_signal_ends_it_in_order() {
    let warm = Warm::up(&SshdSpec::new(1));
    let pid = warm.pid();
    kill_process(pid, Signal::TERM).unwrap();
    wait_until("it is gone", || has_ended(pid));
    assert!(fs::metadata(warm.socket(0)).is_err());
    warm.shoal.wait_for_sessions();
}

#[test]
fn in_the_foreground_a_signal_ends_it_as_down_does() {
    for signal in [Signal::TERM, Signal::INT] {
        let warm = Warm::cold(&SshdSpec::new(2));
        let here = Running::start(&mut warm.up_command(&["--foreground"]));
        wait_until("both are up", || {
            let hosts = &warm.status()["hosts"];
            hosts[0]["state"] == "up" && hosts[1]["state"] == "up"
        });
        // One has a session, which is no reason to stay.
        let mut passenger = warm.ssh("echo in; cat");
        let mut passenger = passenger
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = [0; 3];
        passenger
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut said)
            .unwrap();
        kill_process(here.pid(), signal).unwrap();
        let ended = here.wait().expect(0);
        let said = ended.stderr();
        assert!(["", "sshoal: 2 up\n"].contains(&&said[..]), "{said}");
        assert_eq!(passenger.wait().unwrap().code(), Some(255));
        assert!(fs::metadata(warm.socket(0)).is_err());
        warm.shoal.wait_for_sessions();
    }
}

#[test]
fn in_the_foreground_a_signal_ends_logins_too_and_nothing_is_said_of_them() {
    let warm = Warm::cold(&SshdSpec::new(1));
    // Nobody answers: its connection waits for ever in the queue of a server that is stopped.
    kill_process(warm.shoal.hosts.pid(0), Signal::STOP).unwrap();
    let here = Running::start(&mut warm.up_command(&["--foreground"]));
    wait_until("it tries", || {
        warm.status()["hosts"][0]["state"] == "connecting"
    });
    kill_process(here.pid(), Signal::TERM).unwrap();
    let ended = here.wait().expect(0);
    kill_process(warm.shoal.hosts.pid(0), Signal::CONT).unwrap();
    assert_eq!(ended.stderr(), "");
}

#[test]
fn without_sessions_it_ends_by_itself() {
    let warm = Warm::cold(&SshdSpec::new(1));
    Running::start(&mut warm.up_command(&["--idle", "0.5"]))
        .wait()
        .expect(0);
    wait_until("it is gone", || warm.status().is_null());
    warm.shoal.wait_for_sessions();
}

#[test]
fn hosts_that_fail_are_named_and_the_others_are_kept() {
    let warm = Warm::cold(&SshdSpec::new(2));
    // The second host's key is not known.
    let known = warm.shoal.file("known_hosts");
    let text = fs::read_to_string(&known).unwrap();
    let name = warm.shoal.name(1);
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains(&name)).collect();
    fs::write(&known, lines.join("\n") + "\n").unwrap();
    let ended = Running::start(&mut warm.up_command(&[])).wait();
    ended
        .expect(3)
        .says(&["1 up, 1 failed", &name, "host-key-unknown"]);
    wait_until("what failed is given up", || {
        warm.status()["hosts"][1]["state"] == "down"
    });
    let status = warm.status();
    assert_eq!(status["hosts"][0]["state"], "up");
    assert!(status["hosts"][1]["detail"].is_string());
    assert!(fs::metadata(warm.socket(1)).is_err());
}

#[test]
fn where_every_host_fails_nothing_stays() {
    let warm = Warm::cold(&SshdSpec::new(1));
    fs::write(warm.shoal.file("known_hosts"), "").unwrap();
    Running::start(&mut warm.up_command(&[])).wait().expect(3);
    // It tells how it went before it ends.
    wait_until("nothing stays", || warm.status().is_null());
}

#[test]
fn a_passphrase_is_asked_for_before_it_goes_to_the_background() {
    let warm = Warm::cold(&SshdSpec::new(2));
    let key = warm.shoal.file("id_ed25519");
    let encrypted = Command::new("ssh-keygen")
        .args(["-q", "-p", "-N", "secret", "-f", &key])
        .status();
    assert!(encrypted.unwrap().success());
    let askpass = warm.shoal.file("askpass");
    write_program(&askpass, "#!/bin/sh\necho secret\n");
    let mut up = warm.up_command(&["-o", "BatchMode=no"]);
    up.env("SSH_ASKPASS", &askpass)
        .env("SSH_ASKPASS_REQUIRE", "force");
    Running::start(&mut up).wait().expect(0);
}

#[test]
fn a_folder_that_others_can_open_is_refused() {
    let warm = Warm::cold(&SshdSpec::new(1));
    let folder = warm.socket(0).parent().unwrap().to_owned();
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let ended = Running::start(&mut warm.up_command(&[])).wait();
    ended.expect(2).says(&["only you can open"]);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn the_lines_for_ssh_config_find_the_sockets() {
    let warm = Warm::up(&SshdSpec::new(1));
    let lines = warm.run(&["up", "--ssh-config"]).expect(0).stdout();
    let config = warm.shoal.file("ssh_config");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text + &lines).unwrap();
    let mut ssh = warm.program("ssh");
    ssh.args(["-F", &config, &warm.shoal.name(0), "echo shared"]);
    assert_eq!(
        Running::start(&mut ssh).wait().expect(0).stdout(),
        "shared\n"
    );
    assert_eq!(warm.shoal.hosts.logins(), 1);
}
