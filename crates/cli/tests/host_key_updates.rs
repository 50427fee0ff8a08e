//! UpdateHostKeys beside ssh: the same known_hosts before, the same server, the same known_hosts afterwards.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use sshoal_testbed::simulated::SimulationSpec;
use sshoal_testbed::sshd::key_files::KeyType;
use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::Shoal;
use support::program::{Ended, Running};
use support::terminal::Screen;

/// A key that no server has.
const GONE: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB";

/// Servers with three keys each.
struct Bench {
    shoal: Shoal<RealSshd>,
}

impl Bench {
    fn new(hosts: u32) -> Bench {
        let mut spec = SshdSpec::new(hosts);
        spec.host_keys = vec![KeyType::Ed25519, KeyType::EcdsaNistP256, KeyType::Rsa2048];
        Bench {
            shoal: Shoal::real(&spec),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.shoal.dir.path().join(name)
    }

    /// Type and key of a host's public key.
    fn key(&self, host: usize, key_type: KeyType) -> String {
        let path = self.shoal.hosts.host_key_path(host, key_type);
        let text = fs::read_to_string(path.with_extension("pub")).unwrap();
        text.split(' ')
            .take(2)
            .collect::<Vec<_>>()
            .join(" ")
            .trim()
            .to_owned()
    }

    /// As known_hosts names it.
    fn name(&self, host: usize) -> String {
        let address = self.shoal.hosts.addresses()[host];
        format!("[{}]:{}", address.ip(), address.port())
    }

    fn line(&self, host: usize, key_type: KeyType) -> String {
        format!("{} {}\n", self.name(host), self.key(host, key_type))
    }

    fn hashed(&self, host: usize, key_type: KeyType) -> String {
        let path = self.file("to_hash");
        fs::write(&path, self.line(host, key_type)).unwrap();
        let keygen = Command::new("ssh-keygen").arg("-Hf").arg(&path).output();
        assert!(keygen.unwrap().status.success());
        fs::read_to_string(path).unwrap()
    }

    fn sshoal(&self, files: &[PathBuf], options: &[&str]) -> Ended {
        let mut command = self.shoal.command(&["-o", &known_hosts_option(files)]);
        for option in options {
            command.args(["-o", option]);
        }
        Running::start(command.arg("true")).wait()
    }

    /// ssh stays until the server has proved its keys: `sleep` is a moment longer than `true`.
    fn ssh(&self, host: usize, files: &[PathBuf], options: &[&str]) -> bool {
        let mut command = self.shoal.user.command("ssh");
        command.args(["-F", &self.shoal.file("ssh_config"), "-o"]);
        command.arg(known_hosts_option(files));
        for option in options {
            command.args(["-o", option]);
        }
        let command = command.args([&self.shoal.name(host), "sleep 0.3"]);
        Running::start(command).wait().status.success()
    }

    /// Both programs with files of this content; what is in them then, which must be the same for both.
    #[track_caller]
    fn both(&self, contents: &[&str], options: &[&str]) -> Vec<String> {
        let after = ["ours", "theirs"].map(|whose| {
            let files: Vec<PathBuf> = (0..contents.len())
                .map(|number| self.file(&format!("{whose}{number}")))
                .collect();
            for (file, content) in files.iter().zip(contents) {
                fs::write(file, content).unwrap();
            }
            match whose {
                "ours" => drop(self.sshoal(&files, options).expect(0)),
                _ => assert!(self.ssh(0, &files, options)),
            }
            let texts = files.iter().map(|file| fs::read_to_string(file).unwrap());
            texts.collect::<Vec<_>>()
        });
        let [ours, theirs] = after;
        assert_eq!(ours, theirs);
        ours
    }
}

fn known_hosts_option(files: &[PathBuf]) -> String {
    let files: Vec<_> = files.iter().map(|file| file.to_str().unwrap()).collect();
    format!("UserKnownHostsFile={}", files.join(" "))
}

const YES: &str = "UpdateHostKeys=yes";

#[test]
fn new_keys_are_learned_and_old_ones_go_as_with_ssh() {
    let bench = Bench::new(1);
    let (name, ed25519) = (bench.name(0), bench.line(0, KeyType::Ed25519));
    let others = bench.line(0, KeyType::Rsa2048) + &bench.line(0, KeyType::EcdsaNistP256);
    let gone = format!("{name} {GONE}\n");
    let stranger =
        "# mine\nother.example.com ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAAQ==\n".to_owned();

    let learned = bench.both(&[&(stranger.clone() + &ed25519)], &[YES]);
    assert_eq!(learned[0].lines().count(), 5, "{learned:?}");
    assert!(learned[0].starts_with(&stranger) && learned[0].contains(&ed25519));
    // All is known: nothing changes.
    assert_eq!(bench.both(&[&learned[0]], &[YES]), learned);
    let all = ed25519.clone() + &others;
    assert_eq!(
        bench.both(&[&(gone.clone() + &all)], &[YES]),
        std::slice::from_ref(&all)
    );
    let renewed = bench.both(&[&(gone.clone() + &ed25519)], &[YES]);
    assert!(!renewed[0].contains(GONE) && renewed[0].lines().count() == 3);
    // The files behind the first only lose lines.
    let two = bench.both(&[&ed25519, &(gone.clone() + &stranger)], &[YES]);
    assert_eq!(two[1], stranger);
    let two = bench.both(&[&stranger, &ed25519], &[YES]);
    assert!(two[1].is_empty() && two[0].lines().count() == 5, "{two:?}");
}

#[test]
fn what_ssh_leaves_alone_is_left_alone() {
    let bench = Bench::new(1);
    let (name, line) = (bench.name(0), bench.line(0, KeyType::Ed25519));
    let key = bench.key(0, KeyType::Ed25519);
    let rsa = bench.key(0, KeyType::Rsa2048);
    let unchanged: [(&str, String, &[&str]); 9] = [
        ("off", line.clone(), &["UpdateHostKeys=no"]),
        ("the files are the user's own choice", line.clone(), &[]),
        ("ask, with a command", line.clone(), &["UpdateHostKeys=ask"]),
        ("a wildcard", format!("*,{name} {key}\n"), &[YES]),
        ("three names", format!("{name},a,b {key}\n"), &[YES]),
        (
            "a key under another name",
            format!("{line}b {rsa}\n"),
            &[YES],
        ),
        (
            "an old key under another name",
            format!("{line}{name} {GONE}\nb {GONE}\n"),
            &[YES],
        ),
        (
            "an authority",
            format!("{line}@cert-authority {name} {GONE}\n"),
            &[YES],
        ),
        (
            "a revocation",
            format!("{line}@revoked {name} {GONE}\n"),
            &[YES],
        ),
    ];
    for (why, content, options) in unchanged {
        assert_eq!(bench.both(&[&content], options), [content], "{why}");
    }
    // By a bare name, by a global file, or accepted unseen, a server has no say.
    let bare = format!("{} {key}\n", bench.shoal.name(0));
    assert_eq!(bench.both(&[&bare], &[YES]), [bare]);
    let global = bench.file("global");
    fs::write(&global, &line).unwrap();
    let global = format!("GlobalKnownHostsFile={}", global.display());
    assert_eq!(bench.both(&[""], &[YES, &global]), [""]);
    let accepted = ["StrictHostKeyChecking=accept-new", YES];
    assert_eq!(bench.both(&[""], &accepted), [line]);
}

#[test]
fn an_algorithm_that_is_not_wanted_is_not_learned() {
    let bench = Bench::new(1);
    let options = [YES, "HostKeyAlgorithms=ssh-ed25519,ecdsa-sha2-nistp256"];
    let learned = bench.both(&[&bench.line(0, KeyType::Ed25519)], &options);
    assert!(!learned[0].contains("ssh-rsa"), "{learned:?}");
    assert_eq!(learned[0].lines().count(), 2);
    // An RSA key proves others, and itself, by its own algorithm.
    let options = [YES, "HostKeyAlgorithms=rsa-sha2-256,ssh-ed25519"];
    let learned = bench.both(&[&bench.line(0, KeyType::Rsa2048)], &options);
    assert_eq!(learned[0].lines().count(), 2);
}

#[test]
fn a_key_that_is_too_short_to_log_in_by_is_not_learned_and_keeps_no_other_from_it() {
    let bench = Bench::new(1);
    let file = bench.file("short");
    fs::write(&file, bench.line(0, KeyType::Ed25519)).unwrap();
    let options = [YES, "RequiredRSASize=3072"];
    bench
        .sshoal(std::slice::from_ref(&file), &options)
        .expect(0);
    let text = fs::read_to_string(&file).unwrap();
    let both = [KeyType::Ed25519, KeyType::EcdsaNistP256].map(|own| bench.line(0, own));
    assert_eq!(text, both.concat());
}

#[test]
fn hashed_names_stay_hashed_and_are_found_by_ssh() {
    let bench = Bench::new(1);
    let file = bench.file("hashed");
    fs::write(&file, bench.hashed(0, KeyType::Ed25519)).unwrap();
    let files = [file.clone()];
    let options = [YES, "HashKnownHosts=yes"];
    bench
        .sshoal(&files, &options)
        .expect(0)
        .says(&["updated host keys in"]);
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.lines().all(|line| line.starts_with("|1|")), "{text}");
    assert!(bench.ssh(0, &files, &["HostKeyAlgorithms=rsa-sha2-512"]));
    let again = bench.sshoal(&files, &options).expect(0).stderr();
    assert!(!again.contains("host keys"), "{again}");
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn all_hosts_of_a_run_are_updated_in_one_write_and_a_login_costs_nothing_then() {
    let bench = Bench::new(8);
    let file = bench.file("all");
    let lines: Vec<String> = (0..8)
        .map(|host| bench.line(host, KeyType::Ed25519))
        .collect();
    fs::write(&file, lines.concat()).unwrap();
    let files = [file.clone()];
    let said = bench.sshoal(&files, &[YES]).expect(0);
    said.says(&["updated host keys in", "8 (127.2.0.[1-8])"]);
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text.lines().count(), 24);
    let before = fs::metadata(&file).unwrap().modified().unwrap();
    bench.sshoal(&files, &[YES]).expect(0);
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), before);
    for key_type in [KeyType::EcdsaNistP256, KeyType::Rsa2048] {
        for host in 0..8 {
            assert!(text.contains(&bench.line(host, key_type)));
        }
    }
}

