//! What became of a host's transfer, and when it is over.

use std::future::poll_fn;
use std::time::{Duration, Instant};

use sshoal_fleet::{Failure, FailureKind, Outcome};
use sshoal_proto::{Connection, ConnectionError, Stream};
use sshoal_transfer::{Tally, Trouble};

use super::super::engine::Happened;
use super::super::plan::{Telling, TransferPlan, Way};
use super::super::silence::{LONG, PATIENCE};
use super::{LaneId, Stage, Transfer};

/// How long work here may take to end when the connection is lost, before it is not gone on with.
const WINDING_UP: Duration = Duration::from_secs(5);

impl Transfer {
    /// Takes note of what happened.
    pub(super) fn note(&mut self) {
        while let Some(happened) = self.engine.poll_happened() {
            match happened {
                Happened::Moved(octets) => {
                    if let Some(plan) = self.transfer() {
                        plan.moved.add(self.host, octets);
                    }
                }
                Happened::Deleted(path) => self.note_deleted(&path),
                Happened::Failed(path, trouble) => self.note_trouble(path, trouble),
                Happened::Ended => self.stage = Stage::Ended,
            }
        }
        let left = self.engine.octets_left();
        if let Some(plan) = self.transfer() {
            plan.moved.set_left(self.host, left);
        }
    }

    /// Tells what is gone, or would be, if that is wanted.
    fn note_deleted(&mut self, path: &[u8]) {
        let how: &[u8] = match self.transfer().map(|plan| plan.telling) {
            Some(Telling::WouldDelete) => b"would delete ",
            Some(Telling::Deleted) => b"deleted ",
            Some(Telling::Nothing) | None => return,
        };
        let line = [how, &on_one_line(path), b"\n"].concat();
        self.output.push((Stream::Stdout, line));
    }

    pub(super) fn note_trouble(&mut self, path: Vec<u8>, trouble: Trouble) {
        let line = match path.as_slice() {
            b"" => format!("{trouble}\n").into_bytes(),
            path => [&on_one_line(path), format!(": {trouble}\n").as_bytes()].concat(),
        };
        self.output.push((Stream::Stderr, line));
        self.first_trouble.get_or_insert((path, trouble));
    }

    fn awaits_server(&self) -> bool {
        self.stage == Stage::Running && self.channels[0].started && self.engine.awaits_server()
    }

    /// When a server is waited for no longer that is asked something and says nothing.
    pub(super) fn silence_ends(&self) -> Option<Instant> {
        self.awaits_server().then(|| self.silent_since + PATIENCE)
    }

    /// Something has come on a channel.
    pub(super) fn hear(&mut self, at: usize) {
        let now = Instant::now();
        self.silent_since = now;
        self.silences.hear(at, now);
    }

    /// Notes whether a channel is waited for. The second one of the session's own connection is closed if it hangs.
    pub(super) fn attend(
        &mut self,
        connection: &mut Connection,
        at: usize,
    ) -> Result<(), ConnectionError> {
        let it = &self.channels[at];
        let is_asked = it.started && it.is_of_use() && self.engine.awaits(at);
        self.silences.note(at, is_asked, Instant::now());
        let (lane, number) = (it.lane, it.number);
        if at > 0 && lane == LaneId::FIRST && self.hangs(at) {
            tracing::debug!(channel = at, "a further channel hangs");
            self.lose(at);
            connection.close(number)?;
        }
        Ok(())
    }

    fn hangs(&self, at: usize) -> bool {
        let awaits_disk = || self.engine.awaits_disk(at);
        self.stage == Stage::Running
            && self.silences.suspects()
            && self.silences.hangs(at, awaits_disk)
    }

    /// Whether a further connection is waited for no longer: one of its channels hangs.
    pub(crate) fn is_hung(&self, lane: LaneId) -> bool {
        let mut channels = self.channels.iter().enumerate();
        self.silences.suspects() && channels.any(|(at, it)| it.lane == lane && self.hangs(at))
    }

