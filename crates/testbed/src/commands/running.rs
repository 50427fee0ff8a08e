//! Simulated hosts in this process or, where its limit of open files is too low for them, in several.

use std::error::Error;
use std::io::{self, BufRead, BufReader, Lines, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use sshoal_testbed::client_files::ClientFiles;
use sshoal_testbed::descriptors::allow_descriptors;
use sshoal_testbed::simulated::{Simulation, SimulationSpec, Totals};

/// Hosts that are up until this is dropped.
pub(super) struct Running {
    client_files: ClientFiles,
    hosts: Hosts,
}

enum Hosts {
    Here(Simulation),
    InParts(Vec<Part>),
}

/// The counters of one process or several, as printed.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Report {
    #[serde(flatten)]
    totals: Totals,
    /// CPU time that serving the hosts has taken so far, user and system.
    cpu_seconds: f64,
}

impl Running {
    pub(super) fn start(spec: &SimulationSpec) -> Result<Running, Box<dyn Error>> {
        let Err(limited) = allow_descriptors(Simulation::descriptors(spec.hosts)) else {
            let simulation = Simulation::start(spec)?;
            return Ok(Running {
                client_files: simulation.client_files().clone(),
                hosts: Hosts::Here(simulation),
            });
        };
        let overhead = Simulation::descriptors(0);
        let hosts_a_part = u32::try_from(limited.limit.saturating_sub(overhead) / 2)?;
        if hosts_a_part == 0 {
            return Err(limited.into());
        }
        let (port, parts) = start_parts(spec, spec.hosts.div_ceil(hosts_a_part))?;
        Ok(Running {
            client_files: spec.client_files(port)?,
            hosts: Hosts::InParts(parts),
        })
    }

    pub(super) fn client_files(&self) -> &ClientFiles {
        &self.client_files
    }

    pub(super) fn report(&mut self) -> io::Result<Report> {
        match &mut self.hosts {
            Hosts::Here(simulation) => Ok(Report::of(simulation)),
            Hosts::InParts(parts) => parts.iter_mut().try_fold(Report::default(), |sum, part| {
                let report = part.report()?;
                Ok(Report {
                    totals: sum.totals.plus(report.totals),
                    cpu_seconds: sum.cpu_seconds + report.cpu_seconds,
                })
            }),
        }
    }
}

impl Report {
    pub(super) fn of(simulation: &Simulation) -> Report {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        Report {
            totals: simulation.totals(),
            cpu_seconds: cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9,
        }
    }

    /// A line of JSON.
    pub(super) fn line(&self) -> String {
        serde_json::to_string(self).expect("a struct of numbers has a JSON form")
    }
}

/// A process of this program, `simulate-part`, with some of the hosts.
struct Part {
    process: Child,
    /// The part ends when this is closed, even by this process's sudden death.
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

/// Deals the hosts out to `parts` processes. The first chooses the port, if it is to be chosen.
fn start_parts(spec: &SimulationSpec, parts: u32) -> io::Result<(u16, Vec<Part>)> {
    let mut started = Vec::new();
    let mut port = spec.port;
    let mut first = spec.first;
    for part in 0..parts {
        let hosts = (spec.hosts - (first - spec.first)).div_ceil(parts - part);
        let (bound, process) = Part::start(&SimulationSpec {
            hosts,
            first,
            port,
            ..spec.clone()
        })?;
        port = bound;
        first += hosts;
        started.push(process);
    }
    Ok((port, started))
}

impl Part {
    fn start(spec: &SimulationSpec) -> io::Result<(u16, Part)> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg("simulate-part")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C is for this process to judge.
            .process_group(0)
            .spawn()?;
        let mut stdin = process.stdin.take().expect("standard input is piped");
        let stdout = process.stdout.take().expect("standard output is piped");
        let mut line = serde_json::to_string(spec)?;
        line.push('\n');
        stdin.write_all(line.as_bytes())?;
        let mut part = Part {
            process,
            stdin: Some(stdin),
            lines: BufReader::new(stdout).lines(),
        };
        let port = part.read_line()?.parse().map_err(io::Error::other)?;
        Ok((port, part))
    }

    fn report(&mut self) -> io::Result<Report> {
        kill_process(Pid::from_child(&self.process), Signal::USR1)?;
        Ok(serde_json::from_str(&self.read_line()?)?)
    }

    fn read_line(&mut self) -> io::Result<String> {
        self.lines
            .next()
            .unwrap_or_else(|| Err(io::Error::other("a process with simulated hosts has ended")))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.stdin.take();
        // Only a process that has been waited for already cannot be.
        let _ = self.process.wait();
    }
}
