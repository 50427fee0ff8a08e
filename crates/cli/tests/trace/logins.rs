//! `sshoal why --trace`: logins to real sshd with PAM.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use sshoal_testbed::slow::{Injection, SlowError, SlowHost, SlowSpec};

use crate::may_trace;
use crate::support::User;
use crate::support::program::Running;

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
    fn traced(&self) -> Value {
        let words = ["--trace", "--repeat", "1", "--no-ssh", "--json"];
        parsed(Running::start(&mut self.why(&words)))
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

fn processes(found: &Value) -> &Vec<Value> {
    found["trace"]["processes"].as_array().unwrap()
}

fn ran(process: &Value, program: &str) -> bool {
    let programs = process["programs"].as_array().unwrap();
    programs.iter().any(|it| it["file"] == program)
}

/// The parts are the whole, but for what is lost by rounding.
#[track_caller]
fn check_sum(found: &Value) {
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

#[test]
fn sixty_processes_of_update_motd_are_all_found_and_it_is_named_first() {
    if !may_trace() {
        return;
    }
    let Some(host) = Host::start(&Injection::several("motd-processes:60").unwrap()) else {
        return;
    };
    const SCRIPT: &str = "/etc/update-motd.d/60-landscape";
    // Each tells its number and its parent's; half of them run a program, the others never do.
    let own = "read -r pid comm state parent rest </proc/self/stat; echo $pid $parent >>$told";
    host.replace(
        SCRIPT,
        &format!(
            "#!/bin/sh\ntold=$(mktemp /run/sshoal-slow/told.XXXXXX)\ni=0\n\
             while [ $i -lt 30 ]; do\n\
             ( {own} )\n( {own}; exec sleep 0.02 )\ni=$((i + 1))\ndone\n"
        ),
    );
    let found = host.traced();
    check_sum(&found);
    assert_eq!(found["trace"]["matched"], true);
    assert_eq!(
        found["findings"][0]["cause"], "pam-motd",
        "{}",
        found["findings"]
    );
    assert_eq!(found["findings"][0]["certainty"], "proven");

    // Of the script's runs, that of the login that was traced is the last.
    let folder = fs::read_dir(host.path("/run/sshoal-slow")).unwrap();
    let told = folder
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains("told."))
        .max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap())
        .unwrap();
    let told = fs::read_to_string(told).unwrap();
    let told: Vec<(u64, u64)> = told
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(pid, parent)| (pid.parse().unwrap(), parent.parse().unwrap()))
        .collect();
    assert_eq!(told.len(), 60);
    let script = processes(&found).iter().find(|it| ran(it, SCRIPT)).unwrap();
    let children: Vec<&Value> = processes(&found)
        .iter()
        .filter(|it| it["parent"] == script["pid"])
        .filter(|it| !ran(it, "/usr/bin/mktemp") && it["name"] != "mktemp")
        .collect();
    assert_eq!(children.len(), 60, "{children:#?}");
    let sleeps = children.iter().filter(|it| it["name"] == "sleep");
    assert_eq!(sleeps.count(), 30);
    // All told one parent, and in the order of their birth every other one runs no program.
    assert!(told.iter().all(|(_, parent)| *parent == told[0].1));
    assert!(told.is_sorted(), "{told:?}");
    let numbers = children.iter().map(|child| child["pid"].as_u64());
    assert!(numbers.is_sorted(), "{children:#?}");
    for (place, child) in children.iter().enumerate() {
        let programs = child["programs"].as_array().unwrap().len();
        assert_eq!(programs, place % 2, "{child}");
    }
}

#[test]
fn pam_s_modules_are_timed_and_named() {
    if !may_trace() {
        return;
    }
    let Some(host) = Host::start(&Injection::several("pam-account:700").unwrap()) else {
        return;
    };
    let found = host.traced();
    check_sum(&found);
    let facts = &found["facts"];
    assert!(
        facts["trace.pam_account.time"].as_u64() >= Some(700_000),
        "{facts:#}"
    );
    let slowest = facts["trace.pam_account.slowest"].as_str().unwrap();
    assert!(slowest.starts_with("pam_exec.so "), "{slowest}");
    assert!(
        facts["trace.timer.time"].as_u64() >= Some(700_000),
        "{facts:#}"
    );
    assert_eq!(found["findings"][0]["cause"], "pam-account");
    assert_eq!(found["findings"][0]["certainty"], "proven");
    let calls = found["trace"]["calls"].as_array().unwrap();
    let is_session = |call: &&Value| call["function"] == "pam_sm_open_session";
    assert!(calls.iter().any(|call| is_session(&call)), "{calls:#?}");
}

#[test]
fn two_tracers_at_once_each_see_their_own_login() {
    if !may_trace() {
        return;
    }
    let Some(host) = Host::start(&Injection::several("motd:700").unwrap()) else {
        return;
    };
    let words = ["--trace", "--repeat", "1", "--no-ssh", "--json"];
    let both = [0, 1].map(|_| Running::start(&mut host.why(&words)));
    let mut roots = Vec::new();
    for running in both {
        let found = parsed(running);
        check_sum(&found);
        assert_eq!(found["trace"]["matched"], true);
        assert_eq!(found["findings"][0]["cause"], "pam-motd");
        roots.push(processes(&found)[0]["pid"].clone());
    }
    assert_ne!(roots[0], roots[1]);
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

#[test]
fn the_report_shows_the_processes_with_bars() {
    if !may_trace() {
        return;
    }
    let Some(host) = Host::start(&Injection::several("motd:50").unwrap()) else {
        return;
    };
    let words = ["--trace", "--repeat", "1", "--no-ssh"];
    let ended = Running::start(&mut host.why(&words)).wait().expect(0);
    let text = ended.stdout();
    let line = text
        .lines()
        .find(|line| line.contains("50-status") && line.contains('█'));
    assert!(line.is_some_and(|line| line.contains(" ms")), "{text}");
    assert!(text.contains("Trace (by tracefs)"), "{text}");
}
