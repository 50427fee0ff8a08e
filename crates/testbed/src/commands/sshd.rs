//! `sshoal-testbed sshd`.

use clap::Args;

use super::CommandResult;

/// Start real sshd hosts and keep them until told to stop.
#[derive(Debug, Args)]
pub(crate) struct Sshd {}

impl Sshd {
    pub(crate) fn run(self) -> CommandResult {
        Err("not built yet".into())
    }
}
