//! A blocking client: one connection, one command, over a socket that never blocks alone.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sshoal_proto::{
    Connection, ConnectionError, Credential, Event, LocalChannel, Opening, PublicKeyCredential,
    SessionRequest, Settings, Stream,
};

use crate::trust::Trust;

/// Longest silence of a server that is still taken for work: a machine busy with other things, 8192-bit groups.
const PATIENCE: Timespec = Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};
/// Far beyond any test: with this interval the time of the next exchange tells when the last one was.
const REKEY_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);
/// Octets read at a time; the largest packet (256 KiB) must fit beside a part of another.
const INPUT: usize = 1 << 20;
/// Octets of standard input read at a time.
const PIECE: usize = 64 << 10;

/// How to log in.
pub struct Login<'a> {
    pub address: SocketAddrV4,
    pub user: &'a str,
    pub trust: &'a Trust,
    pub settings: Settings,
    pub host_key_algorithms: Vec<&'static str>,
    pub guess_key_exchange: bool,
    pub credential: PublicKeyCredential,
}

/// What to run once logged in.
pub struct Task<'a> {
    pub command: &'a str,
    /// Standard input; nothing, if not given.
    pub input: Option<&'a mut dyn Read>,
    /// Takes standard output as it comes.
    pub output: &'a mut dyn FnMut(&[u8]),
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Outcome {
    /// None if the command was ended by a signal.
    pub status: Option<u32>,
    pub stderr: Vec<u8>,
    /// Key exchanges after the first.
    pub rekeyings: u32,
}

/// Why there is no outcome.
#[derive(Debug)]
pub enum Trouble {
    Io(io::Error),
    Connection(ConnectionError),
    /// In the words of the test client.
    Other(String),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Io(error) => error.fmt(f),
            Trouble::Connection(error) => error.fmt(f),
            Trouble::Other(words) => f.write_str(words),
        }
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Trouble::Io(error)
    }
}

impl From<rustix::io::Errno> for Trouble {
    fn from(error: rustix::io::Errno) -> Self {
        Trouble::Io(error.into())
    }
}

impl From<ConnectionError> for Trouble {
    fn from(error: ConnectionError) -> Self {
        Trouble::Connection(error)
    }
}

impl Login<'_> {
    /// Logs in, runs the task to its end and leaves. The command is there before the login begins, so that it travels
    /// ahead where the server is known to take that.
    pub fn run(&self, task: Task<'_>) -> Result<Outcome, Trouble> {
        let stream = TcpStream::connect(self.address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut settings = self.settings.clone();
        settings.rekey.interval = Some(REKEY_INTERVAL);
        let opening = Opening {
            user: self.user.to_owned(),
            host_key_algorithms: self.host_key_algorithms.clone(),
            guess_key_exchange: self.guess_key_exchange,
        };
        let mut connection = Connection::new(Arc::new(settings), opening, Instant::now())
            .map_err(|error| Trouble::Other(error.to_string()))?;
        let mut request = SessionRequest::exec(task.command);
        request.standard_input = task.input.is_some();
        let channel = connection.open_session(request)?;
        let mut client = Client {
            login: self,
            task,
            stream,
            connection,
            channel,
            unsent: Vec::new(),
            keyed_until: None,
            closed: false,
            outcome: Outcome::default(),
        };
        client.work()?;
        client.leave()?;
        Ok(client.outcome)
    }
}

struct Client<'l, 't> {
    login: &'l Login<'l>,
    task: Task<'t>,
    stream: TcpStream,
    connection: Connection,
    channel: LocalChannel,
    /// What was read of the task's input and not yet taken by the connection.
    unsent: Vec<u8>,
    /// When keys would be exchanged next by time alone: moves with every exchange.
    keyed_until: Option<Instant>,
    closed: bool,
    outcome: Outcome,
}

impl Client<'_, '_> {
    fn work(&mut self) -> Result<(), Trouble> {
        let mut input = vec![0; INPUT];
        let mut filled = 0;
        while !self.closed {
            let wrote = self.write()?;
            self.answer(&[])?;
            let read = self.read(&mut input[filled..])?;
            filled += read;
            filled = self.handle(&mut input, filled)?;
            if !wrote && read == 0 {
                self.wait()?;
            }
        }
        Ok(())
    }

