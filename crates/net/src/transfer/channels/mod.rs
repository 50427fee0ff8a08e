//! One host's transfer on its session's channels.

mod ending;
mod sending;
mod standing_in;

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use sshoal_fleet::{Failure, FailureKind, HostId};
use sshoal_proto::{
    Command, Connection, ConnectionError, Event, LocalChannel, SessionRequest, Stream,
};
use sshoal_transfer::{ShellServer, Tally, Trouble};

use super::asking::{About, Asking};
use super::beside;
use super::disk::Jobs;
use super::engine::{Answer, Engine};
use super::plan::{TransferPlan, Way};
use super::rate::Rate;
use super::silence::Silences;
use super::streams::Streams;
use crate::plan::RunPlan;
use standing_in::{Missing, StandingIn};

/// Octets left for which a second channel is worth its opening: one has a window of 2 MiB, TCP about three a round trip.
const WORTH_A_CHANNEL: u64 = 32 * 1024 * 1024;
/// Octets of what the server's program writes to standard error that are kept.
const WORDS: usize = 1024;

/// A transfer and its channels.
pub(crate) struct Transfer {
    plan: Arc<RunPlan>,
    engine: Engine,
    jobs: Jobs<Answer>,
    channels: Vec<Channel>,
    streams: Streams,
    asking: [Asking; 2],
    /// What the server's program said on standard error.
    words: Vec<u8>,
    /// With which status it has ended.
    status: Option<u32>,
    /// The host's number in the run.
    host: usize,
    first_trouble: Option<(Vec<u8>, Trouble)>,
    /// What the user is to be told, as the command's output.
    output: Vec<(Stream, Vec<u8>)>,
    stage: Stage,
    begun: Instant,
    /// Since when nothing has come, by whatever way, nor gone, nor been held back by the rate.
    silent_since: Instant,
    /// Whether the server was asked something when that was last looked at.
    awaited: bool,
    silences: Silences,
    /// How far a shell is that stands in for an SFTP server.
    standing_in: StandingIn,
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
    /// Whether it is done without: it hangs, or its connection has ended.
    lost: bool,
    /// Whether its program has ended before the first channel's has said anything.
    ended: bool,
    /// Octets that have come and that the server has not been told of.
    owed: usize,
    /// What takes an SFTP server's place.
    shell: Option<Box<ShellServer>>,
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
    /// The transfer of the host with this number in the run, on the session's channel, whose packets need so long there and
    /// back; `None` if the run transfers nothing.
    pub(crate) fn begin(
        plan: &Arc<RunPlan>,
        host: u32,
        channel: LocalChannel,
        round_trip: Duration,
    ) -> Option<Box<Transfer>> {
        let transfer = plan.transfer.as_ref()?;
        let engine = match &transfer.way {
            Way::Put(put) => {
                let account = plan.account(HostId(host)).unwrap_or_default();
                Engine::put(put, host as usize, &account)
            }
            Way::Get(get) => Engine::get(get, host as usize),
        };
        transfer.moved.begin(host as usize);
        transfer.moved.set_left(host as usize, engine.octets_left());
        Some(Box::new(Transfer {
            plan: plan.clone(),
            jobs: Jobs::new(&transfer.disk),
            engine,
            channels: vec![Channel::new(LaneId::FIRST, channel)],
            streams: Streams::default(),
            asking: [About::Hashes, About::Accounts].map(Asking::new),
            words: Vec::new(),
            status: None,
            host: host as usize,
            first_trouble: None,
            output: Vec::new(),
            stage: Stage::Running,
            begun: Instant::now(),
            silent_since: Instant::now(),
            awaited: false,
            silences: Silences::new(round_trip, Instant::now()),
            standing_in: StandingIn::default(),
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
        if lane == LaneId::FIRST && self.is_about_replaced(&event) {
            return Ok(None);
        }
        let position = |number: LocalChannel| {
            let mut channels = self.channels.iter();
            channels.position(|channel| (channel.lane, channel.number) == (lane, number))
        };
        let engine = &mut self.engine;
        let mut asking = self.asking.iter_mut();
        if lane == LaneId::FIRST && asking.any(|it| it.handle(engine, &event, input)) {
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
                    self.hear(at);
                    // What stands in for a program that has ended is not told of once more.
                    if at > 0 || self.standing_in.follows_program() {
                        return Ok(None);
                    }
                }
            }
            Event::ChannelRefused { channel, .. } | Event::StartRefused(channel) => {
                match position(channel) {
                    Some(at) if at > 0 => {
                        self.channels[at].refused = true;
                        self.silences.leave(at);
                        self.engine.refuse_channel(at);
                        return Ok(None);
                    }
                    // No session at all is told as for a command.
                    Some(_) if matches!(event, Event::StartRefused(_)) => {
                        self.replace(Missing::Subsystem)?;
                        return Ok(None);
                    }
                    _ => {}
                }
            }
            Event::ExitStatus { channel, status }
                if position(channel) == Some(0) && self.misses_program(status) =>
            {
                self.replace(Missing::Program)?;
                return Ok(None);
            }
            Event::ExitStatus { channel, status } if position(channel) == Some(0) => {
                self.status = Some(status);
            }
            Event::Eof(channel)
            | Event::Closed(channel)
            | Event::ExitStatus { channel, .. }
            | Event::ExitSignal { channel, .. } => {
                if let Some(at) = position(channel).filter(|&at| at > 0) {
                    // What the first one comes to goes for all.
                    if !self.has_begun() {
                        self.channels[at].ended = true;
                        return Ok(None);
                    }
                    let it = &self.channels[at];
                    let is_missed = it.started && !it.lost && self.stage == Stage::Running;
                    return match is_missed {
                        // The first one goes on.
                        true if lane == LaneId::FIRST => {
                            self.lose(at);
                            self.perform();
                            Ok(None)
                        }
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
        if self.channels[at].lost {
            return Ok(());
        }
        self.channels[at].owed += octets.len();
        self.hear(at);
        self.engine.set_time(self.begun.elapsed());
        if stream == Stream::Stderr {
            let room = WORDS.saturating_sub(self.words.len()).min(octets.len());
            self.words.extend_from_slice(&octets[..room]);
            return Ok(());
        }
        if self.stage != Stage::Running {
            return Ok(());
        }
        self.give_engine(at, octets)?;
        self.note();
        Ok(())
    }

    /// Gives the engine what an SFTP server has said, or what says the same by a shell.
    fn give_engine(&mut self, at: usize, octets: &[u8]) -> Result<(), Failure> {
        let result = match &mut self.channels[at].shell {
            Some(shell) => {
                shell
                    .handle_input(octets)
                    .map_err(|error| standing_in::of_no_use(&error))?;
                self.engine.handle_input(at, &shell.take_replies())
            }
            None => self.engine.handle_input(at, octets),
        };
        result.map_err(|error| {
            let remedy = "try `sftp` by hand: what it says there; Subsystem sftp internal-sftp in sshd_config needs no shell";
            Failure::with_remedy(FailureKind::Transfer, error.to_string(), remedy)
        })
    }

    /// A further connection's channel has started.
    pub(crate) fn join(&mut self, lane: LaneId, number: LocalChannel) {
        self.engine.join_channel();
        let mut channel = self.channel(lane, number);
        channel.started = true;
        self.channels.push(channel);
        self.silences.add();
        self.silent_since = Instant::now();
    }

    /// A further connection has ended: what it had to do goes to the others.
    pub(crate) fn leave(&mut self, lane: LaneId) {
        for at in 1..self.channels.len() {
            if self.channels[at].lane == lane && self.channels[at].is_of_use() {
                self.lose(at);
            }
        }
        self.perform();
    }

    /// A further channel is done without: what it had to do goes to the others.
    fn lose(&mut self, at: usize) {
        self.channels[at].lost = true;
        self.silences.leave(at);
        self.engine.lose_channel(at);
    }

    /// A further connection gets nothing more to do: with it the others were no faster.
    pub(crate) fn retire(&mut self, lane: LaneId) {
        for at in 1..self.channels.len() {
            if self.channels[at].lane == lane && self.channels[at].is_of_use() {
                self.engine.retire_channel(at);
            }
        }
        self.perform();
    }

    /// Whether further connections may be made: the session's own is logged in and has much to do.
    pub(crate) fn may_grow(&self) -> bool {
        self.channels.len() > 1
    }

    /// How many channels a connection may have; two while the server has not answered whether it allows a second one.
    pub(crate) fn channels_a_lane(&self) -> usize {
        match self.channels.get(1).is_some_and(|second| second.refused) {
            true => 1,
            false => 2,
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

    /// A second channel doubles what may be under way.
    fn add_channel(&mut self, connection: &mut Connection) -> Result<(), ConnectionError> {
        let is_worth_it = self.channels.len() == 1
            && self.channels[0].started
            && self.stage == Stage::Running
            && self.engine.octets_left_for_channels() >= WORTH_A_CHANNEL;
        if is_worth_it && !self.is_printed() {
            let number = connection.open_session(self.channel_request())?;
            self.engine.add_channel();
            let channel = self.channel(LaneId::FIRST, number);
            self.channels.push(channel);
            self.silences.add();
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
        self.engine.set_time(self.begun.elapsed());
        let printed = self.engine.perform(&self.jobs);
        if !printed.is_empty() {
            self.output.push((Stream::Stdout, printed));
        }
        self.note();
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
        let silence_ends = self.silence_ends().into_iter();
        let wake = silence_ends.chain(self.wake);
        let wake = wake.chain(self.standing_in.wake());
        wake.chain(self.silences.wake()).min()
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

    /// How far it is.
    pub(crate) fn tally(&self) -> Tally {
        Tally {
            why_shell: self.standing_in.why(),
            ..self.engine.tally()
        }
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        if let Some(plan) = self.transfer() {
            plan.moved.end(self.host);
        }
    }
}

impl Channel {
    fn is_of_use(&self) -> bool {
        !self.refused && !self.lost
    }

    fn new(lane: LaneId, number: LocalChannel) -> Channel {
        Channel {
            lane,
            number,
            started: false,
            refused: false,
            lost: false,
            ended: false,
            owed: 0,
            shell: None,
        }
    }
}
