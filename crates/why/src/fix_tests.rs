//! The script of fixes: what it backs up and changes, and the way back.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::*;
use crate::evidence::{Client, Evidence, Fact, Phase};
use crate::fixtures::{clean, clean_no_root, ms, slow, slow_of};

pub(super) fn slow_host() -> Evidence {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::FirstRequest, 11_000.0);
    evidence.facts.insert("host.sshd_config.UseDNS", "yes");
    evidence
        .facts
        .insert("host.getent_hosts.time", ms(10_000.0));
    slow(&mut evidence, Phase::ChannelOpen, 800.0);
    evidence.facts.insert("host.motd_scripts.time", ms(800.0));
    slow(&mut evidence, Phase::SignedRequest, 300.0);
    slow_of(&mut evidence, Client::Ssh, Phase::FirstRequest, 500.0);
    evidence
        .facts
        .insert("login.methods", "publickey,gssapi-with-mic");
    evidence
}

pub(super) fn script_of(evidence: &Evidence) -> String {
    script(&Diagnosis::of(evidence))
}

/// The lines of a function of the script.
fn function<'a>(script: &'a str, name: &str) -> &'a str {
    let (_, rest) = script.split_once(&format!("\n{name}() {{\n")).unwrap();
    rest.split_once("\n}\n").unwrap().0
}

#[test]
fn the_host_s_part_backs_up_changes_and_checks() {
    let script = script_of(&slow_host());
    let host = function(&script, "host");
    let places: Vec<usize> = [
        "check_sshd",
        "backup /etc/ssh/sshd_config",
        "prepend /etc/ssh/sshd_config <<'LINES'\nUseDNS no\nLINES\n",
        "backup /etc/pam.d/sshd",
        "edit_pam '",
        "# by hand, once it is known, in /etc/pam.d/sshd",
        "reload_sshd",
    ]
    .iter()
    .map(|words| {
        host.find(words)
            .unwrap_or_else(|| panic!("{words}: {host}"))
    })
    .collect();
    assert!(places.is_sorted(), "{host}");
    assert!(function(&script, "undo_host").contains("restore /etc/ssh/sshd_config"));
    assert_eq!(function(&script, "reload_host").trim(), "reload_sshd");
}

#[test]
fn lines_for_ssh_config_stand_in_a_block_of_the_host() {
    let script = script_of(&slow_host());
    let here = function(&script, "here");
    assert!(
        here.contains("Host web1\n    GSSAPIAuthentication no\nHost *\nLINES"),
        "{here}"
    );
    assert!(function(&script, "undo_here").contains("restore \"$HOME/.ssh/config\""));
}

#[test]
fn a_clean_login_changes_nothing() {
    let script = script_of(&clean_no_root(0.05));
    for part in ["here", "host"] {
        for name in [
            part.to_owned(),
            format!("undo_{part}"),
            format!("reload_{part}"),
        ] {
            assert_eq!(function(&script, &name).trim(), ":", "{name}");
        }
    }
    assert!(!script.contains("edit_pam") && !script.contains("check_sshd"));
}

#[test]
fn nothing_that_a_host_says_gets_into_the_script() {
    let foreign = "$(reboot)`reboot`';reboot;\nLINES\nreboot";
    let mut evidence = slow_host();
    let names: Vec<String> = evidence
        .facts
        .iter()
        .filter(|(_, fact)| matches!(fact, Fact::Text(_)))
        .map(|(name, _)| name.to_owned())
        .collect();
    for name in names {
        evidence.facts.insert(name, foreign);
    }
    evidence.facts.insert("host.sshd_config.UseDNS", "yes");
    evidence.identification = Some(format!("SSH-2.0-OpenSSH_9.2 {foreign}"));
    assert!(!script_of(&evidence).contains("reboot"));
}

#[test]
fn a_strange_name_of_a_host_stays_a_comment() {
    let mut evidence = slow_host();
    evidence.host = "web1\nreboot $(reboot)".to_owned();
    let script = script_of(&evidence);
    for line in script.lines().filter(|line| line.contains("reboot")) {
        assert!(line.trim_start().starts_with('#'), "{line}");
    }
    assert!(!function(&script, "here").contains("prepend"));
}

