//! `--dry-run`: what would be done, one line a host.

use std::io::{self, Write};

use sshoal_net::HostPlan;
use sshoal_proto::Command;

/// Prints where each host's command would run. A reader that has seen enough ends it quietly.
pub(crate) fn print(plans: &[HostPlan]) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = plans.iter().try_for_each(|plan| {
        let command = match &plan.request.command {
            Command::Exec(line) => String::from_utf8_lossy(line).into_owned(),
            Command::Shell => "(a login shell)".to_owned(),
            Command::Subsystem(name) => format!("(the subsystem {name})"),
        };
        writeln!(
            out,
            "{}: {}@{} port {}: {command}",
            plan.label, plan.user, plan.name, plan.port
        )
    });
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}
