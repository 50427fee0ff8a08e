//! `sshoal-testbed with-hosts`.

use clap::Args;

use super::CommandResult;

/// Start simulated hosts, run a command, stop them, and exit with its status.
#[derive(Debug, Args)]
pub(crate) struct WithHosts {}

impl WithHosts {
    pub(crate) fn run(self) -> CommandResult {
        Err("not built yet".into())
    }
}
