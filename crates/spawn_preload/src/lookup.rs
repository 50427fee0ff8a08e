//! Which file a command is: what a shell would find, or nothing, where only the shell can say.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{FileType, stat};
use rustix::io::Errno;

use crate::surroundings::{Surroundings, places};

/// The file to execute. None: the shell is to look for it, and to say that it is not there.
///
/// dash takes the first regular file in PATH and goes on if that cannot be executed, bash takes the first one that may be
/// executed. So what is taken here is the first one, and if it cannot be executed the shell is asked.
pub(crate) fn program(command: &[u8], surroundings: &Surroundings) -> Option<Vec<u8>> {
    if command.contains(&b'/') {
        return Some(command.to_vec());
    }
    // Without PATH each shell has one of its own.
    for place in places(surroundings.path?, command) {
        let place = place?;
        match stat(OsStr::from_bytes(&place)) {
            Ok(found) => {
                let is_file = FileType::from_raw_mode(found.st_mode).is_file();
                return is_file.then_some(place);
            }
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(_) => return None,
        }
    }
    None
}
