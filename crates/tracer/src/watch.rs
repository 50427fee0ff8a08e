//! The watcher: a second process of this program that does nothing but wait for the end of the first, however that comes, and
//! take away what it may have left. The two are joined by a pipe, whose end the kernel closes with a process that is killed.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::failure::Failure;
use crate::tracefs::Instance;

/// The word that makes this program a watcher.
pub(crate) const WATCH: &str = "watch";

/// A watcher, seen from the one that it watches.
pub(crate) struct Watcher(Child);

impl Watcher {
    /// Starts one.
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
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // What is meant for our process group is not meant for it.
            .process_group(0)
            .spawn();
        child
            .map(Watcher)
            .map_err(|error| Failure::system("cannot start", program, &error))
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
    let mut nothing = Vec::new();
    // An error is an end, too.
    let _ = io::stdin().read_to_end(&mut nothing);
    if let Some(instance) = Instance::of_folder(folder) {
        instance.remove();
    }
}
