//! StrictHostKeyChecking ask: one prompt for the whole run, on a terminal, beside real sshd.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use sshoal_testbed::sshd::key_files::KeyType;
use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::program::Running;
use support::terminal::Screen;
use support::{Shoal, wait_until};

const PROMPT: &str = "Are you sure you want to continue connecting";

struct Fleet {
    shoal: Shoal<RealSshd>,
}

impl Fleet {
    fn new(hosts: u32) -> Fleet {
        let shoal = Shoal::real(&SshdSpec::new(hosts));
        fs::create_dir(shoal.user.home().join(".ssh")).unwrap();
        Fleet { shoal }
    }

    fn known_hosts(&self) -> PathBuf {
        self.shoal.user.home().join(".ssh/known_hosts")
    }

    /// Name, type and key of each line.
    fn known(&self) -> Vec<String> {
        let text = fs::read_to_string(self.known_hosts()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The lines that the hosts' own known_hosts has of them, without comments.
    fn true_lines(&self) -> Vec<String> {
        let text = fs::read_to_string(self.shoal.file("known_hosts")).unwrap();
        let three = |line: &str| line.split(' ').take(3).collect::<Vec<_>>().join(" ");
        text.lines().map(three).collect()
    }

    fn know(&self, host: usize) {
        fs::write(self.known_hosts(), self.true_lines()[host].clone() + "\n").unwrap();
    }

    fn fingerprint(&self, host: usize) -> String {
        let key = self.shoal.hosts.host_key_path(host, KeyType::Ed25519);
        let shown = Command::new("ssh-keygen").arg("-lf").arg(key).output();
        let shown = String::from_utf8(shown.unwrap().stdout).unwrap();
        shown.split(' ').nth(1).unwrap().to_owned()
    }

    fn command(&self, options: &[&str]) -> Command {
        let known = format!("UserKnownHostsFile={}", self.known_hosts().display());
        let mut command = self.shoal.command(&["-o", "StrictHostKeyChecking=ask"]);
        command.args(["-o", "BatchMode=no", "-o", &known]);
        command.args(options).args(["echo", "up"]);
        command
    }

    fn screen(&self) -> Screen {
        Screen::start(&self.command(&[]), 40, 200)
    }
}

#[test]
fn one_prompt_shows_all_unknown_hosts_and_yes_lets_them_run_and_records_them() {
    let fleet = Fleet::new(4);
    fleet.know(0);
    let mut screen = fleet.screen();
    screen.expect("The authenticity of 3 hosts can't be established: 127.2.0.[2-4]");
    for host in 1..4 {
        let (key, name) = (fleet.fingerprint(host), fleet.shoal.name(host));
        screen.expect(&format!("ED25519 {key} {name}"));
    }
    screen.expect(&format!("{PROMPT} (yes/no)? "));
    // The known host does not wait for the others' answer.
    wait_until("the known host is logged in to", || {
        fleet.shoal.hosts.logins() == 1
    });
    screen.type_in("maybe\n");
    screen.expect("Please type 'yes' or 'no': ");
    screen.type_in("yes\n");
    let (status, rest) = screen.finish();
    assert_eq!(status, Some(0), "{rest}");
    for host in 1..4 {
        assert!(
            rest.contains(&format!("{}: up", fleet.shoal.name(host))),
            "{rest}"
        );
    }
    assert!(!rest.contains(PROMPT), "{rest}");
    assert_eq!(fleet.known(), fleet.true_lines());
    assert_eq!(fleet.shoal.hosts.logins(), 4);
    Running::start(&mut fleet.command(&[])).wait().expect(0);
}

#[test]
fn what_is_to_be_said_of_all_hosts_is_said_once() {
    let fleet = Fleet::new(3);
    let command = fleet.command(&["-o", "VerifyHostKeyDNS=yes"]);
    let mut screen = Screen::start(&command, 40, 200);
    screen.expect("127.2.0.[1-3]: VerifyHostKeyDNS is not supported natively");
    screen.expect(PROMPT);
    screen.type_in("no\n");
    screen.finish();
    assert_eq!(fleet.shoal.hosts.logins(), 0);
}

#[test]
fn a_fingerprint_is_a_yes_where_there_is_but_one_key() {
    let fleet = Fleet::new(1);
    let mut screen = fleet.screen();
    screen.expect("The authenticity of 127.2.0.1 (127.2.0.1) can't be established.");
    screen.expect(&format!("{PROMPT} (yes/no/[fingerprint])? "));
    screen.type_in("SHA256:0000000000000000000000000000000000000000000\n");
    screen.expect("Please type 'yes', 'no' or the fingerprint: ");
    screen.type_in(&format!("{}\n", fleet.fingerprint(0)));
    let (status, rest) = screen.finish();
    assert_eq!(status, Some(0), "{rest}");
    assert_eq!(fleet.known(), fleet.true_lines());
}

#[test]
fn no_runs_nothing_and_records_nothing_and_known_hosts_are_none_the_worse() {
    let fleet = Fleet::new(3);
    fleet.know(2);
    let mut screen = fleet.screen();
    screen.expect(PROMPT);
    screen.type_in("no\n");
    let (status, rest) = screen.finish();
    assert_eq!(status, Some(3), "{rest}");
    for words in ["host-key-unknown: 127.2.0.[1-2]", "you did not accept it"] {
        assert!(rest.contains(words), "{rest}");
    }
    assert_eq!(fleet.known(), [fleet.true_lines()[2].clone()]);
    assert_eq!(fleet.shoal.hosts.logins(), 1);
}

#[test]
fn ctrl_c_at_the_prompt_ends_the_run_with_nothing_begun() {
    let fleet = Fleet::new(2);
    let mut screen = fleet.screen();
    screen.expect(PROMPT);
    screen.type_in("\u{3}");
    let (status, rest) = screen.finish();
    assert_eq!(status, Some(130), "{rest}");
    assert!(fleet.known().is_empty());
    assert_eq!(fleet.shoal.hosts.logins(), 0);
}

#[test]
fn a_jump_host_is_asked_about_before_the_hosts_behind_it() {
    let fleet = Fleet::new(2);
    let address = fleet.shoal.hosts.addresses()[0];
    let config = fs::read_to_string(fleet.shoal.file("ssh_config")).unwrap();
    let known = fleet.known_hosts();
    let own = format!(
        "StrictHostKeyChecking ask\nBatchMode no\nUserKnownHostsFile {}\n{config}",
        known.display()
    );
    fs::write(fleet.shoal.file("ssh_config"), own).unwrap();
    let (first, second) = (address.ip().to_string(), fleet.shoal.name(1));
    let command = fleet
        .shoal
        .configured(&["-w", &second, "-J", &first, "echo", "up"]);
    let mut screen = Screen::start(&command, 40, 200);
    screen.expect(&format!("The authenticity of {first}"));
    screen.expect(PROMPT);
    screen.type_in("yes\n");
    screen.expect(&format!(
        "The authenticity of {second} can't be established."
    ));
    screen.expect(PROMPT);
    screen.type_in("yes\n");
    screen.expect(&format!("{second}: up"));
    let (status, rest) = screen.finish();
    assert_eq!(status, Some(0), "{rest}");
    assert_eq!(fleet.known(), fleet.true_lines());
}

#[test]
fn two_keys_under_one_name_are_not_both_accepted_by_one_yes() {
    let fleet = Fleet::new(2);
    let command = fleet.command(&["-o", "HostKeyAlias=same", "--logins", "1"]);
    let mut screen = Screen::start(&command, 40, 200);
    screen.expect(&format!("{PROMPT} (yes/no)? "));
    screen.type_in("yes\n");
    let (status, rest) = screen.finish();
    assert_eq!(status, Some(3), "{rest}");
    assert!(rest.contains("host-key-changed"), "{rest}");
    assert_eq!(fleet.known().len(), 1);
}

#[test]
fn without_a_terminal_unknown_hosts_are_refused_with_what_to_do() {
    let fleet = Fleet::new(2);
    fleet.know(1);
    let ended = Running::start(&mut fleet.command(&[])).wait().expect(3);
    let ended = ended.says(&[
        "host-key-unknown: 127.2.0.1",
        "no terminal",
        "StrictHostKeyChecking=accept-new",
    ]);
    assert_eq!(ended.stdout(), "127.2.0.2: up\n");
    let dns = Running::start(&mut fleet.command(&["-o", "VerifyHostKeyDNS=yes"])).wait();
    dns.expect(3)
        .says(&["VerifyHostKeyDNS is not supported natively"]);
    // Nobody is to be asked in batch mode, and ssh says no more then.
    let batch = ["-o", "BatchMode=yes"];
    let mut command = fleet.shoal.command(&batch);
    let known = format!("UserKnownHostsFile={}", fleet.known_hosts().display());
    command.args(["-o", "StrictHostKeyChecking=ask", "-o", &known, "true"]);
    let (status, rest) = Screen::start(&command, 40, 200).finish();
    assert_eq!(status, Some(3), "{rest}");
    assert!(!rest.contains(PROMPT), "{rest}");
}
