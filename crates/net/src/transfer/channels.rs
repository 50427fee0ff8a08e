//! One host's transfer on its session's channels.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use sshoal_fleet::{Failure, FailureKind, HostId, Outcome};
use sshoal_proto::{
    Command, Connection, ConnectionError, Event, LocalChannel, SessionRequest, Stream,
};
use sshoal_transfer::sftp::Dialect;
use sshoal_transfer::{Tally, Trouble};

use super::PACKET;
use super::disk::Jobs;
use super::engine::{Answer, Engine, Happened};
use super::hashing::HashSession;
use super::plan::{TransferPlan, Way};
use super::rate::{Grant, Rate};
use super::streams::Streams;
use crate::drive::Drive;
use crate::plan::RunPlan;

/// Octets that wait for a link before more are sealed for it.
const QUEUED: usize = 256 * 1024;
/// Octets left for which a second channel is worth its opening: one has a window of 2 MiB, TCP about three a round trip.
const WORTH_A_CHANNEL: u64 = 32 * 1024 * 1024;
/// How long a server may say nothing while something is asked of it: a slow disk may take minutes for an fsync.
const PATIENCE: Duration = Duration::from_secs(600);
/// Octets of what the server's program writes to standard error that are kept.
const WORDS: usize = 1024;

/// A transfer and its channels.
pub(crate) struct Transfer {
    plan: Arc<RunPlan>,
    engine: Engine,
    jobs: Jobs<Answer>,
    channels: Vec<Channel>,
    streams: Streams,
    hashing: HashSession,
    /// What the server's program said on standard error.
    words: Vec<u8>,
    /// Its share of what is left in the run's sum.
    left: u64,
    first_trouble: Option<(Vec<u8>, Trouble)>,
    /// What the user is to be told, as the command's output.
    output: Vec<(Stream, Vec<u8>)>,
    stage: Stage,
    /// Since when nothing has come.
    silent_since: Instant,
    /// When the rate allows more.
    wake: Option<Instant>,
    /// What is left to be done is to clean up: the rate does not matter any more.
    hurries: bool,
}

/// A connection of a host's, by a number that no other of its has: the session's own is the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LaneId(pub(crate) u32);

impl LaneId {
    /// The session's own connection.
    pub(crate) const FIRST: LaneId = LaneId(0);
}

struct Channel {
    lane: LaneId,
    number: LocalChannel,
    started: bool,
    /// Whether the server has refused it.
    refused: bool,
    /// Octets that have come and that the server has not been told of.
    owed: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Running,
    /// Everything is done on the host.
    Ended,
    /// Folders here are brought to the disk.
    Syncing,
    Over,
}

impl Transfer {
    /// The transfer of the host with this number in the run, on the session's channel; `None` if the run transfers nothing.
    pub(crate) fn begin(
        plan: &Arc<RunPlan>,
        host: u32,
        channel: LocalChannel,
    ) -> Option<Box<Transfer>> {
        let transfer = plan.transfer.as_ref()?;
        let engine = match &transfer.way {
            Way::Put(put) => {
                let label = plan.label(HostId(host)).unwrap_or_default();
                Engine::put(put, host as usize, label)
            }
            Way::Get(get) => Engine::get(get, host as usize),
        };
        let left = engine.octets_left();
        transfer.moved.change_left(0, left);
        Some(Box::new(Transfer {
            plan: plan.clone(),
            jobs: Jobs::new(&transfer.disk),
            engine,
            channels: vec![Channel::new(LaneId::FIRST, channel)],
            streams: Streams::default(),
            hashing: HashSession::default(),
            words: Vec::new(),
            left,
            first_trouble: None,
            output: Vec::new(),
            stage: Stage::Running,
            silent_since: Instant::now(),
            wake: None,
            hurries: false,
        }))
    }

    /// What a session asks for that transfers files.
    pub(crate) fn request() -> SessionRequest {
        SessionRequest {
            environment: Vec::new(),
            pty: None,
            command: Command::Subsystem("sftp".to_owned()),
            forward_agent: false,
            standard_input: true,
        }
    }

    fn rate(&self) -> Option<&Rate> {
        let rate = self.transfer().and_then(|plan| plan.rate.as_ref());
        rate.filter(|_| !self.hurries)
    }

    fn transfer(&self) -> Option<&TransferPlan> {
        self.plan.transfer.as_ref()
    }

