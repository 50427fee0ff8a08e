//! `sshoal-testbed simulate`.

use clap::Args;

use super::CommandResult;

/// Start simulated hosts and keep them until told to stop.
#[derive(Debug, Args)]
pub(crate) struct Simulate {}

impl Simulate {
    pub(crate) fn run(self) -> CommandResult {
        Err("not built yet".into())
    }
}
