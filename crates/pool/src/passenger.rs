//! One passenger: its socket, its requests, its session.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use sshoal_mux::{Event, Passenger, PassengerError, Place, Reply, Request, RequestId};
use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::host::Host;
use crate::receive::receive;
use crate::session::Session;

/// Why a passenger is not served any more, unless all is done.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error(transparent)]
    Protocol(#[from] PassengerError),
    #[error(transparent)]
    Socket(#[from] io::Error),
    #[error("it has left")]
    Left,
}

struct Served<'a> {
    host: &'a Rc<Host>,
    socket: UnixStream,
    passenger: Passenger<OwnedFd>,
    session: Option<Session>,
    /// What is to be done once the answers are written.
    last: Last,
}

/// What follows the last answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    /// The socket is closed: the session is over.
    Close,
    /// The host's connections end (`-O exit`).
    EndHost,
}

/// Serves a passenger to its end. What is wrong with it is its own affair.
pub(crate) async fn serve(host: &Rc<Host>, socket: UnixStream) {
    let mut served = Served {
        host,
        socket,
        passenger: Passenger::new(),
        session: None,
        last: Last::Nothing,
    };
    if let Err(ended) = served.run().await {
        tracing::debug!(host = host.entry.member.label, %ended, "a passenger was not served to the end");
    }
}

impl Served<'_> {
    async fn run(&mut self) -> Result<(), Ended> {
        loop {
            while let Some(event) = self.passenger.poll_event() {
                if let Event::Asked { id, request } = event {
                    self.take(id, request)?;
                }
            }
            if let Some(session) = &mut self.session
                && session.advance(&mut self.passenger)?
            {
                self.last = Last::Close;
            }
            self.write()?;
            let is_written = self.passenger.poll_transmit().is_none();
            match self.last {
                Last::Close if is_written => return Ok(()),
                Last::EndHost if is_written => {
                    self.last = Last::Nothing;
                    self.host.end();
                }
                _ => {}
            }
            self.wait(is_written).await?;
        }
    }

    fn take(&mut self, id: RequestId, request: Request<OwnedFd>) -> Result<(), Ended> {
        let reply = match request {
            Request::AliveCheck => Reply::Alive {
                pid: std::process::id(),
            },
            Request::Terminate => {
                self.last = Last::EndHost;
                Reply::Ok
            }
            Request::StopListening => {
                self.host.stop_listening();
                Reply::Ok
            }
            Request::NewSession(wanted, descriptors) => {
                let begun = Session::begin(self.host, id, *wanted, descriptors);
                return self.seat(id, begun);
            }
            Request::StdioForward(forward, descriptors) => match forward.to {
                Place::Tcp { host, port } => {
                    let begun = Session::forward(self.host, id, (host, port), descriptors);
                    return self.seat(id, begun);
                }
                Place::Unix(_) => Reply::Failure("sshoal connects to no unix socket on a host"),
            },
            Request::OpenForward(_) | Request::CloseForward(_) => {
                Reply::Failure("sshoal forwards no ports; use -o ControlPath=none")
            }
            Request::Proxy => Reply::Failure("sshoal has no proxy mode"),
        };
        Ok(self.passenger.reply(id, reply)?)
    }

    fn seat(&mut self, id: RequestId, begun: io::Result<Session>) -> Result<(), Ended> {
        match begun {
            Ok(session) => self.session = Some(session),
            Err(error) => {
                let why = format!("sshoal cannot use the descriptors: {error}");
                self.passenger.reply(id, Reply::Failure(&why))?;
            }
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        while let Some(octets) = self.passenger.poll_transmit() {
            match self.socket.try_write(octets) {
                Ok(written) => self.passenger.transmitted(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits for the passenger, or for what concerns its session.
    async fn wait(&mut self, is_written: bool) -> Result<(), Ended> {
        let interest = match is_written {
            true => Interest::READABLE,
            false => Interest::READABLE | Interest::WRITABLE,
        };
        tokio::select! {
            ready = self.socket.ready(interest) => drop(ready?),
            () = session_news(&mut self.session) => return Ok(()),
        }
        if let Some((octets, descriptors)) = receive(&self.socket)? {
            if octets.is_empty() {
                return Err(Ended::Left);
            }
            self.passenger.handle_input(&octets, descriptors)?;
        }
        Ok(())
    }
}

async fn session_news(session: &mut Option<Session>) {
    match session {
        Some(session) => session.wait().await,
        None => std::future::pending().await,
    }
}