    /// Takes what is about further channels, and data of all; passes on the rest.
    pub(crate) fn handle(
        &mut self,
        lane: LaneId,
        event: Event,
        input: &[u8],
    ) -> Result<Option<Event>, Failure> {
        let position = |number: LocalChannel| {
            let mut channels = self.channels.iter();
            channels.position(|channel| (channel.lane, channel.number) == (lane, number))
        };
        if lane == LaneId::FIRST && self.hashing.handle(&mut self.engine, &event, input) {
            self.silent_since = Instant::now();
            self.note();
            return Ok(None);
        }
        if lane == LaneId::FIRST && self.streams.handle(self.engine.batches(), &event, input) {
            self.silent_since = Instant::now();
            self.note();
            return Ok(None);
        }
        match event {
            Event::Data {
                channel,
                stream,
                ref range,
            } => {
                if let Some(at) = position(channel) {
                    self.handle_data(at, stream, &input[range.clone()])?;
                    return Ok(None);
                }
            }
            Event::Started(channel) => {
                if let Some(at) = position(channel) {
                    self.channels[at].started = true;
                    self.silent_since = Instant::now();
                    if at > 0 {
                        return Ok(None);
                    }
                }
            }
            Event::ChannelRefused { channel, .. } | Event::StartRefused(channel) => {
                match position(channel) {
                    Some(at) if at > 0 => {
                        self.channels[at].refused = true;
                        self.engine.refuse_channel(at);
                        return Ok(None);
                    }
                    // No session at all is told as for a command.
                    Some(_) if matches!(event, Event::StartRefused(_)) => {
                        return Err(no_subsystem());
                    }
                    _ => {}
                }
            }
            Event::Eof(channel)
            | Event::Closed(channel)
            | Event::ExitStatus { channel, .. }
            | Event::ExitSignal { channel, .. } => {
                if let Some(at) = position(channel).filter(|&at| at > 0) {
                    return match self.channels[at].started && self.stage == Stage::Running {
                        true => Err(self.ended_early()),
                        false => Ok(None),
                    };
                }
            }
            _ => {}
        }
        Ok(Some(event))
    }

    fn handle_data(&mut self, at: usize, stream: Stream, octets: &[u8]) -> Result<(), Failure> {
        self.channels[at].owed += octets.len();
        self.silent_since = Instant::now();
        if stream == Stream::Stderr {
            let room = WORDS.saturating_sub(self.words.len()).min(octets.len());
            self.words.extend_from_slice(&octets[..room]);
            return Ok(());
        }
        if self.stage != Stage::Running {
            return Ok(());
        }
        let result = self.engine.handle_input(at, octets);
        result.map_err(|error| {
            let remedy = "try `sftp` by hand: what it says there; Subsystem sftp internal-sftp in sshd_config needs no shell";
            Failure::with_remedy(FailureKind::Transfer, error.to_string(), remedy)
        })?;
        self.note();
        Ok(())
    }

    /// Moves what there is for a connection for as long as its link takes that; returns how many octets.
    pub(crate) fn pump(
        &mut self,
        lane: LaneId,
        drive: &mut Drive,
    ) -> Result<usize, ConnectionError> {
        let mut all = 0;
        loop {
            drive.flush();
            let has_room = drive.queued() < QUEUED;
            let fed = self.feed(lane, &mut drive.connection, has_room)?;
            drive.flush();
            all += fed;
            if fed == 0 || !has_room {
                return Ok(all);
            }
        }
    }

    /// Gives the connection what there is for it, as far as it takes it and the rate allows; returns how many octets.
    fn feed(
        &mut self,
        lane: LaneId,
        connection: &mut Connection,
        has_room: bool,
    ) -> Result<usize, ConnectionError> {
        if lane == LaneId::FIRST {
            // Before anything goes over SFTP the server has said what it is.
            if let Some(server) = connection.server() {
                self.engine.speak(Dialect::of(server.software()));
            }
            self.add_channel(connection)?;
            self.wake = None;
        }
        self.perform();
        let mut fed = 0;
        if lane == LaneId::FIRST {
            fed += self.feed_streams(connection, has_room)?;
            fed += self.feed_hashing(connection, has_room)?;
        }
        for at in 0..self.channels.len() {
            if self.channels[at].lane != lane {
                continue;
            }
            self.give_back(connection, at)?;
            if self.channels[at].started && has_room {
                fed += self.send(connection, at)?;
            }
        }
        self.perform();
        Ok(fed)
    }

