//! Hosts are added to the process that keeps connections, and what has to be asked is asked by the `up` that adds them.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::process::Command;

use rustix::process::{Signal, kill_process};
use sshoal_testbed::sshd::SshdSpec;
use support::program::Running;
use support::terminal::Screen;
use support::wait_until;
use support::warm::{Warm, has_ended};

/// What has the user asked about unknown host keys.
const ASKS: [&str; 4] = ["-o", "BatchMode=no", "-o", "StrictHostKeyChecking=ask"];

/// `sshoal up` of one host, on a terminal, with questions.
fn asking(warm: &Warm, host: usize) -> Screen {
    let mut command = warm.program("sshoal");
    let (config, name) = (warm.shoal.file("ssh_config"), warm.shoal.name(host));
    command.args(["up", "-F", &config, &name]).args(ASKS);
    Screen::start(&command, 40, 200)
}

/// Nothing is known of this host's key any more.
fn unknow(warm: &Warm, host: usize) {
    let known = warm.shoal.file("known_hosts");
    let text = fs::read_to_string(&known).unwrap();
    let name = warm.shoal.name(host);
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains(&name)).collect();
    fs::write(&known, lines.join("\n") + "\n").unwrap();
}

fn states(warm: &Warm) -> Vec<String> {
    let status = warm.status();
    let hosts = status["hosts"].as_array().unwrap().iter();
    hosts
        .map(|it| it["state"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_second_up_adds_its_hosts_to_the_same_process_and_down_takes_some_away() {
    let warm = Warm::cold(&SshdSpec::new(3));
    warm.up_of(&[1]).expect(0).says(&["1 up"]);
    let pid = warm.pid();
    let name = warm.shoal.name(1);
    Running::start(&mut warm.up_command(&[]))
        .wait()
        .expect(0)
        .says(&["2 up", &format!("{name} is kept already")]);
    assert_eq!(warm.pid(), pid);
    assert_eq!(warm.shoal.hosts.logins(), 3);
    warm.run(&["down", &name]).expect(0);
    wait_until("it is down", || states(&warm) == ["down", "up", "up"]);
    warm.up_of(&[1]).expect(0).says(&["1 up"]);
    assert_eq!(warm.shoal.hosts.logins(), 4);
    assert_eq!(states(&warm), ["up", "up", "up"]);
    warm.run(&["down"]).expect(0);
    wait_until("it is gone", || has_ended(pid));
}

#[test]
fn of_many_ups_at_the_same_moment_one_begins_and_the_others_add() {
    let warm = Warm::cold(&SshdSpec::new(4));
    let ups: Vec<Running> = (0..8)
        .map(|number| Running::start(&mut warm.up_of_command(&[number % 4])))
        .collect();
    let said: String = ups
        .into_iter()
        .map(|up| up.wait().expect(0).stderr())
        .collect();
    assert_eq!(said.matches("1 up").count(), 4, "{said}");
    assert_eq!(said.matches("is kept already").count(), 4, "{said}");
    assert_eq!(states(&warm), ["up"; 4]);
    assert_eq!(warm.shoal.hosts.logins(), 4);
}

#[test]
fn an_unknown_host_key_is_asked_about_on_the_terminal_of_the_up_that_adds_the_host() {
    let warm = Warm::cold(&SshdSpec::new(2));
    unknow(&warm, 1);
    warm.up_of(&[0]).expect(0);
    let mut screen = asking(&warm, 1);
    screen.expect("can't be established");
    screen.expect("(yes/no/[fingerprint])? ");
    assert_eq!(states(&warm), ["up", "connecting"]);
    screen.type_in("yes\n");
    let (status, rest) = screen.finish();
    assert_eq!(status, Some(0), "{rest}");
    assert!(rest.contains("1 up"), "{rest}");
    assert_eq!(states(&warm), ["up", "up"]);
    let name = warm.shoal.name(1);
    wait_until("the key is recorded while the host is up", || {
        let known = fs::read_to_string(warm.shoal.file("known_hosts"));
        known.unwrap().contains(&name)
    });
}

#[test]
fn without_a_terminal_a_host_with_an_unknown_key_fails_with_the_remedy() {
    let warm = Warm::cold(&SshdSpec::new(2));
    unknow(&warm, 1);
    warm.up_of(&[0]).expect(0);
    let mut command = warm.up_of_command(&[1]);
    command.args(ASKS);
    Running::start(&mut command)
        .wait()
        .expect(3)
        .says(&["host-key-unknown", "on a terminal to be asked"]);
    assert_eq!(states(&warm), ["up", "down"]);
}

#[test]
fn a_passphrase_is_asked_for_where_the_user_is_and_kept_for_later_logins() {
    let warm = Warm::cold(&SshdSpec::new(1));
    let key = warm.shoal.file("id_ed25519");
    let mut encrypt = Command::new("ssh-keygen");
    encrypt.args(["-q", "-p", "-N", "se cret\\", "-f", &key]);
    assert!(encrypt.status().unwrap().success());
    let mut screen = asking(&warm, 0);
    screen.expect("Enter passphrase for key");
    screen.type_in("wrong\n");
    screen.expect("Bad passphrase");
    screen.type_in("se cret\\\n");
    let (status, rest) = screen.finish();
    assert_eq!(status, Some(0), "{rest}");
    warm.cut(0);
    wait_until("it is back", || warm.status()["hosts"][0]["logins"] == 2);
}

#[test]
fn an_up_that_is_given_up_while_it_asks_takes_its_hosts_along_and_no_others() {
    let warm = Warm::cold(&SshdSpec::new(2));
    unknow(&warm, 1);
    warm.up_of(&[0]).expect(0);
    let mut screen = asking(&warm, 1);
    screen.expect("(yes/no/[fingerprint])? ");
    kill_process(screen.pid(), Signal::INT).unwrap();
    screen.finish();
    wait_until("the host is given up", || states(&warm) == ["up", "down"]);
    let ended = Running::start(&mut warm.ssh("echo still there")).wait();
    assert_eq!(ended.expect(0).stdout(), "still there\n");
    assert_eq!(warm.shoal.hosts.logins(), 1);
}

#[test]
fn who_asks_nonsense_or_nothing_is_no_obstacle() {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    let warm = Warm::up(&SshdSpec::new(1));
    let control = warm.socket(0).with_file_name("control");
    let silent: Vec<UnixStream> = (0..20)
        .map(|_| UnixStream::connect(&control).unwrap())
        .collect();
    for nonsense in [
        &b"\n"[..],
        b"{}\n",
        b"{\"ask\":\"up\",\"request\":\"7\"}\n",
        b"\xff\0\n",
    ] {
        let mut stream = UnixStream::connect(&control).unwrap();
        stream.write_all(nonsense).unwrap();
    }
    assert_eq!(states(&warm), ["up"]);
    drop(silent);
}
