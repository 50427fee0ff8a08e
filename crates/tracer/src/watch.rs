//! The watcher: a second process of this program that does nothing but wait for the end of the first, however that comes, and
//! take away what it may have left. The two are joined by a pipe, whose end the kernel closes with a process that is killed. What ends
//! the session that both are of, a signal to all of it or to its control group, ends the first alone.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::failure::Failure;
use crate::kernel;
use crate::tracefs::Instance;

/// The word that makes this program a watcher.
pub(crate) const WATCH: &str = "watch";
/// How long it waits: the first lives for 90 s, if nobody has stopped it.
const LONGEST: Duration = Duration::from_secs(110);
/// The control group of all that are in no other: of version 2, and of systemd's own where that has version 1.
const TOPMOST_GROUPS: [&str; 3] = [
    "/sys/fs/cgroup/cgroup.procs",
    "/sys/fs/cgroup/unified/cgroup.procs",
    "/sys/fs/cgroup/systemd/cgroup.procs",
];

/// A watcher, seen from the one that it watches.
pub(crate) struct Watcher(Child);

impl Watcher {
    /// Starts one, and waits until nothing ends it any more that ends our session.
    ///
    /// # Errors
    ///
    /// It cannot be started: then nothing is traced either.
    pub(crate) fn start(instance: &Instance) -> Result<Watcher, Failure> {
        // The file may have no name any more.
        let program = Path::new("/proc/self/exe");
        let child = Command::new(program)
            .arg(WATCH)
            .arg(&instance.folder)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let failure = |error| Failure::system("cannot start", program, &error);
        let mut child = child.map_err(failure)?;
        let ready = child.stdout.take().map(|mut output| {
            let mut word = [0];
            output.read_exact(&mut word)
        });
        ready.unwrap_or(Ok(())).map_err(failure)?;
        Ok(Watcher(child))
    }

    /// Nothing is left to be watched.
    pub(crate) fn dismiss(mut self) {
        drop(self.0.stdin.take());
        // It ends by itself.
        let _ = self.0.wait();
    }
}

/// The watcher's own part.
pub(crate) fn run(folder: &Path) {
    kernel::outlive_session();
    for group in TOPMOST_GROUPS {
        // Where that is not for us, a signal to our group is for us as well.
        let _ = fs::write(group, "0");
    }
    // Nobody may listen any more.
    let _ = io::stdout()
        .write_all(b"!")
        .and_then(|()| io::stdout().flush());
    let (ends, end) = mpsc::channel();
    thread::spawn(move || {
        let mut nothing = Vec::new();
        // An error is an end, too.
        let _ = io::stdin().read_to_end(&mut nothing);
        let _ = ends.send(());
    });
    let _ = end.recv_timeout(LONGEST);
    if let Some(instance) = Instance::of_folder(folder) {
        instance.remove();
    }
}