#[test]
fn a_pattern_is_a_plain_name_without_the_user() {
    assert_eq!(pattern("me@web1.example.org"), Some("web1.example.org"));
    assert_eq!(pattern("*"), None);
    assert_eq!(pattern("-oProxyCommand=x"), None);
    assert_eq!(pattern("a b"), None);
}

#[test]
fn what_is_suspected_or_looks_like_something_else_stands_as_a_comment() {
    let mut evidence = clean(0.05);
    slow(&mut evidence, Phase::FirstRequest, 11_000.0);
    let script = script_of(&evidence);
    let host = function(&script, "host");
    assert!(
        host.contains("# by hand, once it is known, in /etc/ssh/sshd_config:\n    #   UseDNS no\n"),
        "{host}"
    );
    check_that_nothing_is_done(host);
    // A banner's place is taken by the same words for two reasons.
    let mut evidence = clean(0.05);
    evidence
        .facts
        .insert("login.refused_text", "Exceeded MaxStartups");
    let script = script_of(&evidence);
    let host = function(&script, "host");
    assert!(
        host.contains("once it is not per-source-startups") && host.contains("#   MaxStartups"),
        "{host}"
    );
    check_that_nothing_is_done(host);
}

#[test]
fn of_an_sshd_with_another_file_the_usual_one_is_left_alone() {
    let mut evidence = slow_host();
    evidence
        .facts
        .insert("host.sshd_config.file", "/srv/sshd/own_config");
    let diagnosis = Diagnosis::of(&evidence);
    let words = diagnosis.findings[0].evidence.join("\n");
    assert!(words.contains("/srv/sshd/own_config"), "{words}");
    let script = script(&diagnosis);
    assert!(!script.contains("own_config"));
    assert!(!script.contains("prepend /etc/ssh/sshd_config"));
    let host = function(&script, "host");
    assert!(host.contains("this sshd was started with"), "{host}");
    assert!(!host.contains("reload_sshd"));
}

#[track_caller]
fn check_that_nothing_is_done(part: &str) {
    let mut lines = part.lines().map(str::trim);
    assert!(
        lines.all(|line| line.starts_with('#') || line == ":"),
        "{part}"
    );
}

/// A host's files, and programs of its own, on which a script is run.
pub(super) struct Place(tempfile::TempDir);

const SHELLS: [&[&str]; 5] = [
    &["dash"],
    &["bash"],
    &["bash", "--posix"],
    &["busybox", "sh"],
    &["sh"],
];
pub(super) const PAM_SSHD: &str = "\
# session optional pam_motd.so off
@include common-session
-session   optional     pam_motd.so  motd=/run/motd.dynamic # [1]
session [success=ok \\
    default=ignore] pam_env.so
session optional pam_motd.so \\
    motd=/run/other