    /// Why the server is waited for no longer.
    fn silence(&mut self, now: Instant) -> Option<Failure> {
        self.silences.look(now);
        if self.stage != Stage::Running {
            return None;
        }
        let awaits = self.awaits_server();
        if awaits && !std::mem::replace(&mut self.awaited, awaits) {
            // Nothing was asked before.
            self.silent_since = now;
        }
        self.awaited = awaits;
        if self.silences.is_mute() || self.silence_ends().is_some_and(|end| now >= end) {
            let detail = format!("the server has not answered for {} s", PATIENCE.as_secs());
            return Some(self.failure(detail));
        }
        self.hangs(0).then(|| {
            let detail = format!(
                "the server's SFTP program on the first channel has not answered for {} s, while others have",
                LONG.as_secs()
            );
            Failure {
                kind: FailureKind::Lost,
                ..self.failure(detail)
            }
        })
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
        let failure = self.standing_in.take_failure();
        if let Some(failure) = failure.or_else(|| self.silence(Instant::now())) {
            return Some(Err(failure));
        }
        if self.stage != Stage::Over || self.jobs.are_open() {
            return None;
        }
        let of_host = self.first_trouble.as_ref();
        let first = of_host.map(|(path, trouble)| (path, trouble));
        Some(match first.or_else(|| self.left_out()) {
            None => Ok(Outcome::Exit(0)),
            Some((path, trouble)) => {
                let failure = troubles(self.engine.tally(), path, trouble);
                Err(match self.transfer().and_then(TransferPlan::unkept) {
                    None => failure,
                    // Whatever it led to: that is the reason, and no file is at fault.
                    Some(why) => Failure::with_remedy(failure.kind, &*why, NEEDS_ROOM),
                })
            }
        })
    }

    /// What no host was sent, for it could not be read here.
    fn left_out(&self) -> Option<(&Vec<u8>, &Trouble)> {
        match &self.transfer()?.way {
            Way::Put(put) => {
                let first = put.upload.left_out.first();
                first.map(|it| (&it.path, &it.trouble))
            }
            Way::Get(_) => None,
        }
    }

    /// Begins nothing more, cleans up, and ends.
    pub(crate) fn interrupt(&mut self) {
        self.first_trouble
            .get_or_insert((Vec::new(), Trouble::Interrupted));
        self.hurries = true;
        self.jobs.stop().order();
        self.engine.interrupt();
        self.note();
    }

    pub(super) fn ended_early(&self) -> Failure {
        let said = String::from_utf8_lossy(&self.words);
        let mut words = said.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some(shell) = self.channels[0].shell.as_ref().filter(|_| words.is_empty()) {
            words.push_str(shell.said());
        }
        let has_begun = self.engine.has_begun();
        let mut detail = match (has_begun, self.standing_in.why()) {
            (true, None) => "the server's SFTP program ended before everything was done".to_owned(),
            (true, Some(_)) => "the host's shell ended before everything was done".to_owned(),
            (false, None) => {
                "the host has no SFTP: what its sshd starts for that ended at once".to_owned()
            }
            (false, Some(why)) => {
                format!(
                    "the host has no SFTP: {why}; and no shell that could stand in: it ended at once"
                )
            }
        };
        if let Some(status) = self.status {
            detail.push_str(&format!(", with status {status}"));
        }
        if !words.is_empty() {
            detail.push_str(&format!("; it said: {words}"));
        }
        match has_begun {
            true => self.failure(detail),
            false => Failure::with_remedy(FailureKind::Transfer, detail, NEEDS_NO_PROGRAM),
        }
    }

    /// Whether the host speaks SFTP.
    pub(crate) fn has_begun(&self) -> bool {
        self.engine.has_begun()
    }

    /// Whether it may be begun anew where its connection was lost: nothing was, or all of it is there still and goes beside
    /// what was there before.
    pub(crate) fn may_begin_anew(&self) -> bool {
        self.first_trouble.is_none()
            && !self.hurries
            && (!self.has_begun() || self.engine.is_repeatable())
    }

    /// Until nothing is done here any more for a transfer whose connection is lost, and all that was done counts; `false` if
    /// that takes too long.
    pub(crate) async fn wind_up(&mut self) -> bool {
        self.jobs.stop().order();
        let over = async {
            while self.jobs.are_open() {
                let answer = poll_fn(|context| self.jobs.poll_next(context)).await;
                self.take_answer(answer);
            }
        };
        tokio::time::timeout(WINDING_UP, over).await.is_ok()
    }

    /// What is left of a block device if nothing more is done.
    pub(crate) fn half_written(&self) -> Option<Trouble> {
        self.engine.half_written()
    }

    fn failure(&self, mut detail: String) -> Failure {
        if let Some(device) = self.half_written() {
            detail.push_str(&format!("; {device}"));
        }
        let remedy = "run it again: with -p, what has arrived is not sent again; the log on the host may tell why";
        Failure::with_remedy(FailureKind::Transfer, detail, remedy)
    }
}

/// Where standard input cannot be kept.
const NEEDS_ROOM: &str =
    "free space there, or run it with TMPDIR set to a folder that has room for all of it";

/// What a host without sftp-server can do.
pub(super) const NEEDS_NO_PROGRAM: &str = "in its sshd_config, Subsystem sftp internal-sftp needs no program; or install its openssh-sftp-server";

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
