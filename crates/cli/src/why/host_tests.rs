//! What is made of the script's lines, good and bad; and the script itself, run by the shells that there are.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use super::*;

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// A session that says this, each line 10 ms after the one before.
pub(super) fn said(text: &str) -> ErrandDone {
    let lines = text.split_inclusive('\n').enumerate();
    ErrandDone {
        output: lines
            .map(|(number, line)| (ms(10 * number as u64), line.as_bytes().to_vec()))
            .collect(),
        took: ms(1000),
        end: ErrandEnd::Exit(Some(0)),
        ..ErrandDone::default()
    }
}

pub(super) fn learned(text: &str) -> Facts {
    let mut facts = Facts::default();
    learn(None, &said(text), &mut facts).unwrap();
    facts
}

#[test]
fn lines_become_facts_of_their_kinds() {
    let facts = learned(
        "host.begun yes\nhost.shell /bin/bash\nhost.load 0.42\nhost.sshrc no\nhost.user_rc yes\n\
         host.os \"Debian GNU/Linux 12 (bookworm)\"\nhost.pam.motd \n\
         host.pam.motd session optional pam_motd.so motd=/run/motd.dynamic\n\
         host.pam.motd session optional pam_motd.so noupdate\nhost.pam.systemd \n",
    );
    assert_eq!(facts.text("host.shell"), Some("/bin/bash"));
    assert_eq!(facts.number("host.load"), Some(0.42));
    assert_eq!(facts.yes("host.sshrc"), Some(false));
    assert_eq!(facts.yes("host.user_rc"), Some(true));
    assert_eq!(
        facts.text("host.os"),
        Some("Debian GNU/Linux 12 (bookworm)")
    );
    let motd = facts.text("host.pam.motd").unwrap();
    assert_eq!(motd.lines().count(), 2);
    assert_eq!(facts.text("host.pam.systemd"), Some(""));
}

#[test]
fn what_is_timed_is_timed_by_the_arrival_of_its_lines() {
    let facts = learned(
        "host.begun yes\n+host.id.time\n-host.id.time\n+host.motd_scripts.time\n\
         +motd /etc/update-motd.d/10-a\n-motd /etc/update-motd.d/10-a\n\
         +motd /etc/update-motd.d/20-b\nnoise\n-motd /etc/update-motd.d/20-b\n\
         -host.motd_scripts.time\n-host.home.time\n",
    );
    assert_eq!(facts.time("host.id.time"), Some(ms(10)));
    assert_eq!(facts.time("host.motd_scripts.time"), Some(ms(60)));
    let slowest = facts.text("host.motd_scripts.slowest");
    assert_eq!(slowest, Some("/etc/update-motd.d/20-b 20 ms"));
    assert_eq!(facts.time("host.home.time"), None);
}

#[test]
fn of_what_is_timed_again_the_least_counts() {
    let facts = learned(
        "host.begun yes\n+host.id.time\nnoise\n-host.id.time\n+host.id.time\n-host.id.time\n\
         +host.id.time\nnoise\n-host.id.time\n+motd /etc/update-motd.d/10-a\nnoise\n\
         -motd /etc/update-motd.d/10-a\n+motd /etc/update-motd.d/10-a\n-motd /etc/update-motd.d/10-a\n",
    );
    assert_eq!(facts.time("host.id.time"), Some(ms(10)));
    let slowest = facts.text("host.motd_scripts.slowest");
    assert_eq!(slowest, Some("/etc/update-motd.d/10-a 10 ms"));
}

#[test]
fn what_sshd_s_processes_have_waited_is_in_nanoseconds() {
    let facts = learned("host.begun yes\nhost.waited 12000000\n");
    assert_eq!(facts.time("host.contention.time"), Some(ms(12)));
    let none = learned("host.begun yes\nhost.waited much\n");
    assert_eq!(none.time("host.contention.time"), None);
}

#[test]
fn the_home_takes_what_other_folders_do_not() {
    let facts = learned(
        "host.begun yes\n+host.ls.time\n-host.ls.time\n\
         +host.home.time\nnoise\nnoise\n-host.home.time\n",
    );
    assert_eq!(facts.time("host.home.time"), Some(ms(20)));
}

