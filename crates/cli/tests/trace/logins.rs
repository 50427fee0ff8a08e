//! `sshoal why --trace`: logins to real sshd with PAM.

use std::fs;
use std::net::SocketAddrV4;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use serde_json::Value;
use sshoal_testbed::slow::{Injection, SlowError, SlowHost, SlowSpec};

use crate::may_trace;
use crate::support::User;
use crate::support::program::Running;

/// How often a login is given the chance to be quick.
const TRIES: u32 = 5;
/// A file that each host has for itself.
const HOSTS_OWN: &str = "/etc/pam.d/sshd";

/// A slow host on which one may become root.
pub(crate) struct Host {
    host: SlowHost,
    user: User,
}

impl Host {
    /// `None` where there can be none, as in most containers.
    pub(crate) fn start(injections: &[Injection]) -> Option<Host> {
        let mut spec = SlowSpec::new(injections);
        spec.sudo = true;
        match SlowHost::start_spec(&spec) {
            Err(error @ (SlowError::NoView { .. } | SlowError::Impossible { .. })) => {
                eprintln!("not tested: {error}");
                None
            }
            host => Some(Host {
                host: host.unwrap(),
                user: User::new(),
            }),
        }
    }

    /// `sshoal why` on it.
    pub(crate) fn why(&self, words: &[&str]) -> Command {
        let mut command = self.user.command(env!("CARGO_BIN_EXE_sshoal"));
        command.arg("why").arg(self.host.name());
        command.arg("-F").arg(self.host.ssh_config()).args(words);
        command
    }

    /// What `--json` says of a login that was traced.
    #[track_caller]
    pub(crate) fn traced(&self) -> Value {
        let found = self.followed("");
        assert_eq!(found["tier"], "root", "{}", found["tier_notes"]);
        found
    }

    /// What it says of one that was followed without some of what the kernel has, named with commas between.
    #[track_caller]
    pub(crate) fn followed(&self, without: &str) -> Value {
        let words = ["--trace", "--repeat", "1", "--no-ssh", "--json"];
        let mut command = self.why(&words);
        let ended = Running::start(command.env("SSHOAL_TRACE_WITHOUT", without)).wait();
        let found: Value = serde_json::from_str(&ended.expect(0).stdout()).unwrap();
        assert!(found["trace"].is_object(), "{}", found["tier_notes"]);
        // Not even for a moment.
        assert_eq!(started_tracers(self), [0; 0]);
        found
    }

    /// The folder of its client's files, and where it listens.
    pub(crate) fn client(&self) -> (&Path, SocketAddrV4) {
        (self.host.dir(), self.host.address())
    }

    /// A program that runs in the host's mounts, as root, until what this gives is dropped.
    pub(crate) fn run(&self, words: &[&str]) -> Child {
        let mounts = format!("--mount=/proc/{}/ns/mnt", self.host.pid().as_raw_nonzero());
        let mut command = Command::new("nsenter");
        command.arg(&mounts).args(words).spawn().unwrap()
    }

    /// Runs lines of a shell in the host's mounts, as root.
    #[track_caller]
    pub(crate) fn enter(&self, lines: &str) {
        let mounts = format!("--mount=/proc/{}/ns/mnt", self.host.pid().as_raw_nonzero());
        let mut command = Command::new("nsenter");
        let ended = command.args([&mounts, "sh", "-ec", lines]).status();
        assert!(ended.unwrap().success(), "{lines}");
    }

    /// A file as the host sees it.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.host.root().join(path.trim_start_matches('/'))
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        fs::write(self.path(path), text).unwrap();
    }

    /// Another text for a file that is there, which keeps its mode.
    pub(crate) fn replace(&self, path: &str, text: &str) {
        assert!(self.path(path).exists());
        self.write(path, text);
    }
}

#[track_caller]
fn parsed(running: Running) -> Value {
    let ended = running.wait().expect(0);
    let found: Value = serde_json::from_str(&ended.stdout()).unwrap();
    assert_eq!(found["tier"], "root", "{}", found["tier_notes"]);
    found
}

/// The tracers that run on a host, watchers among them: programs without a name any more.
pub(crate) fn started_tracers(host: &Host) -> Vec<u32> {
    // It has mounts of its own, but the host's files.
    let inode = |path: &str| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    let own = inode(&host.path(HOSTS_OWN).to_string_lossy());
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_tracer = |pid: &u32| {
        let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        program.to_string_lossy().contains("/sshoal.")
            && inode(&format!("/proc/{pid}/root{HOSTS_OWN}")) == own
    };
    pids.filter(is_tracer).collect()
}

