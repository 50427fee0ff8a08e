//! `sshoal each`: a command on this machine for each host.

#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod batches;
mod ends;
mod output;
mod pace;
mod words;

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::Pid;
use support::program::{Ended, Running};
use support::{User, wait_until};
use tempfile::TempDir;

/// A user, and a folder for the commands to leave marks in.
struct Scene {
    user: User,
    marks: TempDir,
}

impl Scene {
    fn new() -> Scene {
        let (user, marks) = (User::new(), tempfile::tempdir().unwrap());
        Scene { user, marks }
    }

    /// `sshoal each` with these arguments. Commands find the folder as `$MARKS`.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.user.command(env!("CARGO_BIN_EXE_sshoal"));
        command
            .arg("each")
            .args(arguments)
            .env("MARKS", self.marks.path());
        command
    }

    fn start(&self, arguments: &[&str]) -> Running {
        Running::start(&mut self.command(arguments))
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        self.start(arguments).wait()
    }

    /// The marks that are there, sorted.
    fn marks(&self) -> Vec<String> {
        let entries = fs::read_dir(self.marks.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// The process whose number a command has written, by `echo $! > $MARKS/NAME`, once it has.
    fn process(&self, name: &str) -> Pid {
        let file = self.marks.path().join(name);
        let mut number = String::new();
        wait_until("a process has written its number", || {
            number = fs::read_to_string(&file).unwrap_or_default();
            number.ends_with('\n')
        });
        Pid::from_raw(number.trim().parse().unwrap()).unwrap()
    }
}

/// Whether a process runs; one that nobody has waited for does not (proc_pid_stat(5)).
fn runs(process: Pid) -> bool {
    let stat = Path::new("/proc")
        .join(process.as_raw_nonzero().to_string())
        .join("stat");
    let stat = fs::read_to_string(stat).unwrap_or_default();
    stat.rsplit(") ")
        .next()
        .is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

fn wait_for_end(process: Pid) {
    wait_until("a process has ended", || !runs(process));
}