#[test]
fn what_does_not_end_has_taken_until_the_end() {
    let facts = learned("host.begun yes\n+host.home.time\n");
    assert_eq!(facts.time("host.home.time"), Some(ms(990)));
}

#[test]
fn a_quota_is_a_share_of_one_processor_and_the_tightest_counts() {
    let facts = learned(
        "host.begun yes\nhost.cpu_quota max 100000\nhost.cpu_quota 5000 100000\n\
         host.cpu_quota 200000 100000\nhost.cpu_quota -1 100000\n",
    );
    assert_eq!(facts.number("host.cpu_quota"), Some(5.0));
    let none = learned("host.begun yes\nhost.cpu_quota max 100000\n");
    assert_eq!(none.number("host.cpu_quota"), None);
}

#[test]
fn of_throttling_what_came_since_the_first_login_counts() {
    let script = "host.begun yes\nhost.throttled.before 8 /a\nhost.throttled.after 9 /a\nhost.throttled.after 3 /b\n";
    let of = |first: Option<&str>| {
        let mut facts = Facts::default();
        let first = first.map(said);
        learn(first.as_ref(), &said(script), &mut facts).unwrap();
        facts.number("host.throttled")
    };
    assert_eq!(of(None), Some(1.0));
    let first = "host.begun yes\nhost.throttled.before 7 /a\nhost.throttled.before 0 /b\n";
    assert_eq!(of(Some(first)), Some(3.0));
}

#[test]
fn what_was_cut_short_has_taken_at_least_so_long() {
    let (begin, end) = ("+motd /a\nnoise\n", "-motd /a\n");
    let of = |lines: &str| {
        let facts = learned(&format!("host.begun yes\n{lines}"));
        facts.text("host.motd_scripts.slowest").map(str::to_owned)
    };
    let of = |lines: &str| of(lines).unwrap();
    assert_eq!(of(&format!("{begin}{end}")), "/a 20 ms");
    let cut = format!("{begin}{end}cut_short motd /a\n");
    assert_eq!(of(&cut), "/a at least 20 ms");
    let of_another = format!("{begin}{end}cut_short motd /b\n");
    assert_eq!(of(&of_another), "/a 20 ms");
    assert_eq!(of(begin), "/a at least 990 ms");
    let is_cut = |lines: &str| {
        learned(&format!("host.begun yes\n{lines}")).yes("host.motd_scripts.cut_short")
    };
    let whole = format!("{begin}{end}");
    assert_eq!([&cut, &whole].map(|it| is_cut(it)), [Some(true), None]);
}

#[test]
fn steal_is_a_share_of_the_time_in_between() {
    let of = |after: &str| {
        let before = "processor.before 100 0 100 800 0 0 0 50 0 0";
        let facts = learned(&format!(
            "host.begun yes\n{before}\nprocessor.after {after}\n"
        ));
        ["host.steal", "host.steal.share"].map(|name| facts.number(name))
    };
    // A half of what was no idle time and no wait for a disk.
    let shares = [Some(25.0), Some(50.0)];
    assert_eq!(of("105 0 105 815 5 0 0 60 0 0"), shares);
    assert_eq!(of("100 0 100 830 0 0 0 50 0 0"), [Some(0.0); 2]);
    let too_short = of("101 0 100 800 0 0 0 50 0 0");
    assert_eq!(too_short, [None; 2]);
    assert_eq!(of("101 0 nonsense"), [None; 2]);
}

#[test]
fn of_sshd_config_the_first_value_counts_and_each_host_key() {
    let facts = learned(
        "host.begun yes\nhost.sshd_config.readable yes\nsshd usedns yes\nsshd UseDNS no\n\
         sshd HostKey /etc/ssh/a\nsshd   HostKey=/etc/ssh/b\nsshd Port 22\nsshd \n",
    );
    assert_eq!(facts.text("host.sshd_config.UseDNS"), Some("yes"));
    let keys = facts.text("host.sshd_config.HostKey");
    assert_eq!(keys, Some("/etc/ssh/a /etc/ssh/b"));
    assert_eq!(facts.text("host.sshd_config.Port"), None);
}

