//! `--sudo`: as root on hosts with stock sshd and stock sudo, by rules that last as long as a test.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use sshoal_testbed::sshd::account::password_account;
use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::program::{Ended, Running};
use support::records::HostRecord;
use support::{Shoal, processes_of, shared_folder, write_program};
use tempfile::TempDir;

/// sudo's rules for the account `sshoal-pass`, one set at a time on this machine.
struct Rules {
    file: PathBuf,
    _lock: File,
}

impl Rules {
    /// `rules` as behind "ALL=(root)" in sudoers(5).
    fn allow(account: &str, rules: &str) -> Rules {
        let lock = File::create("/run/sshoal-testbed-sudo.lock").unwrap();
        lock.lock().unwrap();
        let file = PathBuf::from("/etc/sudoers.d/sshoal-testbed");
        let text = format!("Defaults:{account} !lecture\n{account} ALL=(root) {rules}\n");
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o440)).unwrap();
        Rules { file, _lock: lock }
    }
}

impl Drop for Rules {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file);
    }
}

/// Hosts, an account there with a password, and a user who knows it.
struct Scene {
    shoal: Shoal<RealSshd>,
    account: String,
    password: String,
    desk: TempDir,
    _rules: Rules,
}

impl Scene {
    fn new(hosts: u32, rules: &str) -> Scene {
        let account = password_account().unwrap();
        Scene {
            shoal: Shoal::real(&SshdSpec::new(hosts)),
            _rules: Rules::allow(&account.name, rules),
            account: account.name,
            password: account.password,
            desk: tempfile::tempdir().unwrap(),
        }
    }

    /// `sshoal run --sudo` as the account; the user answers questions with this.
    fn command(&self, answer: &str, arguments: &[&str]) -> Command {
        let desk = self.desk.path();
        let [asker, asked, known] = ["asker", "asked", "answer"].map(|name| desk.join(name));
        fs::write(&known, answer).unwrap();
        let lines = format!(
            "#!/bin/sh\necho \"$1\" >> {}\ncat {}\n",
            asked.display(),
            known.display()
        );
        write_program(&asker, lines);
        let mut command = self.shoal.command(&["-l", &self.account, "--sudo"]);
        command
            .args(arguments)
            .env("SSH_ASKPASS", &asker)
            .env("SSH_ASKPASS_REQUIRE", "force");
        command
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        Running::start(&mut self.command(&self.password, arguments)).wait()
    }

    /// What a command prints that ends well on the only host.
    fn prints(&self, arguments: &[&str]) -> String {
        let ended = self.run(&[&["--json"], arguments].concat()).expect(0);
        ended.records().hosts[0].stdout.clone().unwrap()
    }

    /// What the user was asked.
    fn asked(&self) -> String {
        fs::read_to_string(self.desk.path().join("asked")).unwrap_or_default()
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.shoal.file(name);
        fs::write(&path, text).unwrap();
        path
    }
}

/// Rules by which sudo wants the password, and by which it does not, for the shell that sshoal has it start.
const RULES: [&str; 4] = [
    "PASSWD: ALL",
    "NOPASSWD: ALL",
    "PASSWD: ALL, NOPASSWD: /bin/true, /usr/bin/true",
    "PASSWD: ALL, NOPASSWD: /bin/sh, /usr/bin/sh, /bin/dash, /usr/bin/dash",
];

#[test]
fn by_ssh_it_is_the_same() {
    for rules in &RULES[..2] {
        let scene = Scene::new(1, rules);
        let by_ssh = ["--transport", "openssh"];
        let input = scene.file("input", "one\ntwo\n");
        let arguments = [&by_ssh[..], &["--stdin", &input, "id -u; cat"]].concat();
        assert_eq!(scene.prints(&arguments), "0\none\ntwo\n", "{rules}");
    }
}

#[test]
fn commands_run_as_root_and_read_their_input_and_nothing_else() {
    for rules in RULES {
        let scene = Scene::new(1, rules);
        assert_eq!(scene.prints(&["id -u; wc -c"]), "0\n0\n", "{rules}");
        let input = scene.file("input", "one\ntwo\n");
        assert_eq!(
            scene.prints(&["--stdin", &input, "cat"]),
            "one\ntwo\n",
            "{rules}"
        );
        assert!(
            !scene
                .run(&["true"])
                .expect(0)
                .stderr()
                .contains(&scene.password)
        );
    }
}