session optional pam_motd.so noupdate
";
const PAM_COMMON: &str = "session optional pam_motd.so # of all\n";
pub(super) const SSHD_CONFIG: &str = "# mine\nPort 22\n";
/// Takes every configuration but a bad one.
const SSHD: &str = "#!/bin/sh\n! grep -q Bad @/etc/ssh/sshd_config\n";
const SYSTEMCTL: &str = "#!/bin/sh\necho \"$*\" >>@/reloads\n";

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        for folder in [
            "etc/ssh/sshd_config.d",
            "etc/pam.d",
            "home/.ssh",
            "bin",
            "run",
        ] {
            fs::create_dir_all(place.path(folder)).unwrap();
        }
        place.write("etc/ssh/sshd_config", SSHD_CONFIG);
        place.write("etc/pam.d/sshd", PAM_SSHD);
        place.write("etc/pam.d/common-session", PAM_COMMON);
        place.write("etc/passwd", "me:x:1000:1000::@/home:/bin/sh\n");
        place.program("sshd", SSHD);
        place.program("systemctl", SYSTEMCTL);
        place.program("service", "#!/bin/sh\nexit 1\n");
        place.program("getent", "#!/bin/sh\ncat @/etc/passwd\n");
        place
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Its own folder is what `@/` stands for.
    pub(super) fn write(&self, name: &str, text: &str) {
        let root = format!("{}/", self.0.path().display());
        fs::write(self.path(name), text.replace("@/", &root)).unwrap();
    }

    pub(super) fn program(&self, name: &str, text: &str) {
        // By a process of its own: a file that is open for writing here, if only in a fork, could not be executed.
        self.write("program", text);
        let mut install = Command::new("install");
        let (from, to) = (self.path("program"), self.path(&format!("bin/{name}")));
        let installed = install.args(["-m", "755"]).args([from, to]).status();
        assert!(installed.unwrap().success());
    }

    pub(super) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Begins a script by a shell, with these words. `None` if there is no such shell.
    pub(super) fn start(&self, shell: &[&str], script: &str, words: &[&str]) -> Option<Child> {
        let root = self.0.path().to_string_lossy().into_owned();
        let script = script
            .replace("/etc/", &format!("{root}/etc/"))
            .replace("/var/run/", &format!("{root}/run/"))
            .replace(" /run/", &format!(" {root}/run/"))
            .replace("folder=/run\n", &format!("folder={root}/run\n"))
            .replace("folder=/var/run\n", &format!("folder={root}/run\n"));
        fs::write(self.path("fix.sh"), script).unwrap();
        let mut command = Command::new(shell[0]);
        command
            .args(&shell[1..])
            .arg(self.path("fix.sh"))
            .args(words);
        let path = format!("{root}/bin:{}", std::env::var("PATH").unwrap());
        command.env("PATH", path).env("HOME", self.path("home"));
        let pipes = command.stdin(Stdio::null()).stdout(Stdio::piped());
        pipes.stderr(Stdio::piped()).spawn().ok()
    }

    /// Runs it to its end; whether it succeeds, and all that it says.
    pub(super) fn run(
        &self,
        shell: &[&str],
        script: &str,
        words: &[&str],
    ) -> Option<(bool, String)> {
        Some(Place::end(self.start(shell, script, words)?))
    }

    pub(super) fn end(script: Child) -> (bool, String) {
        let output = script.wait_with_output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).unwrap())
    }

    /// The files of a folder that end in this way.
    pub(super) fn left(&self, folder: &str, with: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.contains(with)).collect()
    }
}

/// By each shell that there is, on a host of its own.
pub(super) fn by_each_shell(test: impl Fn(&Place, &[&str])) {
    let mut shells = SHELLS.iter().filter(|shell| {
        let found = Command::new(shell[0]).arg("-c").arg(":").output();
        found.is_ok()
    });
    let first = shells.next().unwrap();
    for shell in std::iter::once(first).chain(shells) {
        test(&Place::new(), shell);
    }
}

/// The name of the run, of what a script says at its end.
pub(super) fn run_of(said: &str) -> &str {
    let line = said
        .lines()
        .find(|line| line.starts_with("done; "))
        .unwrap();
    line.rsplit(' ').next().unwrap()
}

#[test]
fn a_run_changes_what_it_says_and_its_undo_puts_all_back() {
    let script = script_of(&slow_host());
    by_each_shell(|place, shell| {
        // What a run of long ago has left.
        place.write("etc/ssh/sshd_config.before-sshoal", "Port 1\n");
        let (is_done, said) = place.run(shell, &script, &["host"]).unwrap();
        assert!(is_done, "{shell:?}: {said}");
        assert_eq!(
            place.read("etc/ssh/sshd_config"),
            format!("UseDNS no\n{SSHD_CONFIG}")
        );
        let pam = place.read("etc/pam.d/sshd");
        let changed = [
            "# session optional pam_motd.so off",
            "@include common-session",
            "-session   optional     pam_motd.so noupdate  motd=/run/motd.dynamic # [1]",
            "session [success=ok \\",
            "    default=ignore] pam_env.so",
            "session optional pam_motd.so noupdate \\",
            "    motd=/run/other",
            "session optional pam_motd.so noupdate",
        ];
        assert_eq!(pam.lines().collect::<Vec<_>>(), changed, "{shell:?}");
        // Others go by it, too.
        assert_eq!(place.read("etc/pam.d/common-session"), PAM_COMMON);
        assert!(
            said.contains("left to you") && said.contains("common-session"),
            "{said}"
        );
        assert_eq!(place.read("reloads"), "reload ssh\n");
        let run = run_of(&said).to_owned();
        let (is_done, said) = place.run(shell, &script, &["undo-host", &run]).unwrap();
        assert!(is_done, "{shell:?}: {said}");
        assert_eq!(place.read("etc/ssh/sshd_config"), SSHD_CONFIG);
        assert_eq!(place.read("etc/pam.d/sshd"), PAM_SSHD);
        assert_eq!(place.read("reloads"), "reload ssh\nreload ssh\n");
        assert_eq!(place.left("etc/pam.d", "."), [""; 0]);
        // Once, and of no other run.
        for run in [run.as_str(), "20260101-000000-1"] {
            let (is_done, said) = place.run(shell, &script, &["undo-host", run]).unwrap();
            assert!(
                !is_done && said.contains("no file is left of a run"),
                "{said}"
            );
        }
    });
}