pub(crate) fn processes(found: &Value) -> &Vec<Value> {
    found["trace"]["processes"].as_array().unwrap()
}

pub(crate) fn ran(process: &Value, program: &str) -> bool {
    let programs = process["programs"].as_array().unwrap();
    programs.iter().any(|it| it["file"] == program)
}

/// The parts are the whole, but for what is lost by rounding.
#[track_caller]
pub(crate) fn check_sum(found: &Value) {
    let trace = &found["trace"];
    let wall = trace["wall_us"].as_u64().unwrap();
    let shares = trace["shares_us"].as_object().unwrap();
    let sum: u64 = shares.values().map(|share| share.as_u64().unwrap()).sum();
    assert!(
        sum <= wall && sum + shares.len() as u64 > wall,
        "{sum} {wall}"
    );
    let path = trace["path"].as_array().unwrap();
    let mut until = 0;
    for piece in path {
        assert_eq!(piece["start_us"].as_u64(), Some(until));
        until = piece["end_us"].as_u64().unwrap();
    }
    assert_eq!(until, wall);
    assert_eq!(trace["lost"], 0);
}

/// What is found first; on a busy host what its processors are short of may cost more.
#[track_caller]
fn first_found(found: &Value) -> &Value {
    let mut findings = found["findings"].as_array().unwrap().iter();
    let own = findings.find(|finding| finding["cause"] != "cpu-pressure");
    own.unwrap_or_else(|| panic!("{:#}", found["findings"]))
}

/// What a script's processes have told, in the order of their birth: each one's number and its parent's.
fn told(host: &Host) -> Vec<(u64, u64)> {
    // Of the script's runs, that of the login that was traced is the last.
    let folder = fs::read_dir(host.path("/run/sshoal-slow")).unwrap();
    let told = folder
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains("told."))
        .max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap())
        .unwrap();
    let lines = fs::read_to_string(told).unwrap();
    let lines = lines.lines().map(|line| line.split_once(' ').unwrap());
    lines
        .map(|(pid, parent)| (pid.parse().unwrap(), parent.parse().unwrap()))
        .collect()
}

/// The places of their parents, in the order of birth; those of nobody among them are `first`'s.
fn links(family: &[(u64, u64)], first: u64) -> Vec<Option<usize>> {
    let link = |(_, parent): &(u64, u64)| {
        let place = family.iter().position(|(pid, _)| pid == parent);
        assert!(place.is_some() || *parent == first, "{parent} {family:?}");
        place
    };
    family.iter().map(link).collect()
}

#[test]
fn sixty_processes_of_update_motd_are_all_found_each_under_its_parent_and_it_is_named_first() {
    if !may_trace() {
        return;
    }
    let Some(host) = Host::start(&Injection::several("motd-processes:60").unwrap()) else {
        return;
    };
    const SCRIPT: &str = "/etc/update-motd.d/60-landscape";
    // Each tells its number and its parent's, one after the other. Of three one never runs a program, one makes the third, and that
    // runs one. All take two seconds at least, which no busy host takes for the rest.
    let own = "read -r pid comm state parent rest </proc/self/stat; echo $pid $parent >>$told";
    host.replace(
        SCRIPT,
        &format!(
            "#!/bin/sh\ntold=/run/sshoal-slow/told.$$\ni=0\n\
             while [ $i -lt 20 ]; do\n\
             ( {own} )\n( {own}; ( {own}; exec sleep 0.1 ); : )\ni=$((i + 1))\ndone\n"
        ),
    );
    let found = host.traced();
    check_sum(&found);
    assert_eq!(found["trace"]["matched"], true);
    let first = first_found(&found);
    assert_eq!(first["cause"], "pam-motd", "{}", found["findings"]);
    assert_eq!(first["certainty"], "proven");

    let all = processes(&found);
    let script = all.iter().find(|it| ran(it, SCRIPT)).unwrap();
    let number = |value: &Value| value.as_u64().unwrap();
    let mut of_script = vec![number(&script["pid"])];
    let mut family: Vec<&Value> = Vec::new();
    for process in all.iter().skip_while(|it| *it != script).skip(1) {
        if of_script.contains(&number(&process["parent"])) {
            of_script.push(number(&process["pid"]));
            family.push(process);
        }
    }
    let traced: Vec<(u64, u64)> = family
        .iter()
        .map(|it| (number(&it["pid"]), number(&it["parent"])))
        .collect();
    let told = told(&host);
    assert_eq!((told.len(), traced.len()), (60, 60), "{told:?} {traced:?}");
    // The kernel's numbers may be others than the host's: the links are the same.
    assert_eq!(links(&traced, of_script[0]), links(&told, told[0].1));
    for (place, process) in family.iter().enumerate() {
        let sleeps = ran(process, "/usr/bin/sleep") || ran(process, "/bin/sleep");
        assert_eq!(sleeps, place % 3 == 2, "{process}");
    }
}

