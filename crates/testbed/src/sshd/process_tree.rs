//! Ending a server with all its sessions.
//!
//! sshd makes each connection's process a session leader (sshd.c, setsid), so that no process group
//! holds them together: their parents do.

use std::collections::HashMap;
use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// A process, told from a later one of the same number by when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    pid: Pid,
    parent: Option<Pid>,
    /// In clock ticks since boot.
    started: u64,
}

/// Kills `roots` and all their descendants. The caller waits for the roots, its own children.
pub(super) fn kill_trees(roots: &[Pid]) {
    // A stopped server accepts nobody, so that no session is born after the list was made. An error
    // from kill(2) means that the process has ended, here and below.
    for &root in roots {
        let _ = kill_process(root, Signal::STOP);
    }
    let descendants = descendants(roots);
    for &root in roots {
        let _ = kill_process(root, Signal::KILL);
    }
    for process in descendants {
        if Process::of(process.pid).is_some_and(|now| now.started == process.started) {
            let _ = kill_process(process.pid, Signal::KILL);
        }
    }
}

fn descendants(roots: &[Pid]) -> Vec<Process> {
    let mut children: HashMap<Pid, Vec<Process>> = HashMap::new();
    for process in all() {
        if let Some(parent) = process.parent {
            children.entry(parent).or_default().push(process);
        }
    }
    let mut found = Vec::new();
    let mut parents = roots.to_vec();
    while let Some(parent) = parents.pop() {
        for process in children.remove(&parent).unwrap_or_default() {
            parents.push(process.pid);
            found.push(process);
        }
    }
    found
}

fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|number| Process::of(Pid::from_raw(number)?))
        .collect()
}

impl Process {
    fn of(pid: Pid) -> Option<Process> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        Process::parse(pid, &stat)
    }

    /// Reads proc_pid_stat(5): pid, comm in parentheses, state, ppid and, as field 22, starttime.
    fn parse(pid: Pid, stat: &str) -> Option<Process> {
        // The name may hold spaces and parentheses; nothing after it does.
        let (_, rest) = stat.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        Some(Process {
            pid,
            parent: Pid::from_raw(fields.nth(1)?.parse().ok()?),
            started: fields.nth(17)?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_whatever_the_name() {
        let pid = Pid::from_raw(7).expect("positive");
        let stat = "7 (a) R 1) S 3 7 7 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 5555 8192 100";
        assert_eq!(
            Process::parse(pid, stat),
            Some(Process {
                pid,
                parent: Pid::from_raw(3),
                started: 5555
            })
        );
    }

    #[test]
    fn this_process_descends_from_its_parent() {
        let parent = rustix::process::getppid().expect("a test has a parent");
        let me = rustix::process::getpid();
        assert!(
            descendants(&[parent])
                .iter()
                .any(|process| process.pid == me)
        );
    }
}
