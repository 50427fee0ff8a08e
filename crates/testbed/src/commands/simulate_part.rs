//! `sshoal-testbed simulate-part`: some of a simulation's hosts, for [`super::running`].

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use sshoal_testbed::simulated::{Simulation, SimulationSpec};

use super::CommandResult;
use super::running::Report;
use super::stay::{Staying, stay};

/// Serve the hosts of a specification, a line of JSON on standard input, until that ends.
#[derive(Debug, Args)]
pub(crate) struct SimulatePart {}

impl SimulatePart {
    pub(crate) fn run(self) -> CommandResult {
        let mut line = String::new();
        io::stdin().read_line(&mut line)?;
        let spec: SimulationSpec = serde_json::from_str(&line)?;
        let mut part = Part(Simulation::start(&spec)?);
        stay(true, &mut part)?;
        Ok(ExitCode::SUCCESS)
    }
}

struct Part(Simulation);

impl Staying for Part {
    /// The port, as a line.
    fn announce(&mut self) -> io::Result<()> {
        let port = self
            .0
            .addresses()
            .first()
            .map_or(0, |address| address.port());
        writeln!(io::stdout(), "{port}")
    }

    fn report(&mut self) -> io::Result<String> {
        Ok(Report::of(&self.0).line())
    }
}