#[test]
fn pam_s_modules_are_timed_and_named() {
    if !may_trace() {
        return;
    }
    let Some(host) = Host::start(&Injection::several("pam-account:2000").unwrap()) else {
        return;
    };
    let found = host.traced();
    check_sum(&found);
    let facts = &found["facts"];
    assert!(
        facts["trace.pam_account.time"].as_u64() >= Some(2_000_000),
        "{facts:#}"
    );
    let slowest = facts["trace.pam_account.slowest"].as_str().unwrap();
    assert!(slowest.starts_with("pam_exec.so "), "{slowest}");
    // A sleep that is put off before it begins is no wait for a timer as yet.
    assert!(
        facts["trace.timer.time"].as_u64() >= Some(1_000_000),
        "{facts:#}"
    );
    let first = first_found(&found);
    assert_eq!(first["cause"], "pam-account", "{}", found["findings"]);
    assert_eq!(first["certainty"], "proven");
    let calls = found["trace"]["calls"].as_array().unwrap();
    let is_session = |call: &&Value| call["function"] == "pam_sm_open_session";
    assert!(calls.iter().any(|call| is_session(&call)), "{calls:#?}");
}

#[test]
fn two_tracers_at_once_each_see_their_own_login() {
    if !may_trace() {
        return;
    }
    let Some(host) = Host::start(&Injection::several("motd:2000").unwrap()) else {
        return;
    };
    let words = ["--trace", "--repeat", "1", "--no-ssh", "--json"];
    let both = [0, 1].map(|_| Running::start(&mut host.why(&words)));
    let mut roots = Vec::new();
    for running in both {
        let found = parsed(running);
        check_sum(&found);
        assert_eq!(found["trace"]["matched"], true);
        // What the other one takes of the processors may come before it.
        let mut findings = found["findings"].as_array().unwrap().iter();
        assert!(findings.any(|finding| finding["cause"] == "pam-motd"));
        roots.push(processes(&found)[0]["pid"].clone());
    }
    assert_ne!(roots[0], roots[1]);
}

#[test]
fn that_one_of_the_logins_that_were_followed_failed_is_told_and_why() {
    if !may_trace() {
        return;
    }
    let Some(host) = Host::start(&Injection::several("pam-account:20").unwrap()) else {
        return;
    };
    // The first login is measured, by the second the tracer comes: of the three that are followed then so many are let in.
    let refuse_behind = |followed: u32| {
        let nth = followed + 3;
        host.replace(
            "/etc/security/access-check",
            &format!("#!/bin/sh\necho >>/run/sshoal-slow/logins\n[ $(wc -l </run/sshoal-slow/logins) -lt {nth} ]\n"),
        );
        host.write("/run/sshoal-slow/logins", "");
    };
    host.enter(
        "sed -i 's/optional *pam_exec.so quiet/required pam_exec.so quiet/' /etc/pam.d/sshd",
    );
    // Of slow ones, as on a busy machine, one is followed.
    let is_quick = |found: &Value| {
        let phases = found["measured"][0]["phases"].as_array().unwrap().iter();
        let took = phases.map(|phase| phase["duration_us"].as_u64().unwrap());
        took.sum::<u64>() < 1_000_000
    };
    for (followed, wanted) in [
        (2, "1 of 3 logins that were followed failed: "),
        (1, "1 of 2 logins that were followed failed: "),
    ] {
        let mut tries = (0..TRIES).map(|_| {
            refuse_behind(followed);
            host.traced()
        });
        let found = tries.find(is_quick).unwrap();
        let notes = found["tier_notes"].as_array().unwrap().iter();
        let notes: Vec<&str> = notes.map(|note| note.as_str().unwrap()).collect();
        let note = notes.iter().find(|note| note.starts_with(wanted));
        let note = note.unwrap_or_else(|| panic!("{notes:?}"));
        assert_eq!(note.ends_with("; none was made after that"), followed == 1);
        check_sum(&found);
    }
}

#[test]
fn what_runs_when_the_session_is_closed_is_not_waited_for() {
    if !may_trace() {
        return;
    }
    let Some(host) = Host::start(&Injection::several("close-session:700").unwrap()) else {
        return;
    };
    let found = host.traced();
    check_sum(&found);
    assert!(found["trace"]["shares_us"]["timer"].as_u64() < Some(700_000));
}
