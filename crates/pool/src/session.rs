//! A passenger's session, or its stdio forward: what passes between its descriptors and its seat.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use sshoal_mux::{NewSession, Passenger, PassengerError, Place, Reply, RequestId};
use sshoal_proto::{Command, SessionRequest};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::host::Host;
use crate::modes;
use crate::seat::{Seat, Wanted};
use crate::stdio::{Access, Stdio};

/// Octets read at a time.
const READ: usize = 64 * 1024;

/// One of a passenger's.
pub(crate) struct Session {
    host: Rc<Host>,
    seat: Rc<Seat>,
    /// The request that is still to be answered.
    unanswered: Option<RequestId>,
    number: u32,
    input: Stdio,
    /// Where output goes; `None` when nobody reads it.
    output: Option<Stdio>,
    error: Option<Stdio>,
    terminal: Option<Terminal>,
    buffer: Vec<u8>,
    tells_status: bool,
}

/// The passenger's terminal. It sends us SIGWINCH when its size changes.
struct Terminal {
    own: OwnedFd,
    told: (u32, u32),
    changes: Signal,
}

impl Session {
    /// A session with standard input, output and error.
    pub(crate) fn begin(
        host: &Rc<Host>,
        id: RequestId,
        wanted: NewSession,
        [input, output, error]: [OwnedFd; 3],
    ) -> io::Result<Session> {
        let mut terminal = None;
        let mut pty = None;
        if wanted.want_tty {
            let like = modes::pty(wanted.term, &input);
            terminal = Some(Terminal {
                own: input.try_clone()?,
                told: (like.columns, like.rows),
                changes: signal(SignalKind::window_change())?,
            });
            pty = Some(like);
        }
        let command = match (wanted.is_subsystem, wanted.command.is_empty()) {
            (true, _) => {
                let name = String::from_utf8(wanted.command).map_err(|_| {
                    io::Error::new(io::ErrorKind::InvalidInput, "a subsystem's name is text")
                })?;
                Command::Subsystem(name)
            }
            (false, true) => Command::Shell,
            (false, false) => Command::Exec(wanted.command),
        };
        let request = SessionRequest {
            environment: wanted.environment,
            pty,
            command,
            forward_agent: false,
            standard_input: true,
        };
        let error = Some(Stdio::new(error, Access::Write)?);
        let streams = (input, output, error);
        Session::with(host, id, Wanted::Session(request), streams, terminal)
    }

    /// A stdio forward.
    pub(crate) fn forward(
        host: &Rc<Host>,
        id: RequestId,
        to: Place,
        [input, output]: [OwnedFd; 2],
    ) -> io::Result<Session> {
        let what = match to {
            Place::Unix(path) => Wanted::Unix(path),
            Place::Tcp { host, port } => Wanted::Tcp {
                host,
                port,
                // channels.c, `port_open_helper`, for who has no address.
                originator: ("127.0.0.1".to_owned(), u16::MAX),
            },
        };
        Session::with(host, id, what, (input, output, None), None)
    }

    fn with(
        host: &Rc<Host>,
        id: RequestId,
        what: Wanted,
        (input, output, error): (OwnedFd, OwnedFd, Option<Stdio>),
        terminal: Option<Terminal>,
    ) -> io::Result<Session> {
        let is_session = matches!(what, Wanted::Session(_));
        let (input, output) = (
            Stdio::new(input, Access::Read)?,
            Stdio::new(output, Access::Write)?,
        );
        let seat = Seat::new(what);
        let counts = &host.entry.counts;
        counts.sessions.fetch_add(1, Ordering::Relaxed);
        let number = counts.sessions_in_all.fetch_add(1, Ordering::Relaxed) as u32;
        host.note_use();
        match is_session {
            true => host.admit(seat.clone()),
            false => host.admit_stream(&seat),
        }
        Ok(Session {
            host: host.clone(),
            seat,
            unanswered: Some(id),
            number,
            input,
            output: Some(output),
            error,
            terminal,
            buffer: vec![0; READ],
            tells_status: is_session,
        })
    }

