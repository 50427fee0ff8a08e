//! Channels and their windows: RFC 4254 section 5.

use crate::error::Misbehaviour;
use crate::session::Progress;

/// The largest data message we accept and announce, octets. OpenSSH drops larger ones without a word
/// (channels.c, channel_input_data), so we never send larger ones either.
pub(crate) const MAX_DATA: u32 = 32 * 1024;

/// A channel by the number that this side gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalChannel(pub(crate) u32);

/// A channel by the number that the server gave it. Not interchangeable with [`LocalChannel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RemoteChannel(pub(crate) u32);

impl LocalChannel {
    /// Stands for a channel that was refused on this side; no channel ever has this number.
    pub const REFUSED: LocalChannel = LocalChannel(u32::MAX);

    /// The number on the wire.
    pub fn number(self) -> u32 {
        self.0
    }
}

impl RemoteChannel {
    /// The number on the wire.
    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// Which of a session's output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error (SSH_EXTENDED_DATA_STDERR).
    Stderr,
}

/// How far one direction of a channel has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Flow {
    Open,
    Eof,
    Closed,
}

/// The server's end of an open channel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Far {
    pub(crate) number: RemoteChannel,
    pub(crate) window: u32,
    pub(crate) max_data: u32,
}

/// What a channel is for.
#[derive(Debug)]
pub(crate) enum Purpose {
    /// "session" (RFC 4254 section 6.1), and how far its command is.
    Session(Progress),
    /// "direct-tcpip" (RFC 4254 section 7.2) or "direct-streamlocal@openssh.com", and the fields that CHANNEL_OPEN has for it.
    Direct(&'static [u8], Vec<u8>),
    /// Opened by the server for a place that it listens at.
    Forwarded {
        /// Whether it has our answer.
        is_confirmed: bool,
    },
    /// Somebody else speaks for it.
    Proxied,
    /// Nobody does any more, and replies may still come to requests that this side knows nothing of.
    Abandoned,
    /// "auth-agent@openssh.com", opened by the server: somebody there talks to the user's agent.
    AuthAgent,
}

/// One channel.
#[derive(Debug)]
pub(crate) struct Channel {
    /// Whether CHANNEL_OPEN is on its way, or was.
    pub(crate) asked: bool,
    /// `None` until the server confirmed it.
    pub(crate) far: Option<Far>,
    pub(crate) purpose: Purpose,
    /// A reply to "pty-req" is still to come, before the one to the command.
    pub(crate) pty_unanswered: bool,
    /// A reply to the request that starts the command is still to come.
    pub(crate) start_unanswered: bool,
    /// Replies to signals that are still to come, behind those two.
    pub(crate) signals_unanswered: u32,
    pub(crate) window: ReceiveWindow,
    /// How far the caller wants our direction to be; `sending` follows when the channel is open.
    pub(crate) wanted: Flow,
    pub(crate) sending: Flow,
    pub(crate) receiving: Flow,
    /// The caller was told that there is no room, and waits for `Event::Writable`.
    pub(crate) waits_for_room: bool,
}

impl Channel {
    pub(crate) fn new(window: u32, purpose: Purpose) -> Self {
        Channel {
            asked: false,
            far: None,
            purpose,
            pty_unanswered: false,
            start_unanswered: false,
            signals_unanswered: 0,
            window: ReceiveWindow::new(window),
            wanted: Flow::Open,
            sending: Flow::Open,
            receiving: Flow::Open,
            waits_for_room: false,
        }
    }

    /// How far the command is; `None` for a channel that is no session.
    pub(crate) fn progress(&self) -> Option<&Progress> {
        match &self.purpose {
            Purpose::Session(progress) => Some(progress),
            _ => None,
        }
    }

    /// Whether CHANNEL_OPEN has no answer yet.
    pub(crate) fn awaits_open(&self) -> bool {
        self.asked && self.far.is_none() && !self.is_over()
    }

    /// Whether whoever spoke for it is gone.
    pub(crate) fn is_abandoned(&self) -> bool {
        matches!(self.purpose, Purpose::Abandoned)
    }

    /// Whether the server has opened it, and has no answer yet.
    pub(crate) fn is_offered(&self) -> bool {
        let is_unconfirmed = matches!(
            self.purpose,
            Purpose::Forwarded {
                is_confirmed: false
            }
        );
        is_unconfirmed && !self.is_over()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.sending == Flow::Closed && self.receiving == Flow::Closed
    }

