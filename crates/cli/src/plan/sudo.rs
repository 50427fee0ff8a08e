//! sudo's password: asked for once, before a plan begins, and handed to its steps as ssh hands out passwords, by SSH_ASKPASS.
//!
//! The program that a step asks is ours again. The password is in a sealed memory file that only the plan has open; what
//! is told is where: so it is in no file system, no argument and no variable.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use crate::prompt;
use crate::run::SUDO_QUESTION;

/// Names the place of the password.
const VARIABLE: &str = "SSHOAL_SUDO_PASSWORD_AT";

/// The password, for as long as this is there.
pub(super) struct SudoPassword(File);

impl SudoPassword {
    /// Asks for it.
    pub(super) fn ask() -> Result<Self, Box<dyn std::error::Error>> {
        let password = prompt::secret(SUDO_QUESTION, &|| true)?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut file = File::from(memfd_create("password", flags).map_err(io::Error::from)?);
        file.write_all(password.expose())?;
        let all = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        fcntl_add_seals(&file, all).map_err(io::Error::from)?;
        Ok(SudoPassword(file))
    }

    /// The variables that a step needs to be told of it.
    pub(super) fn variables(&self) -> io::Result<[(&'static str, OsString); 3]> {
        let place = format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd());
        Ok([
            ("SSH_ASKPASS", std::env::current_exe()?.into()),
            ("SSH_ASKPASS_REQUIRE", "force".into()),
            (VARIABLE, place.into()),
        ])
    }
}

/// The answer to what a step asks, if this process was started to answer: `Some(None)` if that is no question for sudo's
/// password. `arguments` are those behind the program's name.
pub(crate) fn answer(arguments: &[OsString]) -> Option<Option<Vec<u8>>> {
    let (place, [question]) = (std::env::var_os(VARIABLE)?, arguments) else {
        return None;
    };
    // No command of ours has a blank in its name.
    let question = question
        .to_str()
        .filter(|question| question.contains(' '))?;
    let is_known = question == SUDO_QUESTION;
    Some(is_known.then(|| std::fs::read(place).ok()).flatten())
}