    /// Writes what the socket takes at once. False if that is nothing.
    fn write(&mut self) -> Result<bool, Trouble> {
        let mut any = false;
        while let Some(octets) = self.connection.poll_transmit() {
            match self.stream.write(octets) {
                Ok(written) => self.connection.transmitted(written),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
            any = true;
        }
        Ok(any)
    }

    fn read(&mut self, space: &mut [u8]) -> Result<usize, Trouble> {
        if !self.connection.wants_input() {
            return Ok(0);
        }
        match self.stream.read(space) {
            Ok(0) => Err(self.connection.handle_eof().into()),
            Ok(octets) => Ok(octets),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the connection `input[..filled]`; returns how much of it is left, now at the front.
    fn handle(&mut self, input: &mut [u8], mut filled: usize) -> Result<usize, Trouble> {
        loop {
            let now = Instant::now();
            let handled = self.connection.handle_input(now, &mut input[..filled]);
            let answered = self.answer(input)?;
            let taken = handled?;
            input.copy_within(taken..filled, 0);
            filled -= taken;
            self.count_exchanges();
            if filled == 0 || (taken == 0 && !answered) {
                return Ok(filled);
            }
        }
    }

    fn count_exchanges(&mut self) {
        let until = self.connection.poll_timeout();
        if until.is_some() && until != self.keyed_until {
            self.outcome.rekeyings += u32::from(self.keyed_until.is_some());
            self.keyed_until = until;
        }
    }

    /// Takes all events, whose data lies in `input`. False if there are none.
    fn answer(&mut self, input: &[u8]) -> Result<bool, Trouble> {
        let mut any = false;
        while let Some(event) = self.connection.poll_event() {
            any = true;
            self.take(event, input)?;
        }
        Ok(any)
    }

    fn take(&mut self, event: Event, input: &[u8]) -> Result<(), Trouble> {
        match event {
            Event::HostKey(question) => {
                self.login.trust.judge(&question).map_err(Trouble::Other)?;
                self.connection.accept_host_key()?;
            }
            Event::AuthenticationNeeded(None) => {
                let credential = self.login.credential.clone();
                self.connection
                    .authenticate(Credential::PublicKey(credential))?;
            }
            Event::Data { stream, range, .. } => {
                let data = &input[range];
                match stream {
                    Stream::Stdout => (self.task.output)(data),
                    Stream::Stderr => self.outcome.stderr.extend(data),
                }
                self.connection.consumed(self.channel, data.len())?;
            }
            Event::Started(_) | Event::Writable(_) => self.feed()?,
            Event::ExitStatus { status, .. } => self.outcome.status = Some(status),
            Event::Closed(_) => self.closed = true,
            Event::Authenticated
            | Event::Banner(_)
            | Event::ChannelOpened(_)
            | Event::Eof(_)
            | Event::ExitSignal { .. } => {}
            refusal => return Err(Trouble::Other(format!("{refusal:?}"))),
        }
        Ok(())
    }

    /// Sends standard input for as long as the connection takes it.
    fn feed(&mut self) -> Result<(), Trouble> {
        let Some(source) = &mut self.task.input else {
            return Ok(());
        };
        loop {
            if self.unsent.is_empty() {
                self.unsent.resize(PIECE, 0);
                let octets = source.read(&mut self.unsent)?;
                self.unsent.truncate(octets);
                if octets == 0 {
                    self.task.input = None;
                    return Ok(self.connection.send_eof(self.channel)?);
                }
            }
            let taken = self.connection.send_data(self.channel, &self.unsent)?;
            self.unsent.drain(..taken);
            if !self.unsent.is_empty() {
                return Ok(());
            }
        }
    }

    fn wait(&self) -> Result<(), Trouble> {
        let mut interest = PollFlags::IN;
        if self.connection.poll_transmit().is_some() {
            interest |= PollFlags::OUT;
        }
        let mut fds = [PollFd::new(&self.stream, interest)];
        match poll(&mut fds, Some(&PATIENCE))? {
            0 => {
                let phase = self.connection.phase();
                Err(Trouble::Other(format!(
                    "nothing from the server during {phase}"
                )))
            }
            _ => Ok(()),
        }
    }

    /// DISCONNECT, so that the server need not complain.
    fn leave(&mut self) -> Result<(), Trouble> {
        self.connection.disconnect();
        self.stream.set_nonblocking(false)?;
        self.write()?;
        Ok(())
    }
}