#[test]
fn a_large_input_arrives_whole_behind_the_password() {
    let scene = Scene::new(2, "PASSWD: ALL");
    let input = scene.shoal.file("input");
    File::create(&input).unwrap().set_len(20_000_000).unwrap();
    let ended = scene.run(&["--stdin", &input, "wc -c"]).expect(0);
    assert_eq!(ended.stdout().matches(": 20000000\n").count(), 2);
}

#[test]
fn the_password_is_in_no_argument_and_no_variable_of_any_process() {
    for rules in &RULES[..2] {
        let scene = Scene::new(1, rules);
        // As root, all of the machine's processes are to be seen: our own, sshd, sudo, and the command itself.
        let line =
            "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'; true";
        let seen = scene.run(&["--json", line]).expect(0);
        let stdout = seen.stdout();
        assert!(stdout.contains("sshoal"), "processes are to be seen");
        assert!(!stdout.contains(&scene.password), "{rules}");
    }
}

#[test]
fn the_password_is_asked_for_once_for_all_hosts() {
    let scene = Scene::new(3, "PASSWD: ALL");
    scene.run(&["true"]).expect(0);
    assert_eq!(scene.asked(), "[sudo] password: \n");
    scene.run(&["--dry-run", "true"]).expect(0);
    assert_eq!(scene.asked().lines().count(), 1, "a dry run does not ask");
}

#[test]
fn a_wrong_password_runs_nothing_and_says_so_for_each_host() {
    let scene = Scene::new(2, "PASSWD: ALL");
    let marks = shared_folder();
    let line = format!("touch {}/%h", marks.path().display());
    // sudo asks three times, and must not take what is the command's for an answer.
    let input = scene.file("input", &format!("one\n{0}\n{0}\n", scene.password));
    let mut command = scene.command("open sesame", &["--stdin", &input, &line]);
    let ended = Running::start(&mut command).wait().expect(1);
    assert_eq!(
        ended
            .stderr()
            .matches(": sudo: 1 incorrect password attempt")
            .count(),
        2,
        "{}",
        ended.stderr()
    );
    assert!(!ended.stderr().contains("open sesame"));
    assert_eq!(fs::read_dir(marks.path()).unwrap().count(), 0);
}

#[test]
fn who_may_not_is_told_so() {
    let scene = Scene::new(1, "PASSWD: /bin/ls");
    let ended = scene.run(&["-S", "true"]).expect(1);
    ended.says(&["is not allowed to execute"]);
}

#[test]
fn statuses_and_quotes_pass_through() {
    for rules in &RULES[..2] {
        let scene = Scene::new(1, rules);
        scene.run(&["-S", "exit 7"]).expect(7);
        let line = r#"printf '%%s|' "a  b" 'it'"'"'s' $HOME \$x "%h""#.replace("%%", "%");
        let home = "/root";
        assert!(
            scene
                .prints(&[&line])
                .starts_with(&format!("a  b|it's|{home}|$x|{}", scene.shoal.name(0)))
        );
    }
}

#[test]
fn scripts_run_as_root_too_with_their_arguments_and_input() {
    for rules in &RULES[..2] {
        let scene = Scene::new(1, rules);
        let script = scene.file(
            "script",
            "#!/usr/bin/env bash\necho \"$(id -u) <$1> $(cat)\"\n",
        );
        let input = scene.file("input", "input\n");
        let printed = scene.prints(&["--stdin", &input, "--script", &script, "it's  %n"]);
        assert_eq!(
            printed,
            format!("0 <it's  {}> input\n", scene.shoal.name(0))
        );
    }
}

#[test]
fn without_an_answer_nothing_is_begun() {
    let scene = Scene::new(1, "PASSWD: ALL");
    let mut command = scene.command("", &["true"]);
    Running::start(&mut command)
        .wait()
        .expect(2)
        .says(&["nothing was entered"]);
    assert_eq!(scene.shoal.hosts.logins(), 0);
}

/// Seconds within which sudo has begun what ignores SIGTERM, on a busy machine, too.
const TIME: &str = "5";

/// A line that root's processes run until the mark is gone.
fn stubborn(marks: &TempDir) -> String {
    fs::write(marks.path().join("go"), "").unwrap();
    let marks = marks.path().display();
    format!("trap '' TERM; while [ -e {marks}/go ]; do sleep 0.1; done")
}