    /// Ends a channel that the server does not know, or does not know any more.
    pub(crate) fn end(&mut self) {
        (self.wanted, self.sending, self.receiving) = (Flow::Closed, Flow::Closed, Flow::Closed);
    }
}

/// Octets that the server may still send on one channel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReceiveWindow {
    size: u32,
    left: u32,
    /// Consumed by the caller, not yet given back to the server.
    owed: u32,
}

impl ReceiveWindow {
    pub(crate) fn new(size: u32) -> Self {
        ReceiveWindow {
            size,
            left: size,
            owed: 0,
        }
    }

    /// Takes `len` octets of data off the window. RFC 4254 section 5.2: "The maximum amount of data allowed is determined by
    /// the maximum packet size for the channel, and the current window size, whichever is smaller."
    pub(crate) fn take(&mut self, channel: LocalChannel, len: usize) -> Result<(), Misbehaviour> {
        if len > MAX_DATA as usize {
            return Err(Misbehaviour::OversizedData {
                channel: channel.0,
                len,
                max: MAX_DATA,
            });
        }
        let octets = len as u32;
        match self.left.checked_sub(octets) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(Misbehaviour::WindowOverrun {
                channel: channel.0,
                excess: (octets - self.left) as usize,
            }),
        }
    }

    /// Notes what the caller consumed; returns what to give back once it is worth a message: an eighth
    /// of the window, so that a long path is kept nearly full.
    pub(crate) fn consumed(&mut self, octets: usize) -> Option<u32> {
        let outstanding = self.size - self.left;
        self.owed = self
            .owed
            .saturating_add(u32::try_from(octets).unwrap_or(u32::MAX))
            .min(outstanding);
        if self.owed == 0 || self.owed < self.size / 8 {
            return None;
        }
        self.left += self.owed;
        Some(std::mem::take(&mut self.owed))
    }
}

/// The most channels this side opens on one connection.
pub(crate) const MAX_CHANNELS: usize = 1024;

/// Channels by local number: the lowest free number is given first.
#[derive(Debug, Default)]
pub(crate) struct ChannelTable {
    slots: Vec<Option<Box<Channel>>>,
    /// Whose turn it is to be first.
    turn: usize,
}

impl ChannelTable {
    /// Adds a channel; `None` when there are too many.
    pub(crate) fn insert(&mut self, channel: Channel) -> Option<LocalChannel> {
        let free = self
            .slots
            .iter()
            .position(Option::is_none)
            .unwrap_or(self.slots.len());
        if free >= MAX_CHANNELS {
            return None;
        }
        if free == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[free] = Some(Box::new(channel));
        Some(LocalChannel(free as u32))
    }

    pub(crate) fn find(&mut self, channel: LocalChannel) -> Option<&mut Channel> {
        self.slots.get_mut(channel.0 as usize)?.as_deref_mut()
    }

    pub(crate) fn look(&self, channel: LocalChannel) -> Option<&Channel> {
        self.slots.get(channel.0 as usize)?.as_deref()
    }

    pub(crate) fn remove(&mut self, channel: LocalChannel) {
        if let Some(slot) = self.slots.get_mut(channel.0 as usize) {
            *slot = None;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Channel> {
        self.slots.iter().filter_map(Option::as_deref)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (LocalChannel, &mut Channel)> {
        self.slots
            .iter_mut()
            .enumerate()
            .filter_map(|(number, slot)| Some((LocalChannel(number as u32), slot.as_deref_mut()?)))
    }

    /// All channels, in a circle that begins with the one whose turn it is.
    pub(crate) fn each_in_turn(&mut self, mut visit: impl FnMut(LocalChannel, &mut Channel)) {
        let turn = self.turn.min(self.slots.len());
        let (later, first) = self.slots.split_at_mut(turn);
        let first = (turn..).zip(first);
        for (number, slot) in first.chain((0..).zip(later)) {
            if let Some(channel) = slot {
                visit(LocalChannel(number as u32), channel);
            }
        }
    }

    /// The turn is that of the channel after this one.
    pub(crate) fn pass_turn(&mut self, last: LocalChannel) {
        self.turn = last.0 as usize + 1;
    }
}