    /// The same for archives of small files.
    fn feed_streams(
        &mut self,
        connection: &mut Connection,
        has_room: bool,
    ) -> Result<usize, ConnectionError> {
        if self.stage != Stage::Running {
            return Ok(0);
        }
        let batches = self.engine.batches();
        let plan = self.plan.transfer.as_ref();
        let rate = plan.and_then(|plan| plan.rate.as_ref());
        let rate = rate.filter(|_| !self.hurries);
        self.streams
            .attend(batches, connection, rate, &mut self.wake)?;
        let fed = match has_room {
            true => self
                .streams
                .send(batches, connection, rate, &mut self.wake)?,
            false => 0,
        };
        self.note();
        Ok(fed)
    }

    /// The same for which files the host is to hash.
    fn feed_hashing(
        &mut self,
        connection: &mut Connection,
        has_room: bool,
    ) -> Result<usize, ConnectionError> {
        if self.stage != Stage::Running || !self.channels[0].started {
            return Ok(0);
        }
        let plan = self.plan.transfer.as_ref();
        let rate = plan.and_then(|plan| plan.rate.as_ref());
        let rate = rate.filter(|_| !self.hurries);
        let (engine, wake) = (&mut self.engine, &mut self.wake);
        self.hashing.attend(engine, connection, wake)?;
        let fed = match has_room {
            true => self.hashing.send(engine, connection, rate, wake)?,
            false => 0,
        };
        self.note();
        Ok(fed)
    }

    /// A further connection's channel has started.
    pub(crate) fn join(&mut self, lane: LaneId, number: LocalChannel) {
        self.engine.add_channel();
        let mut channel = Channel::new(lane, number);
        channel.started = true;
        self.channels.push(channel);
        self.silent_since = Instant::now();
    }

    /// A further connection has ended: what it had to do goes to the others.
    pub(crate) fn leave(&mut self, lane: LaneId) {
        for at in 1..self.channels.len() {
            if self.channels[at].lane == lane && !self.channels[at].refused {
                self.channels[at].refused = true;
                self.engine.lose_channel(at);
            }
        }
        self.perform();
    }

    /// How many channels a connection may have; `None` if that is not known yet.
    pub(crate) fn channels_a_lane(&self) -> Option<usize> {
        let second = self.channels.get(1)?;
        match (second.started, second.refused) {
            (_, true) => Some(1),
            (true, _) => Some(2),
            _ => None,
        }
    }

    /// Octets that have arrived, and that are still to come by channels.
    pub(crate) fn progress(&self) -> (u64, u64) {
        let left = match self.stage {
            Stage::Running if !self.hurries => self.engine.octets_left_for_channels(),
            _ => 0,
        };
        (self.engine.tally().octets, left)
    }

    /// Sends what fills packets; what does not, waits for as long as more is about to come.
    fn send(&mut self, connection: &mut Connection, at: usize) -> Result<usize, ConnectionError> {
        let is_whole = self.engine.is_about_to_send(at);
        let octets = self.engine.transmit(at);
        let mut len = match is_whole {
            true => octets.len() / PACKET * PACKET,
            false => octets.len(),
        };
        if len == 0 {
            return Ok(0);
        }
        let plan = self.plan.clone();
        let rate = plan.transfer.as_ref().and_then(|plan| plan.rate.as_ref());
        let rate = rate.filter(|_| !self.hurries);
        if let Some(rate) = rate {
            match rate.take(Instant::now(), len) {
                Grant::Octets(granted) => len = granted,
                Grant::Not(until) => {
                    self.wake = self.wake.into_iter().chain([until]).min();
                    return Ok(0);
                }
            }
        }
        let taken = connection.send_data(self.channels[at].number, &octets[..len])?;
        if let Some(rate) = rate {
            rate.give_back(len - taken);
        }
        if taken > 0 {
            self.engine.transmitted(at, taken);
            self.note();
        }
        Ok(taken)
    }

