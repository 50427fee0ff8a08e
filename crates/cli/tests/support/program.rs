//! A program that runs beside a test: read, measured, signalled, waited for.

use std::fs;
use std::io::Read;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::DEADLINE;
use super::records::Records;

/// How often a running program is looked at.
const GLANCE: Duration = Duration::from_millis(5);

/// A program that has not been waited for. Killed if the test ends before it.
pub(crate) struct Running {
    child: Child,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

impl Running {
    /// Starts it, and reads what it writes.
    pub(crate) fn start(command: &mut Command) -> Running {
        Running::start_read_by(command, |mut stdout| {
            let mut all = Vec::new();
            stdout.read_to_end(&mut all).unwrap();
            all
        })
    }

    /// Starts it with a reader of its standard output that returns what it wants to keep.
    pub(crate) fn start_read_by(
        command: &mut Command,
        read: impl FnOnce(ChildStdout) -> Vec<u8> + Send + 'static,
    ) -> Running {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let mut stderr = child.stderr.take().unwrap();
        Running {
            child,
            stdout: Some(thread::spawn(move || read(stdout))),
            stderr: Some(thread::spawn(move || {
                let mut all = Vec::new();
                stderr.read_to_end(&mut all).unwrap();
                all
            })),
        }
    }

    /// Presses Ctrl-C.
    pub(crate) fn interrupt(&self) {
        kill_process(self.pid(), Signal::INT).unwrap();
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// The most memory that it has had, in bytes.
    pub(crate) fn memory_so_far(&self) -> u64 {
        memory_so_far(self.pid())
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end alone, whether or not anybody has read what it wrote.
    #[track_caller]
    pub(crate) fn wait_for_exit(mut self, status: i32) {
        let mut ended = None;
        super::wait_until("it ends", || {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        assert_eq!(ended.unwrap().code(), Some(status));
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> Ended {
        let begun = Instant::now();
        let mut peak_memory = 0;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            peak_memory = peak_memory.max(memory_so_far(self.pid()));
            if begun.elapsed() > DEADLINE {
                self.child.kill().unwrap();
            }
            thread::sleep(GLANCE);
        };
        let ended = Ended {
            status,
            stdout: self.stdout.take().unwrap().join().unwrap(),
            stderr: self.stderr.take().unwrap().join().unwrap(),
            peak_memory,
        };
        assert!(begun.elapsed() <= DEADLINE, "it hung: {}", ended.stderr());
        ended
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Does nothing once it has been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The most memory that the process has had so far, in bytes: VmHWM of proc(5). 0 once it has ended.
fn memory_so_far(pid: Pid) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero()));
    let status = status.unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.map_or("0", |line| line.trim().trim_end_matches(" kB"));
    kib.parse::<u64>().unwrap() * 1024
}

/// What a program left.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    stderr: Vec<u8>,
    /// As seen every few milliseconds, in bytes.
    peak_memory: u64,
}

impl Ended {
    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Insists on an exit status, and shows what was said if it is another.
    #[track_caller]
    pub(crate) fn expect(self, status: i32) -> Ended {
        let said = self.stderr();
        let wrote: String = self.stdout().chars().take(4000).collect();
        let found = self.status;
        assert_eq!(found.code(), Some(status), "{found}: {said}\n{wrote}");
        self
    }

    /// Insists on words in what was said.
    #[track_caller]
    pub(crate) fn says(self, words: &[&str]) -> Ended {
        let said = self.stderr();
        for word in words {
            assert!(said.contains(word), "{word:?} is missing: {said}");
        }
        self
    }

    /// Insists on a limit of memory, in bytes, and tells what was needed.
    #[track_caller]
    pub(crate) fn expect_memory_below(self, limit: u64) -> Ended {
        let needed = self.peak_memory;
        println!("it needed {} MiB, {} may be", needed >> 20, limit >> 20);
        assert!(needed > 0, "it was never seen running");
        assert!(needed < limit, "{needed} of {limit} bytes");
        self
    }

    /// What `--json` wrote.
    #[track_caller]
    pub(crate) fn records(&self) -> Records {
        Records::parse(&self.stdout()).unwrap_or_else(|| panic!("{}", self.stderr()))
    }
}
