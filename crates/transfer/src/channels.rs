//! The SFTP channels of one host's transfer: what both ways do with them.

use std::ops::{Index, IndexMut};
use std::time::Duration;

use crate::sftp::{Client, Dialect, Pieces, Reply, SftpError};

/// One or several channels, each by its number. `T` is what a request was for, `W` what a channel has to do besides.
pub(crate) struct Channels<T, W> {
    each: Vec<Channel<T, W>>,
    dialect: Dialect,
    now: Duration,
}

/// One channel's conversation.
pub(crate) struct Channel<T, W> {
    pub(crate) client: Client<T>,
    /// Files that it has begun and not ended.
    pub(crate) files: usize,
    pub(crate) work: W,
    state: State,
}

/// Whether a channel is of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// Gets nothing more to do: with it everything was no faster.
    Retired,
    /// The server has refused it.
    Refused,
    /// Its connection has ended.
    Lost,
}

impl<T, W: Default> Channels<T, W> {
    /// The first channel; its number is 0.
    pub(crate) fn new() -> Self {
        let mut channels = Channels {
            each: Vec::new(),
            dialect: Dialect::default(),
            now: Duration::ZERO,
        };
        channels.add();
        channels
    }

    /// One more channel; returns its number.
    pub(crate) fn add(&mut self) -> usize {
        let mut client = Client::new();
        client.speak(self.dialect);
        client.set_time(self.now);
        self.each.push(Channel {
            client,
            files: 0,
            work: W::default(),
            state: State::Open,
        });
        self.each.len() - 1
    }

    /// One more channel, of the same server and started already; returns its number. Where the first one has been greeted,
    /// this one's greeting is not waited for.
    pub(crate) fn join(&mut self) -> usize {
        let channel = self.add();
        let (first, rest) = self.each.split_at_mut(channel);
        rest[0].client.assume(&first[0].client);
        channel
    }

    /// Takes the server for one that speaks so, on all channels.
    pub(crate) fn speak(&mut self, dialect: Dialect) {
        self.dialect = dialect;
        for channel in &mut self.each {
            channel.client.speak(dialect);
        }
    }

    /// It is so late, on all channels.
    pub(crate) fn set_time(&mut self, now: Duration) {
        self.now = now;
        for channel in &mut self.each {
            channel.client.set_time(now);
        }
    }

    /// The server has refused a further channel: it is done without.
    pub(crate) fn refuse(&mut self, channel: usize) {
        self.each[channel].state = State::Refused;
    }

    /// The channel gets nothing more to do; what it has begun it ends.
    pub(crate) fn retire(&mut self, channel: usize) {
        let state = &mut self.each[channel].state;
        if *state == State::Open {
            *state = State::Retired;
        }
    }

    /// Whether the channel gets nothing more to do.
    pub(crate) fn is_retired(&self, channel: usize) -> bool {
        self.each[channel].state == State::Retired
    }

    /// The channel's connection has ended; returns what was asked on it and not answered.
    pub(crate) fn lose(&mut self, channel: usize) -> Vec<T> {
        let it = &mut self.each[channel];
        it.state = State::Lost;
        it.client.lose()
    }

    /// Whether the channel's connection has ended.
    pub(crate) fn is_lost(&self, channel: usize) -> bool {
        self.each[channel].state == State::Lost
    }

    /// How many are of use.
    pub(crate) fn open(&self) -> usize {
        let open = self.each.iter();
        open.filter(|channel| channel.state == State::Open).count()
    }

    /// How many there have been.
    pub(crate) fn len(&self) -> usize {
        self.each.len()
    }

    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, Channel<T, W>> {
        self.each.iter_mut()
    }

    /// Whether the first one, on which everything is asked that is about no contents, has been answered.
    pub(crate) fn are_ready(&self) -> bool {
        self.each[0].client.is_ready()
    }

    /// Whether replies of the server's are waited for.
    pub(crate) fn await_server(&self) -> bool {
        let is_served = |it: &&Channel<T, W>| matches!(it.state, State::Open | State::Retired);
        let mut served = self.each.iter().filter(is_served);
        served.any(|channel| channel.client.pending() > 0)
    }

    /// Whether a reply of the server's is waited for on this one.
    pub(crate) fn awaits(&self, channel: usize) -> bool {
        self.each[channel].client.pending() > 0
    }

    /// Takes what came on a channel: what it answers is told by [`poll_reply`](Self::poll_reply).
    pub(crate) fn handle_input(&mut self, channel: usize, input: &[u8]) -> Result<(), SftpError> {
        self.each[channel].client.handle_input(input)
    }

    /// The next reply on a channel, and what was asked.
    pub(crate) fn poll_reply(&mut self, channel: usize) -> Option<(T, Reply)> {
        self.each[channel].client.poll_reply()
    }

    /// Octets for a channel.
    pub(crate) fn transmit(&self, channel: usize) -> Pieces<'_> {
        self.each[channel].client.transmit()
    }

    /// How many there are.
    pub(crate) fn waiting(&self, channel: usize) -> usize {
        self.each[channel].client.waiting()
    }

    /// So many of them have left.
    pub(crate) fn transmitted(&mut self, channel: usize, octets: usize) {
        self.each[channel].client.transmitted(octets);
    }
}

impl<T, W> Index<usize> for Channels<T, W> {
    type Output = Channel<T, W>;

    fn index(&self, channel: usize) -> &Channel<T, W> {
        &self.each[channel]
    }
}

impl<T, W> IndexMut<usize> for Channels<T, W> {
    fn index_mut(&mut self, channel: usize) -> &mut Channel<T, W> {
        &mut self.each[channel]
    }
}
