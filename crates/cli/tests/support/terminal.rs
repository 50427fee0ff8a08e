//! A program on a terminal of its own, all three streams of it, and a user who types.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};

use super::{DEADLINE, pty, wait_until};

/// How often a program is looked at that shows nothing.
const GLANCE: Duration = Duration::from_millis(100);

/// A running program whose terminal is ours.
pub(crate) struct Screen {
    child: Child,
    user: File,
    /// The program's side, to look at its settings for as long as it runs.
    terminal: Option<OwnedFd>,
    /// Its settings before any program had it.
    pub(crate) initial: Termios,
    shown: Receiver<Vec<u8>>,
    text: String,
}

impl Screen {
    /// Starts a command of [`super::User`]'s, which begins with `setsid`.
    pub(crate) fn start(plain: &Command, rows: u16, columns: u16) -> Screen {
        let (user, terminal) = pty::open_both();
        tcsetwinsize(&terminal, size(rows, columns)).unwrap();
        // setsid(1) makes its standard input the controlling terminal.
        let mut command = Command::new("setsid");
        let variables = plain
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?)));
        let stream = || Stdio::from(terminal.try_clone().unwrap());
        command
            .arg("--ctty")
            .args(plain.get_args())
            .env_clear()
            .envs(variables);
        command
            .env("TERM", "vt100")
            .stdin(stream())
            .stdout(stream())
            .stderr(stream());
        let initial = tcgetattr(&terminal).unwrap();
        let child = command.spawn().unwrap();
        Screen {
            child,
            shown: pty::watch(&user),
            user,
            terminal: Some(terminal),
            initial,
            text: String::new(),
        }
    }

    /// Waits until the screen shows this, behind what it showed when it was last waited for.
    pub(crate) fn expect(&mut self, words: &str) {
        let begun = Instant::now();
        loop {
            if let Some(at) = self.text.find(words) {
                self.text.drain(..at + words.len());
                return;
            }
            if self.child.try_wait().unwrap().is_some() {
                // The reader sees the end, behind all that was shown, when nobody has the terminal open any more.
                self.terminal = None;
            }
            let octets = match self.shown.recv_timeout(GLANCE) {
                Ok(octets) => octets,
                Err(RecvTimeoutError::Timeout) if begun.elapsed() <= DEADLINE => continue,
                Err(_) => panic!("the screen does not show {words:?} but {:?}", self.text),
            };
            self.text.push_str(&String::from_utf8_lossy(&octets));
        }
    }

    pub(crate) fn type_in(&mut self, keys: &str) {
        self.user.write_all(keys.as_bytes()).unwrap();
    }

    /// Makes the window larger or smaller.
    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        tcsetwinsize(&self.user, size(rows, columns)).unwrap();
    }

    pub(crate) fn settings(&self) -> Termios {
        tcgetattr(self.terminal.as_ref().unwrap()).unwrap()
    }

    /// Waits until every key goes to the host.
    pub(crate) fn wait_until_raw(&self) {
        let cooked = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        wait_until("the terminal is lent", || {
            !self.settings().local_modes.intersects(cooked)
        });
    }

    pub(crate) fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }

    /// Waits for the end of the program: its status, and what the screen showed since it was last waited for.
    pub(crate) fn finish(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().unwrap();
        // The reader sees the end when nobody has the terminal open any more.
        drop(self.terminal);
        for octets in self.shown {
            self.text.push_str(&String::from_utf8_lossy(&octets));
        }
        (status.code(), self.text)
    }
}

fn size(rows: u16, columns: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}