#[test]
fn a_command_of_root_whose_time_is_over_is_gone() {
    for rules in &RULES[..2] {
        let scene = Scene::new(1, rules);
        let marks = shared_folder();
        let limits = ["--json", "-u", TIME, "--kill-grace", "1"];
        let ended = scene.run(&[&limits[..], &[&stubborn(&marks)]].concat());
        let record = ended.expect(3).records().hosts.remove(0);
        let left = processes_of(marks.path());
        fs::remove_file(marks.path().join("go")).unwrap();
        assert_eq!(
            record.kill.as_deref(),
            Some("gone-after-kill"),
            "{rules}: {record:?}"
        );
        assert_eq!(left, [0u32; 0], "{rules}");
    }
}

/// What is said of a line with a script that only root runs, and that ignores SIGTERM; and whether it has gone.
fn end_by_the_way(rules: &str, line: &str) -> (HostRecord, bool) {
    let scene = Scene::new(1, rules);
    let marks = shared_folder();
    let script = marks.path().join("stubborn");
    write_program(&script, format!("#!/bin/sh\n{}\n", stubborn(&marks)));
    let line = line.replace('@', script.to_str().unwrap());
    let limits = ["--json", "-u", TIME, "--kill-grace", "1", &line];
    let mut command = scene.shoal.command(&["-l", &scene.account]);
    let ended = Running::start(command.args(limits)).wait();
    let left = processes_of(marks.path());
    fs::remove_file(marks.path().join("go")).unwrap();
    (ended.expect(3).records().hosts.remove(0), left.is_empty())
}

#[test]
fn what_a_user_runs_by_sudo_alone_is_gone_too_and_where_it_is_not_that_is_said() {
    let (record, is_gone) = end_by_the_way("NOPASSWD: ALL", "exec sudo @");
    assert_eq!(
        record.kill.as_deref(),
        Some("gone-after-kill"),
        "{record:?}"
    );
    assert!(is_gone);
    let not_ours = "NOPASSWD: /bin/true, /tmp/.*/stubborn";
    let detail = |(record, is_gone): (HostRecord, bool)| {
        assert_eq!(record.kill.as_deref(), Some("not-confirmed"), "{record:?}");
        assert!(!is_gone);
        record.kill_detail.unwrap()
    };
    let foreign = detail(end_by_the_way(not_ours, "exec sudo @"));
    assert!(foreign.contains("not ours to end"), "{foreign}");
    // The shell is ended by the server's signal, and leaves sudo to nobody.
    let orphan = detail(end_by_the_way(not_ours, "sudo @; true"));
    assert!(orphan.contains("a sudo is left"), "{orphan}");
}

#[test]
fn the_password_goes_to_no_host_whose_key_has_changed() {
    let shoal = Shoal::simulated(1, &["0=wrong-host-key"]);
    let asker = shoal.file("asker");
    write_program(&asker, "#!/bin/sh\necho secret\n");
    let run = |arguments: &[&str]| {
        let no = ["-o", "StrictHostKeyChecking=no", "--json"];
        let mut command = shoal.command(&[&no, arguments].concat());
        command
            .env("SSH_ASKPASS", &asker)
            .env("SSH_ASKPASS_REQUIRE", "force");
        Running::start(&mut command).wait()
    };
    let records = run(&["--sudo", "id"]).expect(3).records();
    assert_eq!(records.hosts[0].failure(), "host-key-changed");
    assert_eq!(
        (shoal.hosts.totals().logins, shoal.hosts.totals().execs),
        (0, 0)
    );
    run(&["true"]).expect(0);
}

#[test]
fn a_plan_asks_for_the_password_once_and_before_its_first_step() {
    let scene = Scene::new(2, "ALL");
    let plan = scene.desk.path().join("plan.toml");
    let text = format!(
        "[defaults]\nconfig = '{}'\nhosts-file = '{}'\nlogin = '{}'\nsudo = true\n[step.a]\nrun = 'id -u'\n[step.b]\nafter = 'a'\nrun = 'id -u'\n",
        scene.shoal.file("ssh_config"),
        scene.shoal.file("hosts"),
        scene.account
    );
    fs::write(&plan, text).unwrap();
    let asking = scene.command(&scene.password, &[]);
    let mut command = scene.shoal.user.command(env!("CARGO_BIN_EXE_sshoal"));
    command.args(["plan", "run"]).arg(&plan);
    for (name, value) in asking.get_envs() {
        command.env(name, value.unwrap());
    }
    let ended = Running::start(&mut command).wait().expect(0);
    let roots = ended
        .stdout()
        .lines()
        .filter(|line| line.ends_with(": 0"))
        .count();
    assert_eq!(roots, 4, "{}", ended.stdout());
    let asked = fs::read_to_string(scene.desk.path().join("asked")).unwrap();
    assert_eq!(asked, "[sudo] password: \n");
}