    /// Passes on what the server has sent, and what became of the session; returns whether it is over.
    pub(crate) fn advance(
        &mut self,
        passenger: &mut Passenger<OwnedFd>,
    ) -> Result<bool, PassengerError> {
        self.answer(passenger)?;
        self.deliver();
        let mut down = self.seat.down();
        if std::mem::take(&mut down.pty_refused) {
            passenger.tty_refused(self.number);
        }
        let is_over = down.is_closed && down.output.is_empty() && down.error.is_empty();
        if is_over && let Some(status) = down.status.take().filter(|_| self.tells_status) {
            passenger.exit(self.number, status);
        }
        Ok(is_over)
    }

    /// Tells the passenger whether it has a session.
    fn answer(&mut self, passenger: &mut Passenger<OwnedFd>) -> Result<(), PassengerError> {
        let down = self.seat.down();
        let Some(id) = self
            .unanswered
            .take_if(|_| down.is_opened || down.is_closed)
        else {
            return Ok(());
        };
        let session = self.number;
        match &down.refusal {
            None => passenger.reply(id, Reply::SessionOpened { session }),
            Some(why) => passenger.reply(id, Reply::Failure(why)),
        }
    }

    /// Writes what there is room for.
    fn deliver(&mut self) {
        let mut down = self.seat.down();
        let (output, is_broken) = written(&mut self.output, &mut down.output);
        let (error, _) = written(&mut self.error, &mut down.error);
        if down.has_ended && down.output.is_empty() {
            // Whoever reads it besides the passenger hears of the end now.
            self.output = None;
        }
        drop(down);
        if is_broken {
            self.seat.break_output();
        }
        if output + error > 0 {
            self.seat.delivered(output + error);
            let received = &self.host.entry.counts.received;
            received.fetch_add((output + error) as u64, Ordering::Relaxed);
        }
    }

    /// Waits until something may have changed, and takes input.
    pub(crate) async fn wait(&mut self) {
        let Session {
            seat,
            input,
            output,
            error,
            terminal,
            buffer,
            ..
        } = self;
        let (has_output, has_error) = {
            let down = seat.down();
            (!down.output.is_empty(), !down.error.is_empty())
        };
        tokio::select! {
            () = seat.news.notified() => {}
            read = input.read(buffer), if seat.wants_input() => {
                // What cannot be read has ended, as in ssh.
                let octets = read.unwrap_or(0);
                seat.feed(&buffer[..octets]);
                let sent = &self.host.entry.counts.sent;
                sent.fetch_add(octets as u64, Ordering::Relaxed);
            }
            () = room(output), if has_output => {}
            () = room(error), if has_error => {}
            size = resized(terminal), if terminal.is_some() => seat.resize(size),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.seat.leave();
        let sessions = &self.host.entry.counts.sessions;
        sessions.fetch_sub(1, Ordering::Relaxed);
        self.host.note_use();
    }
}

/// Writes to a stream what there is room for: how many octets are out of the way, and whether it has just broken.
fn written(stream: &mut Option<Stdio>, octets: &mut VecDeque<u8>) -> (usize, bool) {
    let before = octets.len();
    let mut is_broken = false;
    while let (front @ [_, ..], _) = octets.as_slices() {
        match stream.as_ref().map(|open| open.write(front)) {
            Some(Ok(Some(written))) => drop(octets.drain(..written)),
            Some(Ok(None)) => break,
            // Nobody reads it; the server is not to wait for that.
            Some(Err(_)) => {
                (*stream, is_broken) = (None, true);
            }
            None => octets.clear(),
        }
    }
    (before - octets.len(), is_broken)
}

async fn room(stream: &Option<Stdio>) {
    if let Some(stream) = stream {
        stream.writable().await;
    }
}

/// The terminal's next size that the server does not know. Cancelling loses nothing.
async fn resized(terminal: &mut Option<Terminal>) -> (u32, u32) {
    if let Some(Terminal { own, told, changes }) = terminal {
        loop {
            match modes::size(&*own) {
                Some(size) if size != *told => {
                    *told = size;
                    return size;
                }
                _ => {}
            }
            if changes.recv().await.is_none() {
                break;
            }
        }
    }
    std::future::pending().await
}