    /// Tells the server what has been taken of what it sent, as fast as the rate allows.
    fn give_back(&mut self, connection: &mut Connection, at: usize) -> Result<(), ConnectionError> {
        while self.channels[at].owed > 0 {
            let mut octets = self.channels[at].owed;
            if let Some(rate) = self.rate() {
                match rate.take(Instant::now(), octets) {
                    Grant::Octets(granted) => octets = granted,
                    Grant::Not(until) => {
                        self.wake = self.wake.into_iter().chain([until]).min();
                        return Ok(());
                    }
                }
            }
            self.channels[at].owed -= octets;
            connection.consumed(self.channels[at].number, octets)?;
        }
        Ok(())
    }

    /// A second channel doubles what may be under way.
    fn add_channel(&mut self, connection: &mut Connection) -> Result<(), ConnectionError> {
        let is_worth_it = self.channels.len() == 1
            && self.channels[0].started
            && self.stage == Stage::Running
            && self.engine.octets_left_for_channels() >= WORTH_A_CHANNEL;
        if is_worth_it && !self.is_printed() {
            let number = connection.open_session(Transfer::request())?;
            self.engine.add_channel();
            self.channels.push(Channel::new(LaneId::FIRST, number));
        }
        Ok(())
    }

    /// Whether what is fetched goes to the observer, in order.
    fn is_printed(&self) -> bool {
        matches!(self.transfer().map(|plan| &plan.way),
            Some(Way::Get(get)) if matches!(get.target, super::GetTarget::Output))
    }

    /// Has done what is needed here.
    fn perform(&mut self) {
        let printed = self.engine.perform(&self.jobs);
        if !printed.is_empty() {
            self.output.push((Stream::Stdout, printed));
        }
        self.note();
    }

    /// Takes note of what happened.
    fn note(&mut self) {
        while let Some(happened) = self.engine.poll_happened() {
            match happened {
                Happened::Moved(octets) => {
                    if let Some(plan) = self.transfer() {
                        plan.moved.add(octets);
                    }
                }
                Happened::Failed(path, trouble) => self.note_trouble(path, trouble),
                Happened::Ended => self.stage = Stage::Ended,
            }
        }
        let left = self.engine.octets_left();
        if let Some(plan) = self.transfer() {
            plan.moved.change_left(self.left, left);
        }
        self.left = left;
    }

    fn note_trouble(&mut self, path: Vec<u8>, trouble: Trouble) {
        let line = format!(": {trouble}\n");
        let line = [&on_one_line(&path), line.as_bytes()].concat();
        self.output.push((Stream::Stderr, line));
        self.first_trouble.get_or_insert((path, trouble));
    }

    /// What the user is to be told, as a command's output would be.
    pub(crate) fn take_output(&mut self) -> Vec<(Stream, Vec<u8>)> {
        std::mem::take(&mut self.output)
    }

    /// Whether there is something to be said, or the end.
    pub(crate) fn has_news(&self) -> bool {
        let has_ended = matches!(self.stage, Stage::Ended | Stage::Over);
        !self.output.is_empty() || (has_ended && !self.jobs.are_open())
    }

    /// The observer has taken all of it.
    pub(crate) fn confirm_output(&mut self) {
        self.engine.confirm_printed();
        self.note();
    }

    /// When to come back if nothing happens before: the rate allows more, or the server is waited for no longer.
    pub(crate) fn wake(&self) -> Option<Instant> {
        self.wake.into_iter().chain(self.silence_ends()).min()
    }

    /// Ready when work has been done here.
    pub(crate) fn poll_answers(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut answered = Poll::Pending;
        while let Poll::Ready(answer) = self.jobs.poll_next(context) {
            self.take_answer(answer);
            answered = Poll::Ready(());
        }
        answered
    }

    fn take_answer(&mut self, answer: Answer) {
        let is_synced = matches!(answer, Answer::Synced(_));
        if let Err(error) = self.engine.handle_answer(answer) {
            let doing = "bringing folders to the disk";
            self.note_trouble(Vec::new(), Trouble::Local { doing, error });
        }
        if is_synced {
            self.stage = Stage::Over;
        }
        self.note();
    }

    /// When a server is waited for no longer that is asked something and says nothing.
    fn silence_ends(&self) -> Option<Instant> {
        let awaits =
            self.stage == Stage::Running && self.channels[0].started && self.engine.awaits_server();
        awaits.then(|| self.silent_since + PATIENCE)
    }

