//! Stock OpenSSH servers, started for a test and stopped with it.
//!
//! [`RealSshd`] runs the installed sshd with a configuration, host keys and addresses of its own.
//! Nothing of the machine's own configuration is read or changed. As root it logs in as accounts
//! that [`account`] makes on first use; as anybody else, as that user, whose shell's start-up files
//! then run in every login.
//!
//! ```no_run
//! use sshoal_testbed::sshd::{RealSshd, SshdSpec};
//!
//! let server = RealSshd::start(&SshdSpec::new(1).line("MaxSessions 1"))?;
//! let dir = tempfile::tempdir()?;
//! server.client_files()?.write(dir.path())?; // ssh -F DIR/ssh_config ADDRESS
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod account;
mod config;
pub mod key_files;
mod listener;
mod process_tree;
mod real;
mod spec;

pub(crate) use real::version;
pub use real::{RealSshd, SshdError};
pub use spec::{Layout, SshdSpec};
