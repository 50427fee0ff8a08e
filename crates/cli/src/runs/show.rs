//! `sshoal show RUN`: what a run said, in any form, by the report that any run has.

use std::time::Duration;

use sshoal_fleet::HostId;
use sshoal_journal::run::{HostState, PlannedHost, RunRecord, RunState};
use sshoal_net::{KnownRun, find_run, read_run, result_of, verdict_of};
use sshoal_report::{CutShort, Host, Reporter, RunEnd, Stream, Way};

use super::args::ShowArgs;
use super::list::Row;
use super::{doubt, sitting};
use crate::fan_out;
use crate::say::say;

/// Why a run cannot be shown.
#[derive(Debug, thiserror::Error)]
#[error("the plan of run {0} was not noted whole: nothing was begun, and there is nothing to show")]
struct NoPlan(sshoal_journal::run::RunId);

/// Shows the run; returns its exit status.
pub(crate) fn run(args: &ShowArgs) -> Result<u8, Box<dyn std::error::Error>> {
    let id = find_run(&args.run)?;
    let mut attempts = Vec::new();
    let known = read_run(id, |record| count_attempts(record, &mut attempts))?;
    if !known.state.is_planned {
        return Err(NoPlan(id).into());
    }
    if known.is_on {
        say(format!("run {id} is still on: this is how far it is"));
    }
    if !known.state.plan.keeps_output && !args.output.quiet {
        say(format!(
            "run {id} kept no output (--record), but how its hosts ended"
        ));
    }
    if let Err(damaged) = known.undamaged() {
        say(damaged);
    }
    if known.may_lack_records() {
        say(doubt(&known));
    }
    let hosts = known.state.hosts.iter().map(host).collect();
    let has_output = known.state.plan.keeps_output;
    let mut shown = Shown {
        reporter: fan_out::reporter(&args.output, hosts, has_output)?,
        known: &known.state,
        left: attempts,
        is_shown: vec![false; known.state.hosts.len()],
        failure: None,
    };
    if args.output.json {
        let line = Row::of(&known).line()?;
        shown.failure = shown.reporter.print(line.as_bytes()).err();
    }
    read_run(id, |record| shown.take(record))?;
    let shown = shown.finish(&known);
    if let Some(status) = known.state.status
        && !args.output.quiet
        && !args.output.json
    {
        say(format!("run {id} exited with status {status}"));
    }
    Ok(shown)
}

/// How often each host's command was sent.
fn count_attempts(record: &RunRecord, attempts: &mut Vec<u32>) {
    match record {
        RunRecord::Hosts(hosts) => attempts.resize(attempts.len() + hosts.len(), 0),
        RunRecord::Sent(hosts) => {
            for host in hosts {
                if let Some(attempts) = attempts.get_mut(*host as usize) {
                    *attempts += 1;
                }
            }
        }
        _ => {}
    }
}

struct Shown<'a> {
    reporter: Reporter,
    known: &'a RunState,
    /// How often each host's command is still sent: what comes before the last time is of an attempt that nobody knows the end of.
    left: Vec<u32>,
    is_shown: Vec<bool>,
    failure: Option<std::io::Error>,
}

impl Shown<'_> {
    fn take(&mut self, record: &RunRecord) {
        let shown = match record {
            RunRecord::Sent(hosts) => {
                for host in hosts {
                    if let Some(left) = self.left.get_mut(*host as usize) {
                        *left = left.saturating_sub(1);
                    }
                }
                Ok(())
            }
            RunRecord::Output {
                host,
                is_stderr,
                octets,
            } if self.is_last(*host) => {
                let stream = match is_stderr {
                    true => Stream::Stderr,
                    false => Stream::Stdout,
                };
                self.reporter.handle_output(HostId(*host), stream, octets)
            }
            RunRecord::Killed { host, verdict } if self.is_last(*host) => self
                .reporter
                .handle_killed(HostId(*host), &verdict_of(verdict)),
            RunRecord::Result { host, ending } if self.is_last(*host) => {
                match self.known.states.get(*host as usize) {
                    // A later word counts.
                    Some(HostState::Ended(last)) if **last == *ending => self.end(*host),
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        };
        if let Err(error) = shown {
            self.failure.get_or_insert(error);
        }
    }

    fn is_last(&self, host: u32) -> bool {
        self.left.get(host as usize) == Some(&0) && self.is_shown.get(host as usize) == Some(&false)
    }

    fn end(&mut self, host: u32) -> std::io::Result<()> {
        self.is_shown[host as usize] = true;
        let result = result_of(HostId(host), &self.known.states[host as usize]);
        self.reporter.handle_result(&result)
    }

    fn finish(mut self, run: &KnownRun) -> u8 {
        for host in 0..self.is_shown.len() {
            if !self.is_shown[host]
                && let Err(error) = self.end(host as u32)
            {
                self.failure.get_or_insert(error);
            }
        }
        let end = RunEnd {
            cut_short: cut_short(&run.state),
            elapsed: elapsed(&run.state),
        };
        // It remembers its first failure itself, and that makes the status.
        self.reporter.finish(end).exit_status
    }
}

fn cut_short(state: &RunState) -> Option<CutShort> {
    match state.ended? {
        (_, 0) => None,
        (_, 2) => Some(CutShort::Interrupted),
        (_, signal) => Some(CutShort::Stopped(signal.cast_signed())),
    }
}

/// From the run's beginning to its last end.
fn elapsed(state: &RunState) -> Duration {
    let ended = state.ended.map_or(state.plan.at_ms, |(at_ms, _)| at_ms);
    Duration::from_millis(ended.saturating_sub(state.plan.at_ms))
}

fn host(planned: &PlannedHost) -> Host {
    let transport = match planned.transport.as_str() {
        "" => None,
        "openssh" => Some("openssh"),
        _ => Some("native"),
    };
    Host {
        label: planned.label.clone(),
        target: sitting::target(planned),
        user: planned.login_user.clone(),
        port: Some(planned.login_port).filter(|port| *port > 0),
        way: transport.map(|transport| Way {
            transport,
            why: planned.why.clone(),
            is_warm: false,
        }),
    }
}
