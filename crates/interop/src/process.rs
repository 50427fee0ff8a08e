//! A server's process: it never outlives the one that started it.

use std::ffi::OsString;
use std::fmt::Debug;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Longest time from the wish to stop a server to its end.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time between two looks at a server that is stopping.
const PAUSE: Duration = Duration::from_millis(10);

/// Debian keeps daemons out of an ordinary user's path.
const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The shell line around a server that would not notice its parent's death: it ends the server once standard input
/// ends, and ends with the server.
const LEASH: &str =
    r#"exec 3<&0; "$@" 3<&- & server=$!; { cat; kill "$server"; } <&3 >/dev/null & wait "$server""#;

/// What a started server is asked, be it a process or a thread.
pub(crate) trait Running: Debug + Send + Sync {
    /// False once it has ended.
    fn is_running(&mut self) -> bool;

    /// All that it has written.
    fn log(&self) -> String;
}

/// A process that ends with its standard input, and so with this value.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `words`, a command that ends when its standard input does. All it writes goes to `dir/log`.
    pub(crate) fn spawn(dir: &Path, words: &[OsString]) -> io::Result<Process> {
        let path = dir.join("log");
        let log = File::create(&path)?;
        let child = Command::new(&words[0])
            .args(&words[1..])
            .current_dir(dir)
            .env("PATH", SEARCH_PATH)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        Ok(Process { child, log: path })
    }
}

impl Running for Process {
    fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let deadline = Instant::now() + PATIENCE;
        while self.is_running() && Instant::now() < deadline {
            thread::sleep(PAUSE);
        }
        // After the normal end that was just awaited, both find nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The words that start `command`, which ignores its standard input, such that it ends with it all the same.
pub(crate) fn on_a_leash(command: Vec<OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = ["sh", "-c", LEASH, "sh"].map(OsString::from).into();
    words.extend(command);
    words
}

/// The absolute path of a program: sshd insists on being started by it.
pub(crate) fn find_program(name: &str) -> io::Result<PathBuf> {
    SEARCH_PATH
        .split(':')
        .map(|dir| Path::new(dir).join(name))
        .find(|path| path.exists())
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("no program {name}")))
}