#[test]
fn what_somebody_has_changed_since_is_left_alone_and_the_rest_put_back() {
    let script = script_of(&slow_host());
    by_each_shell(|place, shell| {
        let (_, said) = place.run(shell, &script, &["host"]).unwrap();
        let run = run_of(&said).to_owned();
        let later = place.read("etc/ssh/sshd_config") + "PermitRootLogin no\n";
        place.write("etc/ssh/sshd_config", &later);
        let (is_done, said) = place.run(shell, &script, &["undo-host", &run]).unwrap();
        assert!(
            !is_done && said.contains("has been changed since"),
            "{shell:?}: {said}"
        );
        assert_eq!(place.read("etc/ssh/sshd_config"), later);
        assert_eq!(place.read("etc/pam.d/sshd"), PAM_SSHD);
        // What it was is still there.
        let kept = format!("etc/ssh/sshd_config.before-sshoal-{run}");
        assert_eq!(place.read(&kept), SSHD_CONFIG);
    });
}

#[test]
fn what_sshd_does_not_take_is_put_back_or_not_begun() {
    let script = script_of(&slow_host());
    by_each_shell(|place, shell| {
        place.write("etc/ssh/sshd_config", "Bad yes\n");
        let (is_done, said) = place.run(shell, &script, &["host"]).unwrap();
        assert!(
            !is_done && said.contains("does not take"),
            "{shell:?}: {said}"
        );
        assert_eq!(place.left("etc/ssh", "before"), [""; 0]);
        // The second time it is asked it says no.
        place.write("etc/ssh/sshd_config", SSHD_CONFIG);
        place.program(
            "sshd",
            "#!/bin/sh\n! grep -q UseDNS @/etc/ssh/sshd_config\n",
        );
        let (is_done, said) = place.run(shell, &script, &["host"]).unwrap();
        assert!(!is_done && said.contains("put back"), "{shell:?}: {said}");
        assert_eq!(place.read("etc/ssh/sshd_config"), SSHD_CONFIG);
        assert_eq!(place.read("etc/pam.d/sshd"), PAM_SSHD);
        assert_eq!(place.left("etc/ssh", "before"), [""; 0]);
        assert!(!place.path("reloads").exists());
    });
}

#[test]
fn a_file_that_is_missing_is_not_made_and_the_others_are_put_back() {
    let script = script_of(&slow_host());
    by_each_shell(|place, shell| {
        fs::remove_file(place.path("etc/pam.d/sshd")).unwrap();
        let (is_done, said) = place.run(shell, &script, &["host"]).unwrap();
        assert!(
            !is_done && said.contains("there is no"),
            "{shell:?}: {said}"
        );
        assert!(!place.path("etc/pam.d/sshd").exists());
        assert_eq!(place.read("etc/ssh/sshd_config"), SSHD_CONFIG);
    });
}