#[test]
fn of_sshd_config_quotes_and_comments_are_no_part_of_a_value() {
    let facts = learned(
        "host.begun yes\nsshd UseDNS yes # since 2019\nsshd UsePAM \"no\"\n\
         sshd AuthorizedKeysCommand \"/usr/bin/keys #1\" %u\nsshd RevokedKeys /a#b\n",
    );
    assert_eq!(facts.text("host.sshd_config.UseDNS"), Some("yes"));
    assert_eq!(facts.text("host.sshd_config.UsePAM"), Some("no"));
    let command = facts.text("host.sshd_config.AuthorizedKeysCommand");
    assert_eq!(command, Some("/usr/bin/keys #1 %u"));
    assert_eq!(facts.text("host.sshd_config.RevokedKeys"), Some("/a#b"));
}

#[test]
fn what_stands_behind_a_match_is_noted_by_its_keyword_alone() {
    let facts = learned(
        "host.begun yes\nsshd X11Forwarding yes\nsshd.match permituserrc no\nsshd.match X11Forwarding no\n\
         sshd.match PermitUserRC yes\nsshd.match Port 22\n",
    );
    let behind = facts.text("host.sshd_config.in_match");
    assert_eq!(behind, Some("PermitUserRC X11Forwarding"));
    assert_eq!(facts.text("host.sshd_config.X11Forwarding"), Some("yes"));
    assert_eq!(facts.text("host.sshd_config.PermitUserRC"), None);
}

#[test]
fn what_is_not_understood_is_left_out() {
    let facts = learned(
        "host.begun yes\nhost.load much\nhost.pressure.cpu inf\nhost.unheard_of 1\n\
         login.kex mine\n+unheard of\n-unheard of\n\u{1b}[31mhost.load 1\nhost.load\n",
    );
    assert_eq!(facts.iter().count(), 0, "{facts:?}");
}

#[test]
fn what_is_said_before_the_script_is_no_fact() {
    let facts = learned("host.shell /bin/evil\nWelcome!\nhost.begun yes\nhost.load 1\n");
    assert_eq!(facts.text("host.shell"), None);
    assert_eq!(facts.number("host.load"), Some(1.0));
}

#[test]
fn long_lines_many_lines_and_controls_are_bounded() {
    let long = "x".repeat(100_000);
    let many = "host.pam.motd session optional pam_motd.so\n".repeat(1000);
    let facts = learned(&format!(
        "host.begun yes\nhost.shell {long}\nhost.os a\u{1b}[2Jb\n{many}"
    ));
    assert!(facts.text("host.shell").unwrap().len() <= MAX_LINE);
    assert!(!facts.text("host.os").unwrap().contains('\u{1b}'));
    assert!(facts.text("host.pam.motd").unwrap().len() <= MAX_TEXT);
}

#[test]
fn a_host_that_does_not_run_it_says_why() {
    let mut facts = Facts::default();
    let mut errand = said("\nThis account is currently not available.\n");
    errand.end = ErrandEnd::Exit(Some(1));
    let why = learn(None, &errand, &mut facts).unwrap_err();
    assert!(
        why.contains("status 1") && why.contains("not available"),
        "{why}"
    );
    errand.output.clear();
    errand.end = ErrandEnd::Refused("no session".to_owned());
    let why = learn(None, &errand, &mut facts).unwrap_err();
    assert!(why.contains("refused: no session"), "{why}");
    assert_eq!(facts.iter().count(), 0);
}

pub(super) const SHELLS: [&[&str]; 6] = [
    &["dash"],
    &["bash"],
    &["bash", "--posix"],
    &["busybox", "sh"],
    &["zsh", "--emulate", "sh"],
    &["sh"],
];

/// What a script says on this machine by that shell; `None` if there is no such shell.
fn said_by(shell: &[&str], script: &str) -> Option<String> {
    let mut command = Command::new(shell[0]);
    command.args(&shell[1..]).env("SHELL", "/bin/sh");
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = pipes.stderr(Stdio::piped()).spawn().ok()?;
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(script.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success() && errors.is_empty(),
        "{shell:?}: {errors}"
    );
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.ends_with("host.done yes\n"), "{shell:?}: {text}");
    Some(text)
}

