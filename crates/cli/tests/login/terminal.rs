//! A program on a terminal of its own, and a user who types.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::termios::{LocalModes, tcgetattr};

use crate::fixture::{Ended, Run};
use crate::pty;

/// After so long something hangs that should not. No test's verdict depends on the number.
const DEADLINE: Duration = Duration::from_secs(240);

/// A running `sshoal` whose controlling terminal is ours. Its output goes to pipes.
pub(crate) struct OnTerminal {
    process: Child,
    user: File,
    /// The program's side, to look at its settings.
    terminal: OwnedFd,
    shown: mpsc::Receiver<Vec<u8>>,
    screen: String,
}

impl OnTerminal {
    pub(crate) fn start(run: &Run) -> Self {
        let (user, terminal) = pty::open_both();
        let plain = run.command();
        // setsid(1) makes its standard input the controlling terminal.
        let mut command = Command::new("setsid");
        command
            .args(["--ctty", "--wait"])
            .args(plain.get_args().skip(1))
            .env_clear()
            .envs(
                plain
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .stdin(Stdio::from(terminal.try_clone().unwrap()))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let process = command.spawn().unwrap();
        OnTerminal {
            process,
            shown: pty::watch(&user),
            user,
            terminal,
            screen: String::new(),
        }
    }

    /// Waits until the screen shows this.
    pub(crate) fn expect(&mut self, words: &str) {
        let deadline = Instant::now() + DEADLINE;
        while !self.screen.contains(words) {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(octets) = self.shown.recv_timeout(left) else {
                panic!("the screen does not show {words:?} but {:?}", self.screen);
            };
            self.screen.push_str(&String::from_utf8_lossy(&octets));
        }
    }

    /// Wipes the screen.
    pub(crate) fn forget(&mut self) {
        self.screen.clear();
    }

    pub(crate) fn type_in(&mut self, keys: &str) {
        self.user.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the end of the program; what it wrote to its pipes, and all that the screen showed.
    pub(crate) fn finish(self) -> (Output, String) {
        let output = self.process.wait_with_output().unwrap();
        let mut screen = self.screen;
        for octets in self.shown.try_iter() {
            screen.push_str(&String::from_utf8_lossy(&octets));
        }
        (output, screen)
    }

    /// As [`finish`](Self::finish), as the end of a run.
    pub(crate) fn finish_run(self) -> (Ended, String) {
        let (output, screen) = self.finish();
        (Ended::of(&output), screen)
    }

    /// Whether what is typed would be shown.
    pub(crate) fn echoes(&self) -> bool {
        let modes = tcgetattr(&self.terminal).unwrap().local_modes;
        modes.contains(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG)
    }

    /// Waits for the end of the program; how it left the terminal.
    pub(crate) fn finish_and_look(mut self) -> (Option<i32>, bool) {
        let status = self.process.wait().unwrap();
        (status.code(), self.echoes())
    }
}
