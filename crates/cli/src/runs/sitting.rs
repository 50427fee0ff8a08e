//! A run and its journal: one that begins, or one that is gone on with.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Arc;

use sshoal_journal::run::{HostState, Left, Plan, PlannedHost, RunState};
use sshoal_net::{Durability, KnownRun, NewRun, RunJournal, runs_folder};
use sshoal_report::Host;
use sshoal_targets::Target;

use super::args::{Journal, JournalArgs};
use super::{Reads, prune};
use crate::args::HostArgs;
use crate::rolling::{self, Batched, RollingArgs, RollingError};
use crate::say::say;

/// Why the journal that was asked for cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalError {
    #[error("--record keeps the output in the journal, and --journal=off keeps none")]
    NothingToRecordIn,
    #[error("the run's journal cannot be written: {0}; --journal=off does without one")]
    Unwritable(io::Error),
    #[error("the run cannot be gone on with: its journal: {0}")]
    NotGoneOn(io::Error),
}

/// What a run knows of its journal while it is prepared.
pub(crate) enum Sitting<'a> {
    /// The run begins, by this command line, the defaults in it.
    First(&'a [OsString]),
    /// It is gone on with.
    Further(&'a Further),
}

/// A run that is gone on with.
pub(crate) struct Further {
    pub(crate) run: KnownRun,
    /// Which of its hosts are performed now, by their numbers in the journal.
    pub(crate) hosts: Vec<u32>,
}

impl Sitting<'_> {
    /// The hosts that are performed now, and their batches.
    pub(crate) fn batched(
        &self,
        hosts: &HostArgs,
        args: &RollingArgs,
    ) -> Result<Batched, RollingError> {
        match self {
            Sitting::First(_) => rolling::targets(hosts, args),
            Sitting::Further(further) => Ok(Batched {
                targets: further.planned().map(target).collect(),
                plan: rolling::further(args, &further.past())?,
            }),
        }
    }

    /// The numbers in the journal of the hosts that are performed now.
    pub(crate) fn numbers(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        match self {
            Sitting::First(_) => Box::new(0..),
            Sitting::Further(further) => Box::new(further.hosts.iter().copied()),
        }
    }

    /// Has the hosts called as they were when the run began.
    pub(crate) fn name(&self, hosts: &mut [Host]) {
        if let Sitting::Further(further) = self {
            for (host, planned) in hosts.iter_mut().zip(further.planned()) {
                host.label.clone_from(&planned.label);
            }
        }
    }

    /// The journal, which is locked from now on; `None` if there is none.
    pub(crate) fn journal(
        &self,
        command: &str,
        (args, quiet): (&JournalArgs, bool),
        (hosts, canaries, is_needed): (&[Host], u32, bool),
        reads: impl FnOnce() -> io::Result<Reads>,
    ) -> Result<Option<Arc<RunJournal>>, JournalError> {
        let durability = match args.journal {
            Journal::Write => Durability::Write,
            Journal::Sync => Durability::Sync,
            Journal::Off if args.record => return Err(JournalError::NothingToRecordIn),
            Journal::Off => return Ok(None),
        };
        let journal = match self {
            Sitting::Further(further) => further.journal(durability).map(Some),
            Sitting::First(arguments) => {
                let plan = Plan {
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                    command: command.to_owned(),
                    keeps_output: args.record,
                    canaries,
                    ..Plan::default()
                };
                begin((plan, is_needed), arguments, hosts, reads, durability)
            }
        };
        prune::in_background(&args.keep);
        match journal {
            Ok(journal) => Ok(journal.map(Arc::new)),
            Err(error) if matches!(self, Sitting::Further(_)) => {
                Err(JournalError::NotGoneOn(error))
            }
            Err(error) if durability == Durability::Sync || args.record => {
                Err(JournalError::Unwritable(error))
            }
            // No reason not to run: most runs are never gone on with.
            Err(error) => {
                if !quiet {
                    say(format!("no journal of this run is kept: {error}"));
                }
                Ok(None)
            }
        }
    }
}

impl Further {
    fn planned(&self) -> impl Iterator<Item = &PlannedHost> {
        let all = &self.run.state.hosts;
        self.hosts.iter().filter_map(|host| all.get(*host as usize))
    }

    /// What has been of the run's batches.
    fn past(&self) -> rolling::Past<'_> {
        let state = &self.run.state;
        let is_now = |host: usize| self.hosts.binary_search(&(host as u32)).is_ok();
        let over = state.states.iter().enumerate();
        let over = over.filter(|(host, _)| !is_now(*host));
        let failed = over.filter(|(_, state)| has_failed(state));
        rolling::Past {
            run: self.run.id,
            hosts: state.hosts.len() as u32,
            canaries: state.plan.canaries,
            left: &self.hosts,
            failed: failed
                .map(|(host, _)| (host as u32, state.hosts[host].label.as_str()))
                .collect(),
        }
    }

    fn journal(&self, durability: Durability) -> io::Result<RunJournal> {
        RunJournal::go_on(&self.run, self.hosts.clone(), durability)
    }
}

/// Whether a host counts as failed that is not gone on with.
fn has_failed(state: &HostState) -> bool {
    match state {
        HostState::NotSent => false,
        HostState::Sent => true,
        HostState::Ended(_) if state.left() == Left::ToRun => false,
        HostState::Ended(ended) => ended.ending != sshoal_journal::run::Ending::Exit(0),
    }
}

fn begin(
    (plan, is_needed): (Plan, bool),
    arguments: &[OsString],
    hosts: &[Host],
    reads: impl FnOnce() -> io::Result<Reads>,
    durability: Durability,
) -> io::Result<Option<RunJournal>> {
    let Some(folder) = runs_folder() else {
        return match durability {
            Durability::Write => Ok(None),
            Durability::Sync => Err(io::Error::other(
                "neither XDG_STATE_HOME nor HOME is set to an absolute path",
            )),
        };
    };
    let Reads { files, once } = reads()?;
    let new = NewRun {
        plan: Plan {
            folder: std::env::current_dir()?.into_os_string().into_vec(),
            ..plan
        },
        arguments: arguments
            .iter()
            .map(|word| word.as_bytes().to_vec())
            .collect(),
        files,
        once,
        hosts: hosts.iter().map(planned).collect(),
        is_needed,
    };
    RunJournal::create(&folder, new, durability).map(Some)
}

fn planned(host: &Host) -> PlannedHost {
    PlannedHost {
        label: host.label.clone(),
        name: host.target.name.clone(),
        user: host.target.user.clone(),
        port: host.target.port.unwrap_or_default(),
        options: host.target.options.clone(),
        login_user: host.user.clone(),
        login_port: host.port.unwrap_or_default(),
        transport: host.way.as_ref().map_or("", |way| way.transport).to_owned(),
        why: host.way.as_ref().and_then(|way| way.why.clone()),
    }
}

/// The host as the user named it.
pub(crate) fn target(planned: &PlannedHost) -> Target {
    Target {
        name: planned.name.clone(),
        user: planned.user.clone(),
        port: Some(planned.port).filter(|port| *port > 0),
        options: planned.options.clone(),
    }
}

/// The command line as words.
pub(crate) fn arguments(state: &RunState) -> Vec<OsString> {
    let words = state.arguments.iter().cloned();
    words.map(OsString::from_vec).collect()
}
