//! What a run's journal says in all.

use super::record::{Boot, Ending, FileIdentity, HostEnding, Known, Plan, PlannedHost, RunRecord};

/// A run as far as its journal knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunState {
    /// What was to be done.
    pub plan: Plan,
    /// The command line, the program's name first.
    pub arguments: Vec<Vec<u8>>,
    /// The files that it reads.
    pub files: Vec<FileIdentity>,
    /// What of its input can be read once only, and why.
    pub once: Option<String>,
    /// Its hosts, in the order in which they start.
    pub hosts: Vec<PlannedHost>,
    /// How far each of them is.
    pub states: Vec<HostState>,
    /// Whether the plan is whole. If it is not nothing was begun.
    pub is_planned: bool,
    /// How many processes have carried it out.
    pub sittings: u32,
    /// When the last of them came to its end, milliseconds since 1970, and the signal that cut it short; `None` if it did not.
    pub ended: Option<(u64, u32)>,
    /// The status that it exited with; `None` if that was not noted.
    pub status: Option<u8>,
    /// Where the last of them was carried out; `None` if that was not noted.
    pub boot: Option<Boot>,
    /// Hosts whose command may have run before the last of them began: that it did not then says nothing of before.
    doubted: Vec<u32>,
}

/// How far a host is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum HostState {
    /// Its command has not been sent.
    #[default]
    NotSent,
    /// Its command was about to leave, and nothing more is known.
    Sent,
    /// It has ended.
    Ended(Box<HostEnding>),
}

/// What becomes of a host when its run is gone on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// It has come to its end.
    Nothing,
    /// Its command has not run, and is to.
    ToRun,
    /// Its command may have run.
    MaybeRan,
}

impl RunState {
    /// Takes the next record.
    pub fn apply(&mut self, record: RunRecord) {
        match record {
            RunRecord::Plan(plan) => self.plan = plan,
            RunRecord::Argument(word) => self.arguments.push(word),
            RunRecord::File(file) => self.files.push(file),
            RunRecord::Once(why) => self.once = Some(why),
            RunRecord::Hosts(hosts) => {
                self.hosts.extend(hosts);
                self.states
                    .resize_with(self.hosts.len(), HostState::default);
            }
            RunRecord::Planned => self.is_planned = true,
            RunRecord::Began { boot, .. } => {
                self.sittings += 1;
                (self.ended, self.status) = (None, None);
                self.boot = boot;
                let hosts = (0..).zip(&self.states);
                let doubted = hosts.filter(|(_, state)| state.left() == Left::MaybeRan);
                self.doubted = doubted.map(|(host, _)| host).collect();
            }
            RunRecord::Sent(hosts) => {
                for host in hosts {
                    self.set(host, HostState::Sent);
                }
            }
            RunRecord::Unsent(host) => self.set(host, HostState::NotSent),
            RunRecord::Result { host, ending } => {
                self.set(host, HostState::Ended(Box::new(ending)))
            }
            RunRecord::Output { .. } | RunRecord::Killed { .. } => {}
            RunRecord::Ended { at_ms, signal } => self.ended = Some((at_ms, signal)),
            RunRecord::Status(status) => self.status = Some(status),
        }
    }

    fn set(&mut self, host: u32, state: HostState) {
        if state.has_not_run() && self.doubted.binary_search(&host).is_ok() {
            return;
        }
        if let Some(known) = self.states.get_mut(host as usize) {
            *known = state;
        }
    }

    /// Whether its last process came to its end by itself, while the turn of some hosts had not come: nothing more was to be started.
    pub fn is_halted(&self) -> bool {
        let has_had_no_turn = |state: &HostState| match state {
            HostState::NotSent => true,
            HostState::Sent => false,
            HostState::Ended(ended) => ended.ending == Ending::NotStarted,
        };
        matches!(self.ended, Some((_, 0))) && self.states.iter().any(has_had_no_turn)
    }

    /// How many hosts are to be gone on with in this way.
    pub fn count(&self, left: Left) -> usize {
        self.states
            .iter()
            .filter(|state| state.left() == left)
            .count()
    }
}

impl HostState {
    /// Whether its command may have run, as far as is known.
    pub fn may_have_run(&self) -> bool {
        !self.has_not_run()
    }

    /// Whether its command is proven not to have run.
    fn has_not_run(&self) -> bool {
        match self {
            HostState::NotSent => true,
            HostState::Sent => false,
            HostState::Ended(ended) => match &ended.ending {
                Ending::NotStarted => true,
                Ending::Failed { known, .. } => {
                    matches!(known, Known::NotSent | Known::Discarded)
                }
                _ => false,
            },
        }
    }

    /// What becomes of it when the run is gone on with.
    pub fn left(&self) -> Left {
        match self {
            HostState::NotSent => Left::ToRun,
            HostState::Sent => Left::MaybeRan,
            HostState::Ended(ended) => ended.left(),
        }
    }
}

impl HostEnding {
    /// What becomes of a host that has ended so when its run is gone on with.
    pub fn left(&self) -> Left {
        match &self.ending {
            Ending::NotStarted => Left::ToRun,
            // Whoever interrupted the run ended it, not the host.
            Ending::Failed { kind, known, .. } if kind == "lost" => match known {
                Known::NotSent | Known::Discarded => Left::ToRun,
                Known::MayHaveRun | Known::Ran => Left::MaybeRan,
            },
            _ => Left::Nothing,
        }
    }
}
