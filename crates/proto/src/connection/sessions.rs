//! What the caller does with open channels: send, acknowledge, signal, close. RFC 4254 sections 5 and 6.

use sshoal_wire::{ChannelClose, ChannelData, ChannelEof, ChannelWindowAdjust, Put};

use super::Connection;
use crate::channels::{Channel, Flow, LocalChannel, MAX_DATA, Purpose, RemoteChannel};
use crate::error::ConnectionError;
use crate::event::Event;
use crate::fate::ExecFate;
use crate::session::{Progress, request};

/// Octets of a data message beside its data: number, channel, length, header, padding and tag.
const DATA_OVERHEAD: usize = 128;
/// Most octets queued for the server before [`Connection::send_data`] takes no more.
pub(super) const MAX_QUEUED: usize = 256 * 1024;

impl Connection {
    /// What is known about the command of `channel`, if nothing more of this connection is sent: a command that
    /// is queued is not sent, and never will be once the connection has [ended](Self::disconnect).
    ///
    /// A queued command whose channel alone was closed still leaves, and one that was
    /// [forgotten](Self::forget) may have done anything: both may have run.
    pub fn exec_fate(&self, channel: LocalChannel) -> ExecFate {
        if channel == LocalChannel::REFUSED {
            return ExecFate::NotSent;
        }
        let Some(found) = self.channels.look(channel) else {
            return ExecFate::MayHaveRun;
        };
        match found.progress() {
            Some(Progress::InFlight { .. })
                if found.wanted == Flow::Closed && self.failed.is_none() =>
            {
                ExecFate::MayHaveRun
            }
            Some(progress) => progress.fate(self.outgoing.total_left()),
            None => ExecFate::NotSent,
        }
    }

    /// Sends data on a channel; returns how many octets were taken. If not all were, an
    /// [`Event::Writable`] follows when there is room again.
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn send_data(
        &mut self,
        channel: LocalChannel,
        data: &[u8],
    ) -> Result<usize, ConnectionError> {
        self.send_pieces(channel, [data], data.len())
    }

