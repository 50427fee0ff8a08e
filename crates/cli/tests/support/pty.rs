//! A pseudo-terminal: its two ends, and what a program shows on it.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// The user's end and the program's.
pub(crate) fn open_both() -> (File, OwnedFd) {
    let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&user).unwrap();
    unlockpt(&user).unwrap();
    let name = ptsname(&user, Vec::new()).unwrap();
    // What a program leaves in the background must not keep the terminal open.
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let program = open(name, flags, Mode::empty()).unwrap();
    (File::from(user), program)
}

/// What the program shows, piece by piece, until nobody has its end open any more.
pub(crate) fn watch(user: &File) -> Receiver<Vec<u8>> {
    let mut screen = user.try_clone().unwrap();
    let (shown, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = [0; 1024];
        // The end comes as an error.
        while let Ok(octets @ 1..) = screen.read(&mut buffer) {
            if shown.send(buffer[..octets].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}
