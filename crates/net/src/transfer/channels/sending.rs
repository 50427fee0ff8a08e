//! What is sent on a host's channels, as far as the rate allows.

use std::time::Instant;

use sshoal_proto::{Connection, ConnectionError};
use sshoal_transfer::sftp::Dialect;

use super::super::PACKET;
use super::super::rate::Grant;
use super::{LaneId, Stage, Transfer};
use crate::drive::Drive;

impl Transfer {
    /// Moves what there is for a connection for as long as its link takes that; returns how many octets.
    pub(crate) fn pump(
        &mut self,
        lane: LaneId,
        drive: &mut Drive,
    ) -> Result<usize, ConnectionError> {
        let mut all = 0;
        drive.expect(self.expected());
        loop {
            drive.flush();
            // Nothing has to be moved in memory if what the link has not taken goes before more is sealed.
            let has_room = drive.queued() == 0;
            let fed = self.feed(lane, &mut drive.connection, has_room)?;
            drive.flush();
            all += fed;
            if fed == 0 || !has_room {
                return Ok(all);
            }
        }
    }

    /// Octets that are about to come all together, if any are.
    fn expected(&self) -> usize {
        match self.stage == Stage::Running && self.rate().is_none() && self.engine.moves_much() {
            true => self.engine.expected(),
            false => 0,
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
            self.begin_standing_in(connection)?;
            self.wake = None;
        }
        self.perform();
        let mut fed = 0;
        if lane == LaneId::FIRST {
            fed += self.feed_streams(connection, has_room)?;
            fed += self.feed_asking(connection, has_room)?;
            // Where few sessions are allowed, a second channel is what can be done without.
            self.add_channel(connection)?;
            // What the rate has held back is no silence of the server's.
            if fed > 0 || (self.rate().is_some() && self.wake.is_some()) {
                self.silent_since = Instant::now();
            }
        }
        for at in 0..self.channels.len() {
            if self.channels[at].lane != lane {
                continue;
            }
            self.give_back(connection, at)?;
            if self.channels[at].started && has_room {
                fed += self.send(connection, at)?;
            }
            self.attend(connection, at)?;
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

    /// The same for what the host is asked in sessions of its own.
    fn feed_asking(
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
        let mut fed = 0;
        for it in &mut self.asking {
            it.attend(engine, connection, wake)?;
            if has_room {
                fed += it.send(engine, connection, rate, wake)?;
            }
        }
        self.note();
        Ok(fed)
    }

    /// Sends what fills packets; what does not, waits for as long as more is about to come.
    fn send(&mut self, connection: &mut Connection, at: usize) -> Result<usize, ConnectionError> {
        if self.channels[at].shell.is_some() {
            return self.send_to_shell(connection, at);
        }
        // What cleans up does not wait for octets that are not sent any more.
        let is_whole = self.engine.is_about_to_send(at) && !self.hurries;
        let waiting = self.engine.waiting(at);
        let mut len = match is_whole {
            true => waiting / PACKET * PACKET,
            false => waiting,
        };
        if len == 0 {
            return Ok(0);
        }
        let number = self.channels[at].number;
        if !connection.takes_data(number) {
            // It tells when it does. What the server does not take, the rate has not held back.
            return connection.send_pieces(number, self.engine.transmit(at), len);
        }
        let plan = self.plan.clone();
        let rate = plan.transfer.as_ref().and_then(|plan| plan.rate.as_ref());
        let rate = rate.filter(|_| !self.hurries);
        if let Some(rate) = rate {
            match rate.take(Instant::now(), len) {
                Grant::Octets(granted) => len = granted,
                Grant::Not(until) => {
                    self.wake = self.wake.into_iter().chain([until]).min();
                    self.excuse(at);
                    return Ok(0);
                }
            }
        }
        let octets = self.engine.transmit(at);
        let taken = connection.send_pieces(number, octets, len)?;
        if let Some(rate) = rate {
            rate.give_back(len - taken);
        }
        if taken > 0 {
            self.engine.transmitted(at, taken);
            self.excuse(at);
            self.note();
        }
        Ok(taken)
    }

    /// The server says nothing because this side has not sent all, or not taken it.
    fn excuse(&mut self, at: usize) {
        let now = Instant::now();
        self.silent_since = now;
        self.silences.excuse(at, now);
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
                        self.excuse(at);
                        return Ok(());
                    }
                }
            }
            self.channels[at].owed -= octets;
            connection.consumed(self.channels[at].number, octets)?;
        }
        Ok(())
    }
}
