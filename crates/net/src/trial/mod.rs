//! Trials: sessions that move octets from memory to memory, to learn what a cipher, a MAC or a key exchange costs between
//! this machine and a server.
//!
//! A run with a [`TrialPlan`] performs one trial for each of its hosts, which are the same server many times, each with
//! other algorithms. By `exec` the server's shell writes zeros and then reads ours; by `sftp`, where no command may be
//! run, /dev/zero is read and data are sent for a file that is not open, so that nothing is stored. What was measured is
//! left in [`Measurements`]. `processor` reads the CPU time of both ends.

mod exec;
mod processor;
mod sftp;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sshoal_crypto::fingerprint_sha256;
use sshoal_fleet::{Failure, FailureKind};
use sshoal_proto::{
    Command, Connection, ConnectionError, Event, LocalChannel, ServerLists, SessionRequest, Stream,
};

use crate::plan::RunPlan;

pub(crate) use processor::Processor;

use exec::Exec;
use sftp::Sftp;

/// What is sent: zeros cost a cipher as much as anything else.
pub(crate) const ZEROS: &[u8] = &[0; 256 * 1024];
/// A block of what is moved, octets: sizes are whole numbers of them.
const BLOCK: u64 = 64 * 1024;
/// Most octets that are fed in one go, before the connection is looked after.
const AT_ONCE: usize = 4 * ZEROS.len();

/// What the sessions of a run measure.
pub struct TrialPlan {
    /// How octets get into the server's memory and out of it.
    pub way: TrialWay,
    /// For each host of the run how many blocks of 64 KiB go either way; with none only the login is measured.
    pub blocks: Vec<u64>,
    /// What has been measured.
    pub measurements: Arc<Measurements>,
}

/// How octets get into a server's memory and out of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialWay {
    /// By commands of its shell.
    Exec,
    /// By SFTP, where no command may be run.
    Sftp,
}

/// What the trials of a run have measured so far, by host.
#[derive(Debug, Default)]
pub struct Measurements(Mutex<Vec<(u32, Measured)>>);

/// What one trial has measured.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// From the server.
    pub down: Option<Leg>,
    /// To the server.
    pub up: Option<Leg>,
    /// CPU time of this process from the connection to the session's start; not by ssh.
    pub login_cpu: Option<Duration>,
    /// What the server is, also if we have no algorithm in common with it; not by ssh.
    pub server: Option<ServerFacts>,
}

/// One direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leg {
    /// How much.
    pub octets: u64,
    /// How long it took.
    pub elapsed: Duration,
    /// CPU time of this process, or of the ssh that carries the trial.
    pub client_cpu: Option<Duration>,
    /// CPU time of the server's process for this connection, where it may be read.
    pub server_cpu: Option<Duration>,
}

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFacts {
    /// Its identification string.
    pub identification: String,
    /// All that it offers, if [`Settings::keeps_lists`](sshoal_proto::Settings::keeps_lists) was set.
    pub lists: Option<ServerLists>,
    /// Its host key's fingerprint: the name by which its [server cache](crate::server_cache_path) knows it. `None` without a
    /// session, for want of a common algorithm.
    pub fingerprint: Option<String>,
}

impl TrialPlan {
    /// What a session is to ask for that measures so many blocks.
    pub(crate) fn request(way: TrialWay, blocks: u64) -> SessionRequest {
        let command = match way {
            TrialWay::Exec => Command::Exec(exec::command(blocks).into_bytes()),
            TrialWay::Sftp => Command::Subsystem("sftp".to_owned()),
        };
        SessionRequest {
            command,
            standard_input: true,
            ..SessionRequest::exec(Vec::new())
        }
    }

    /// The octets of so many blocks.
    pub const fn octets(blocks: u64) -> u64 {
        blocks * BLOCK
    }
}

impl Measurements {
    /// What a host's trial has measured; nothing if it has not come so far.
    pub fn of(&self, host: u32) -> Measured {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all.iter().find(|(number, _)| *number == host);
        found
            .map(|(_, measured)| measured.clone())
            .unwrap_or_default()
    }

    fn note(&self, host: u32, note: impl FnOnce(&mut Measured)) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = match all.iter().position(|(number, _)| *number == host) {
            Some(at) => at,
            None => {
                all.push((host, Measured::default()));
                all.len() - 1
            }
        };
        note(&mut all[at].1);
    }
}

/// What has come from the server or is to go there, by one way or the other.
enum Talk {
    Exec(Exec),
    Sftp(Sftp),
}

/// One host's trial by a connection of our own.
pub(crate) struct Trial {
    plan: Arc<RunPlan>,
    host: u32,
    channel: LocalChannel,
    talk: Talk,
    /// CPU time of this process when the connection began; until the session has started.
    login_from: Option<Duration>,
    started: bool,
    /// Octets that have come and that the server has not been told of.
    owed: usize,
    sent_eof: bool,
    /// How many directions have been left in the measurements.
    noted: usize,
}

impl Trial {
    /// The trial of a host, if its run measures.
    pub(crate) fn begin(
        plan: &Arc<RunPlan>,
        host: u32,
        channel: LocalChannel,
    ) -> Option<Box<Trial>> {
        let trial = plan.trial.as_ref()?;
        let blocks = trial.blocks.get(host as usize).copied().unwrap_or(0);
        let own = Processor::own();
        let talk = match trial.way {
            TrialWay::Exec => Talk::Exec(Exec::new(TrialPlan::octets(blocks), own)),
            TrialWay::Sftp => Talk::Sftp(Sftp::new(TrialPlan::octets(blocks), own)),
        };
        Some(Box::new(Trial {
            plan: plan.clone(),
            host,
            channel,
            talk,
            login_from: own.time(),
            started: false,
            owed: 0,
            sent_eof: false,
            noted: 0,
        }))
    }