    /// What became of it, as soon as it is over. `is_closed`: nothing more comes of the session's channel.
    pub(crate) fn outcome(&mut self, is_closed: bool) -> Option<Result<Outcome, Failure>> {
        if self.stage == Stage::Ended {
            // What is half done here goes.
            self.perform();
        }
        if self.stage == Stage::Ended && !self.jobs.are_open() {
            self.stage = match self.engine.finish(&self.jobs, self.hurries) {
                true => Stage::Syncing,
                false => Stage::Over,
            };
        }
        if self.stage == Stage::Running && is_closed {
            return Some(Err(self.ended_early()));
        }
        if self.silence_ends().is_some_and(|end| Instant::now() >= end) {
            let detail = format!("the server has not answered for {} s", PATIENCE.as_secs());
            return Some(Err(self.failure(detail)));
        }
        if self.stage != Stage::Over || self.jobs.are_open() {
            return None;
        }
        Some(match &self.first_trouble {
            None => Ok(Outcome::Exit(0)),
            Some((path, trouble)) => Err(troubles(self.engine.tally(), path, trouble)),
        })
    }

    /// What is left of a block device if nothing more is done.
    pub(crate) fn half_written(&self) -> Option<Trouble> {
        self.engine.half_written()
    }

    /// How far it is.
    pub(crate) fn tally(&self) -> Tally {
        self.engine.tally()
    }

    /// Begins nothing more, cleans up, and ends.
    pub(crate) fn interrupt(&mut self) {
        self.first_trouble
            .get_or_insert((Vec::new(), Trouble::Interrupted));
        self.hurries = true;
        self.engine.interrupt();
        self.note();
    }

    fn ended_early(&self) -> Failure {
        let said = String::from_utf8_lossy(&self.words);
        let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let has_begun = self.engine.has_begun();
        let mut detail = match has_begun {
            true => "the server's SFTP program ended before everything was done",
            false => "the host has no SFTP: what its sshd starts for that ended at once",
        }
        .to_owned();
        if !words.is_empty() {
            detail.push_str(&format!("; it said: {words}"));
        }
        match has_begun {
            true => self.failure(detail),
            false => Failure::with_remedy(FailureKind::Transfer, detail, NEEDS_NO_PROGRAM),
        }
    }

    fn failure(&self, mut detail: String) -> Failure {
        if let Some(device) = self.half_written() {
            detail.push_str(&format!("; {device}"));
        }
        let remedy = "run it again: with -p, what has arrived is not sent again; the log on the host may tell why";
        Failure::with_remedy(FailureKind::Transfer, detail, remedy)
    }
}

impl Drop for Transfer {
    /// What is not sent any more is not left either.
    fn drop(&mut self) {
        if let Some(plan) = self.transfer() {
            plan.moved.change_left(self.left, 0);
        }
    }
}

impl Channel {
    fn new(lane: LaneId, number: LocalChannel) -> Channel {
        Channel {
            lane,
            number,
            started: false,
            refused: false,
            owed: 0,
        }
    }
}

/// A path as a part of a line.
fn on_one_line(path: &[u8]) -> Vec<u8> {
    let octets = path.iter();
    let escaped = octets.flat_map(|octet| match octet {
        b'\n' => b"\\n".to_vec(),
        b'\r' => b"\\r".to_vec(),
        &octet => vec![octet],
    });
    escaped.collect()
}

/// What a host without sftp-server can do.
const NEEDS_NO_PROGRAM: &str = "in its sshd_config, Subsystem sftp internal-sftp needs no program; or install its openssh-sftp-server";

fn no_subsystem() -> Failure {
    let detail = "the server has no SFTP: it refused the subsystem sftp";
    let remedy = "add to its sshd_config: Subsystem sftp internal-sftp";
    Failure::with_remedy(FailureKind::Transfer, detail, remedy)
}

/// Some things could not be transferred.
fn troubles(tally: Tally, path: &[u8], trouble: &Trouble) -> Failure {
    let path = on_one_line(path);
    let path = String::from_utf8_lossy(&path);
    let path = match path.is_empty() {
        true => String::new(),
        false => format!("{path}: "),
    };
    let rest = tally.done + tally.unchanged;
    let detail = match tally.failed {
        0 | 1 if rest == 0 => format!("{path}{trouble}"),
        0 => format!("{path}{trouble}; {rest} are in place"),
        failed => format!("{path}{trouble}; {failed} failed, {rest} are in place"),
    };
    Failure::with_remedy(FailureKind::Transfer, detail, trouble.remedy())
}