#[test]
fn a_host_that_the_user_has_just_accepted_tells_its_other_keys_as_with_ssh() {
    let bench = Bench::new(1);
    let file = bench.file("asked");
    let mut command = bench.shoal.command(&["-o", "StrictHostKeyChecking=ask"]);
    command.args(["-o", "BatchMode=no", "-o", YES, "-o"]);
    command.args([&known_hosts_option(std::slice::from_ref(&file)), "true"]);
    let mut screen = Screen::start(&command, 40, 200);
    screen.expect("Are you sure you want to continue connecting");
    screen.type_in("yes\n");
    let (status, rest) = screen.finish();
    assert_eq!(status, Some(0), "{rest}");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.starts_with(&bench.line(0, KeyType::Ed25519)), "{text}");
    assert_eq!(text.lines().count(), 3, "{text}");
}

#[test]
fn a_server_that_tells_nothing_of_its_keys_costs_and_changes_nothing() {
    let mut spec = SimulationSpec::new(2);
    spec.base = [127, 31, 1, 0].into();
    let shoal = Shoal::simulate(&spec);
    let known = fs::read_to_string(shoal.file("known_hosts")).unwrap();
    shoal.run(&["-o", YES, "true"]).expect(0);
    assert_eq!(
        fs::read_to_string(shoal.file("known_hosts")).unwrap(),
        known
    );
}