#[test]
fn where_nobody_reloads_sshd_that_is_said_and_all_is_done() {
    let script = script_of(&slow_host());
    by_each_shell(|place, shell| {
        place.program("systemctl", "#!/bin/sh\nexit 1\n");
        let (is_done, said) = place.run(shell, &script, &["host"]).unwrap();
        assert!(
            is_done && said.contains("have it read that"),
            "{shell:?}: {said}"
        );
        assert!(place.read("etc/ssh/sshd_config").starts_with("UseDNS no\n"));
    });
}

#[test]
fn use_dns_stays_where_clients_go_by_their_names() {
    let script = script_of(&slow_host());
    let key = "ssh-ed25519 AAAA me";
    let in_keys = |options: &str| ("home/.ssh/authorized_keys", format!("{options} {key}\n"));
    let in_config = |lines: &str| ("etc/ssh/sshd_config", format!("{SSHD_CONFIG}{lines}\n"));
    let nsswitch = |line: &str| ("etc/nsswitch.conf", format!("{line}\n"));
    by_each_shell(|place, shell| {
        for ((file, text), goes_by_names) in [
            (in_keys("from=\"*.example.org\",no-pty"), true),
            (in_keys("no-pty,from=\"192.0.2.1,gate\""), true),
            (in_keys("from=\"192.0.2.0/24,2001:db8::/32,!10.*\""), false),
            (
                in_config("Match User root Host *.example.org\n  X11Forwarding no"),
                true,
            ),
            (
                in_config("Match Address 192.0.2.1\n  AllowUsers me@192.0.2.1"),
                false,
            ),
            (in_config("AllowUsers you me@gate.example.org"), true),
            (in_config("HostbasedAuthentication yes"), true),
            (in_config("# Match Host x"), false),
            // What is not looked through may do so.
            (in_config("Include @/etc/ssh/site/*.conf"), true),
            (in_config("Include @/etc/ssh/sshd_config.d/*.conf"), false),
            (in_config("AuthorizedKeysCommand /bin/keys %u"), true),
            (in_config("AuthorizedKeysCommand none"), false),
            (nsswitch("passwd: files sss"), true),
            (nsswitch("passwd: files systemd"), false),
        ] {
            place.write("etc/nsswitch.conf", "");
            place.write("home/.ssh/authorized_keys", "");
            place.write("etc/ssh/sshd_config", SSHD_CONFIG);
            place.write(file, &text);
            let (is_done, said) = place.run(shell, &script, &["host"]).unwrap();
            assert!(is_done, "{shell:?}: {said}");
            let config = place.read("etc/ssh/sshd_config");
            assert_eq!(
                config.starts_with("UseDNS no\n"),
                !goes_by_names,
                "{text}: {said}"
            );
            assert_eq!(said.contains("left out"), goes_by_names, "{text}: {said}");
        }
        // Where this host has its keys.
        place.write(
            "etc/ssh/sshd_config",
            "AuthorizedKeysFile \"@/etc/keys-%u\"\n",
        );
        place.write("etc/keys-me", &in_keys("FROM=\"gate\"").1);
        let (_, said) = place.run(shell, &script, &["host"]).unwrap();
        assert!(
            said.contains("keys-me") && said.contains("left out"),
            "{said}"
        );
    });
}

#[test]
fn this_machine_s_file_may_be_new_and_may_be_a_link() {
    let script = script_of(&slow_host());
    by_each_shell(|place, shell| {
        let (is_done, said) = place.run(shell, &script, &["here"]).unwrap();
        assert!(is_done, "{shell:?}: {said}");
        let block = "Host web1\n    GSSAPIAuthentication no\nHost *\n";
        assert_eq!(place.read("home/.ssh/config"), block);
        fs::remove_file(place.path("home/.ssh/config")).unwrap();
        place.write("home/own", "Port 1\n");
        symlink(place.path("home/own"), place.path("home/.ssh/config")).unwrap();
        let (_, said) = place.run(shell, &script, &["here"]).unwrap();
        assert_eq!(place.read("home/own"), format!("{block}Port 1\n"), "{said}");
        assert!(place.path("home/.ssh/config").is_symlink());
        place
            .run(shell, &script, &["undo-here", run_of(&said)])
            .unwrap();
        assert_eq!(place.read("home/own"), "Port 1\n");
    });
}