    /// As [`send_data`](Self::send_data), for the first `most` octets of data that lie in several places: they are copied
    /// once, to where they are sealed. There must be as many.
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn send_pieces<'a>(
        &mut self,
        channel: LocalChannel,
        pieces: impl IntoIterator<Item = &'a [u8]>,
        most: usize,
    ) -> Result<usize, ConnectionError> {
        self.check()?;
        let mut pieces = Pieces {
            front: &[],
            rest: pieces.into_iter(),
        };
        let mut taken = 0;
        if self.room(channel) > 0 {
            self.send_owed_end().map_err(|error| self.fail(error))?;
        }
        while taken < most {
            let room = self.room(channel);
            let Some(open) = self.channels.find(channel) else {
                break;
            };
            if room == 0 {
                open.waits_for_room = true;
                break;
            }
            let Some(far) = &mut open.far else { break };
            let octets = room.min(most - taken);
            far.window -= octets as u32;
            let recipient_channel = far.number.number();
            self.outgoing.reserve(octets + DATA_OVERHEAD);
            let sealed = self.outgoing.seal(|out| {
                ChannelData::encode_head(recipient_channel, octets as u32, out);
                pieces.append(octets, out);
            });
            sealed.map_err(|error| self.fail(error.into()))?;
            taken += octets;
        }
        Ok(taken)
    }

    /// Whether [`send_data`](Self::send_data) would take anything now: the server's window, and what is queued for it, have room.
    pub fn takes_data(&self, channel: LocalChannel) -> bool {
        self.room(channel) > 0
    }

    /// Octets that [`send_data`](Self::send_data) would take in one message now.
    fn room(&self, channel: LocalChannel) -> usize {
        let Some(Channel {
            far: Some(far),
            wanted: Flow::Open,
            ..
        }) = self.channels.look(channel)
        else {
            return 0;
        };
        if self.exchange.holds_messages() || self.outgoing.pending().len() >= MAX_QUEUED {
            return 0;
        }
        far.window.min(far.max_data).min(MAX_DATA) as usize
    }

    /// Tells waiting callers that they may send again: once half of what may be queued has left, so that
    /// the transport below never runs dry. Another channel is told first each time, because the first may
    /// fill the queue.
    pub(super) fn offer_room(&mut self) {
        if self.exchange.holds_messages() || self.outgoing.pending().len() > MAX_QUEUED / 2 {
            return;
        }
        let told = self.events.len();
        self.channels.each_in_turn(|number, channel| {
            let room = channel
                .far
                .is_some_and(|far| far.window > 0 && far.max_data > 0);
            if channel.waits_for_room && room && channel.wanted == Flow::Open {
                channel.waits_for_room = false;
                self.events.push_back(Event::Writable(number));
            }
        });
        if let Some(Event::Writable(first)) = self.events.get(told) {
            self.channels.pass_turn(*first);
        }
    }

    /// No more data will be sent on this channel (CHANNEL_EOF). May be said before the channel is open.
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn send_eof(&mut self, channel: LocalChannel) -> Result<(), ConnectionError> {
        self.end_sending(channel, Flow::Eof)
    }

    /// Closes a channel (CHANNEL_CLOSE). [`Event::Closed`] follows when the server has closed it too. A channel
    /// that is not open yet is closed as soon as the server has opened it, one not asked for at once.
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn close(&mut self, channel: LocalChannel) -> Result<(), ConnectionError> {
        self.end_sending(channel, Flow::Closed)
    }

    /// From now on a session that the server has closed is closed on this side with the next message, whatever it is, and not in
    /// a segment of its own; one waits so at most. The server counts the session until then.
    pub fn defer_ends(&mut self) {
        self.defers_ends = true;
    }

    /// Sends the end that waits, if one does.
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn settle_end(&mut self) -> Result<(), ConnectionError> {
        self.check()?;
        self.send_owed_end().map_err(|error| self.fail(error))
    }

    /// Whether the end of a session that the server has closed waits for the next message; from here on it counts as sent.
    pub(super) fn may_owe_end(&mut self, channel: LocalChannel, to: RemoteChannel) -> bool {
        let Some(open) = self.channels.find(channel) else {
            return false;
        };
        let may_wait = self.defers_ends && self.owed_end.is_none();
        let owes =
            may_wait && matches!(open.purpose, Purpose::Session(_)) && open.sending != Flow::Closed;
        if owes {
            open.sending = Flow::Closed;
            self.owed_end = Some(to);
        }
        owes
    }

    /// Closes what the server has closed, before it is told anything else.
    pub(super) fn send_owed_end(&mut self) -> Result<(), ConnectionError> {
        match self.owed_end.take() {
            Some(end) => {
                let recipient_channel = end.number();
                self.send_alone(|out| ChannelClose { recipient_channel }.encode(out))
            }
            None => Ok(()),
        }
    }

    fn end_sending(&mut self, channel: LocalChannel, wanted: Flow) -> Result<(), ConnectionError> {
        self.check()?;
        let Some(open) = self.channels.find(channel) else {
            return Ok(());
        };
        if open.is_offered() && wanted == Flow::Closed {
            return self.refuse_forwarded(channel, "nobody is there");
        }
        open.wanted = open.wanted.max(wanted);
        if wanted == Flow::Closed && !open.asked && !open.is_over() {
            open.end();
            self.tell(Event::Closed(channel));
            return Ok(());
        }
        let Some(far) = open.far else { return Ok(()) };
        self.send_end(channel, far.number)
            .map_err(|error| self.fail(error))
    }

    /// Sends EOF or CLOSE if the caller wants our direction ended, and it is not. `to` is the server's end.
    pub(super) fn send_end(
        &mut self,
        channel: LocalChannel,
        to: RemoteChannel,
    ) -> Result<(), ConnectionError> {
        let Some(open) = self.channels.find(channel) else {
            return Ok(());
        };
        if open.sending >= open.wanted {
            return Ok(());
        }
        open.sending = open.wanted;
        let recipient_channel = to.number();
        match open.wanted {
            Flow::Open => Ok(()),
            Flow::Eof => self.send(|out| ChannelEof { recipient_channel }.encode(out)),
            Flow::Closed => self.send(|out| ChannelClose { recipient_channel }.encode(out)),
        }
    }

    /// The caller is done with `octets` of received data: the server may send more.
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn consumed(
        &mut self,
        channel: LocalChannel,
        octets: usize,
    ) -> Result<(), ConnectionError> {
        self.give_back(channel, octets, Flow::Open)
    }

    /// Gives octets back to the server's window, if it has come as far with the channel as `receiving` and no further.
    pub(super) fn give_back(
        &mut self,
        channel: LocalChannel,
        octets: usize,
        receiving: Flow,
    ) -> Result<(), ConnectionError> {
        self.check()?;
        let Some(open) = self.channels.find(channel) else {
            return Ok(());
        };
        let Some(bytes_to_add) = open.window.consumed(octets) else {
            return Ok(());
        };
        let Some(far) = open.far.filter(|_| open.receiving == receiving) else {
            return Ok(());
        };
        let recipient_channel = far.number.number();
        let message = ChannelWindowAdjust {
            recipient_channel,
            bytes_to_add,
        };
        self.send(|out| message.encode(out))
            .map_err(|error| self.fail(error))
    }

    /// Asks the server to signal the command (RFC 4254 section 6.9). OpenSSH does not answer, and ignores
    /// it for forced commands and before 7.9.
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn signal(&mut self, channel: LocalChannel, name: &str) -> Result<(), ConnectionError> {
        let mut data = Vec::new();
        data.put_string(name.as_bytes());
        self.channel_request(channel, "signal", false, &data)
    }

    /// As [`signal`](Self::signal), and wants to know what became of it: [`Event::SignalAnswered`] follows, unless the server
    /// has closed the channel. RFC 4254 has no reply to a signal, but OpenSSH gives the one that is asked for
    /// (session.c, session_signal_req): success if at least one process of the command's group was reached, failure for a
    /// forced command, for a subsystem, and where none of them may be signalled.
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn ask_to_signal(
        &mut self,
        channel: LocalChannel,
        name: &str,
    ) -> Result<(), ConnectionError> {
        self.check()?;
        let Some(open) = self.channels.find(channel) else {
            return Ok(());
        };
        if open.far.is_none() || open.sending == Flow::Closed {
            return Ok(());
        }
        open.signals_unanswered += 1;
        let mut data = Vec::new();
        data.put_string(name.as_bytes());
        self.channel_request(channel, "signal", true, &data)
    }

    /// The terminal has another size (RFC 4254 section 6.7).
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn change_window(
        &mut self,
        channel: LocalChannel,
        columns: u32,
        rows: u32,
    ) -> Result<(), ConnectionError> {
        let mut data = Vec::new();
        for number in [columns, rows, 0, 0] {
            data.put_u32(number);
        }
        self.channel_request(channel, "window-change", false, &data)
    }

    /// Nobody reads the command's standard output any more: it may be told as if it wrote to a closed pipe
    /// (eow@openssh.com, OpenSSH's PROTOCOL section 2.1). Not answered.
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn end_of_write(&mut self, channel: LocalChannel) -> Result<(), ConnectionError> {
        self.channel_request(channel, "eow@openssh.com", false, &[])
    }

    fn channel_request(
        &mut self,
        channel: LocalChannel,
        name: &str,
        want_reply: bool,
        data: &[u8],
    ) -> Result<(), ConnectionError> {
        self.check()?;
        let Some(Channel { far: Some(far), .. }) = self.channels.look(channel) else {
            return Ok(());
        };
        let message = request(far.number, name, want_reply, data);
        self.send(|out| out.put_bytes(&message))
            .map_err(|error| self.fail(error))
    }
}

/// Octets that lie in several places.
struct Pieces<'a, I> {
    /// What is left of the piece at the front.
    front: &'a [u8],
    rest: I,
}

impl<'a, I: Iterator<Item = &'a [u8]>> Pieces<'a, I> {
    /// Appends the next `octets`; zeros where there are not as many, so that the message has the length that it says.
    fn append(&mut self, mut octets: usize, out: &mut Vec<u8>) {
        while octets > 0 {
            if self.front.is_empty() {
                match self.rest.next() {
                    Some(piece) => self.front = piece,
                    None => return out.resize(out.len() + octets, 0),
                }
            }
            let (now, later) = self.front.split_at(octets.min(self.front.len()));
            out.put_bytes(now);
            self.front = later;
            octets -= now.len();
        }
    }
}