    /// Takes the session's data; passes on the rest.
    pub(crate) fn handle(
        &mut self,
        connection: &Connection,
        event: Event,
        input: &[u8],
    ) -> Result<Option<Event>, Failure> {
        match event {
            Event::Started(channel) if channel == self.channel => {
                self.started = true;
                self.note_start(connection);
            }
            Event::Data {
                channel,
                stream,
                range,
            } if channel == self.channel => {
                self.owed += range.len();
                self.take(stream, &input[range])?;
                return Ok(None);
            }
            _ => {}
        }
        Ok(Some(event))
    }

    fn take(&mut self, stream: Stream, octets: &[u8]) -> Result<(), Failure> {
        let now = Instant::now();
        match &mut self.talk {
            Talk::Exec(exec) => exec.handle(stream, octets, now),
            Talk::Sftp(sftp) if stream == Stream::Stdout => {
                sftp.handle(octets, now).map_err(|problem| {
                    Failure::new(FailureKind::Protocol, format!("SFTP: {problem}"))
                })?;
            }
            Talk::Sftp(_) => {}
        }
        self.note_legs();
        Ok(())
    }

    fn note_start(&self, connection: &Connection) {
        let now = Processor::own().time();
        let login_cpu = now.zip(self.login_from);
        let login_cpu = login_cpu.map(|(now, from)| now.saturating_sub(from));
        self.measurements(|measured| measured.login_cpu = login_cpu);
        self.note_server(connection);
    }

    /// What the server has said of itself so far.
    pub(crate) fn note_server(&self, connection: &Connection) {
        let key = connection.host_key_proof();
        let profile = connection.server_profile();
        let server = profile.map(|profile| ServerFacts {
            identification: profile.identification.clone(),
            lists: connection.server_lists().cloned(),
            fingerprint: key.map(|(key, _)| fingerprint_sha256(key)),
        });
        self.measurements(|measured| measured.server = server);
    }

    fn measurements(&self, note: impl FnOnce(&mut Measured)) {
        if let Some(trial) = &self.plan.trial {
            trial.measurements.note(self.host, note);
        }
    }

    /// Gives the connection what there is for it; returns how many octets it took.
    pub(crate) fn feed(&mut self, connection: &mut Connection) -> Result<usize, ConnectionError> {
        if !self.started {
            return Ok(0);
        }
        let owed = std::mem::take(&mut self.owed);
        if owed > 0 {
            connection.consumed(self.channel, owed)?;
        }
        let mut fed = 0;
        while fed < AT_ONCE {
            let octets = match &mut self.talk {
                Talk::Exec(exec) => exec.transmit(),
                Talk::Sftp(sftp) => sftp.transmit(),
            };
            if octets.is_empty() {
                break;
            }
            let offered = octets.len();
            let taken = connection.send_data(self.channel, octets)?;
            match &mut self.talk {
                Talk::Exec(exec) => exec.transmitted(taken),
                Talk::Sftp(sftp) => sftp.transmitted(taken),
            }
            fed += taken;
            if taken < offered {
                break;
            }
        }
        let has_sent_all = match &self.talk {
            Talk::Exec(exec) => exec.has_sent_all(),
            Talk::Sftp(sftp) => sftp.is_over(),
        };
        if has_sent_all && !self.sent_eof {
            self.sent_eof = true;
            connection.send_eof(self.channel)?;
        }
        Ok(fed)
    }

    /// Leaves each direction's measurement as soon as it is there: nothing may follow.
    fn note_legs(&mut self) {
        let (down, up) = match &self.talk {
            Talk::Exec(exec) => exec.legs(),
            Talk::Sftp(sftp) => sftp.legs(),
        };
        let count = usize::from(down.is_some()) + usize::from(up.is_some());
        if count > self.noted {
            self.noted = count;
            self.measurements(|measured| (measured.down, measured.up) = (down, up));
        }
    }
}

/// One host's trial by an ssh.
pub(crate) struct SshTrial {
    plan: Arc<RunPlan>,
    host: u32,
    exec: Exec,
}

impl SshTrial {
    /// The trial of a host, if its run measures; `process` is the ssh.
    pub(crate) fn begin(plan: &Arc<RunPlan>, host: u32, process: u32) -> Option<SshTrial> {
        let trial = plan.trial.as_ref()?;
        let blocks = trial.blocks.get(host as usize).copied().unwrap_or(0);
        Some(SshTrial {
            plan: plan.clone(),
            host,
            exec: Exec::new(TrialPlan::octets(blocks), Processor::of(process)),
        })
    }

    /// Takes what has come.
    pub(crate) fn handle(&mut self, stream: Stream, octets: &[u8]) {
        self.exec.handle(stream, octets, Instant::now());
        let (down, up) = self.exec.legs();
        if let Some(trial) = &self.plan.trial {
            let note = |measured: &mut Measured| (measured.down, measured.up) = (down, up);
            trial.measurements.note(self.host, note);
        }
    }

    /// How long nothing is to be read of what the command writes.
    pub(crate) fn take_pause(&mut self) -> Option<Duration> {
        self.exec.take_pause()
    }

    /// How much is to be sent now: nothing before all has come, `None` after all has gone.
    pub(crate) fn due(&mut self) -> Option<usize> {
        match self.exec.has_sent_all() {
            true => None,
            false => Some(self.exec.transmit().len()),
        }
    }

    /// So much of it has gone.
    pub(crate) fn sent(&mut self, octets: usize) {
        self.exec.transmitted(octets);
    }
}