#[test]
fn the_script_runs_by_every_sh_that_there_is() {
    let answers = SHELLS.iter().filter_map(|shell| said_by(shell, SCRIPT));
    let answers: Vec<String> = answers.collect();
    assert!(!answers.is_empty());
    for text in answers {
        let facts = learned(&text);
        assert_eq!(facts.text("host.shell"), Some("/bin/sh"));
        for time in ["host.id.time", "host.home.time", SHELL_STARTUP, SHELL_BARE] {
            assert!(facts.time(time).is_some(), "{time}: {facts:?}");
        }
        assert!(facts.number("host.load").is_some());
        assert!(facts.yes("host.user_rc").is_some());
        let names: Vec<&str> = facts.iter().map(|(name, _)| name).collect();
        assert!(
            names.iter().all(|name| name.starts_with("host.")),
            "{names:?}"
        );
        // A dead name server takes the time of nothing else.
        let files = text.find("\nhost.user_rc ").unwrap();
        assert!(!text[..files].contains("\n+"), "{text}");
        let scripts = text.matches("\n+host.motd_scripts.time\n").count();
        assert!(scripts <= 1, "they may do anything");
    }
}

/// What the script says of these files of sshd's, each with its text; `@` is the folder that stands for /etc/ssh.
fn of_sshd(files: &[(&str, &str)]) -> Vec<Facts> {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_string_lossy().into_owned();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text.replace('@', &place)).unwrap();
    }
    let script = SCRIPT.replace("/etc/ssh", &place);
    let answers = SHELLS.iter().filter_map(|shell| said_by(shell, &script));
    answers.map(|text| learned(&text)).collect()
}

#[test]
fn what_sshd_includes_is_read_where_it_says_so() {
    let all = of_sshd(&[
        (
            "sshd_config",
            "  # UseDNS no\nInclude @/first.d/*.conf \"more\" # all\nUseDNS=yes\nUsePAM no\nMaxStartups 1\n\
             Match User someone\nPermitUserRC no\nInclude others\nMatch all\nX11Forwarding no\n",
        ),
        ("first.d/10-a.conf", "usepam yes\nMatch Address 192.0.2.1\n"),
        ("first.d/20-b.conf", "MaxStartups 20\n"),
        ("first.d/ignored", "MaxStartups 30\n"),
        ("more", "HostKey /a\n"),
        ("others", "RevokedKeys /b\n"),
        // Nobody includes it.
        ("sshd_config.d/50-cloud.conf", "UseDNS no\n"),
    ]);
    assert!(!all.is_empty());
    for facts in all {
        let of = |keyword: &str| {
            facts
                .text(&format!("host.sshd_config.{keyword}"))
                .map(str::to_owned)
        };
        for (keyword, value) in [
            ("UseDNS", "yes"),
            ("UsePAM", "yes"),
            ("MaxStartups", "20"),
            ("HostKey", "/a"),
            ("X11Forwarding", "no"),
            ("in_match", "PermitUserRC RevokedKeys"),
        ] {
            assert_eq!(of(keyword).as_deref(), Some(value), "{facts:?}");
        }
        assert_eq!(facts.yes("host.sshd_config.readable"), Some(true));
    }
}

#[test]
fn of_a_configuration_that_is_not_read_as_a_whole_nothing_is_a_default() {
    for facts in of_sshd(&[("sshd_config", "UseDNS yes\nInclude sshd_config\n")]) {
        assert_eq!(facts.text("host.sshd_config.UseDNS"), Some("yes"));
        assert_eq!(facts.yes("host.sshd_config.readable"), Some(false));
    }
    for facts in of_sshd(&[]) {
        assert_eq!(facts.yes("host.sshd_config.readable"), None);
    }
}

proptest::proptest! {
    #[test]
    fn whatever_comes_nothing_breaks(octets in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400)) {
        let mut errand = said("host.begun yes\n");
        errand.output.push((ms(20), octets));
        let mut facts = Facts::default();
        proptest::prop_assert!(learn(None, &errand, &mut facts).is_ok());
    }
}
