//! One passenger: its socket, its requests, its session. A sharer, a transfer of sshoal's own, is one that is in proxy mode from the
//! beginning.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use sshoal_mux::{Event, Forward, Passenger, PassengerError, Reply, Request, RequestId};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::task::spawn_local;
use tokio::time::sleep_until;

use crate::forward::{self, Opened};
use crate::host::Host;
use crate::proxied::{Prospect, ProxiedSession};
use crate::receive::receive;
use crate::session::Session;

/// How long a passenger may take to read what there is when nothing more comes.
const LAST_WORDS: Duration = Duration::from_secs(30);

/// Why a passenger is not served any more, unless all is done.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error(transparent)]
    Protocol(#[from] PassengerError),
    #[error(transparent)]
    Socket(#[from] io::Error),
    #[error("{0}")]
    Proxy(String),
    #[error("it has left")]
    Left,
}

struct Served<'a> {
    host: &'a Rc<Host>,
    socket: UnixStream,
    passenger: Passenger<OwnedFd>,
    session: Option<Session>,
    /// Proxy mode, if it is in it.
    proxied: Option<ProxiedSession>,
    /// A forward that is being opened: nothing else is done meanwhile, as in mux.c (`mux_pause`).
    opening: Option<Opening>,
    /// What is to be done once the answers are written.
    last: Last,
    /// Until when what the server has sent is handed on, of which no more comes.
    last_moment: Option<Instant>,
}

/// A forward whose request has no answer yet.
struct Opening {
    id: RequestId,
    opened: oneshot::Receiver<Result<Opened, String>>,
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
    serve_one(Served::begin(host, socket, Passenger::new())).await;
}

/// The same for a sharer.
pub(crate) async fn serve_sharer(host: &Rc<Host>, socket: UnixStream) {
    let mut served = Served::begin(host, socket, Passenger::proxied());
    served.proxied = Some(ProxiedSession::begin(host));
    serve_one(served).await;
}

async fn serve_one(mut served: Served<'_>) {
    let host = served.host;
    if let Err(ended) = served.run().await {
        served.dismiss(&ended);
        tracing::debug!(host = host.entry.member.label, %ended, "a passenger was not served to the end");
    }
}

impl<'a> Served<'a> {
    fn begin(host: &'a Rc<Host>, socket: UnixStream, passenger: Passenger<OwnedFd>) -> Self {
        Served {
            host,
            socket,
            passenger,
            session: None,
            proxied: None,
            opening: None,
            last: Last::Nothing,
            last_moment: None,
        }
    }
}

impl Served<'_> {
    async fn run(&mut self) -> Result<(), Ended> {
        loop {
            while self.opening.is_none()
                && let Some(event) = self.passenger.poll_event()
            {
                match (event, &self.proxied) {
                    (Event::Asked { id, request }, _) => self.take(id, request)?,
                    (Event::Packet(payload), Some(proxied)) => proxied.feed(payload),
                    (Event::Packet(_), None) => {}
                }
            }
            if let Some(proxied) = &self.proxied {
                match proxied.advance(&mut self.passenger)? {
                    Prospect::Open => {}
                    Prospect::AtFault(why) => return Err(Ended::Proxy(why)),
                    Prospect::Over(why) => {
                        self.write()?;
                        if !self.has_more() || self.is_late() {
                            return Err(Ended::Proxy(why));
                        }
                    }
                }
            }
            if let Some(session) = &mut self.session
                && session.advance(&mut self.passenger)?
            {
                self.last = Last::Close;
            }
            self.write()?;
            let is_written = !self.has_more();
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
            Request::StdioForward(forward, descriptors) => {
                let begun = Session::forward(self.host, id, forward.to, descriptors);
                return self.seat(id, begun);
            }
            Request::OpenForward(forward) => {
                self.open(id, forward);
                return Ok(());
            }
            Request::CloseForward(forward) => match forward::close(self.host, &forward) {
                Ok(()) => Reply::Ok,
                Err(why) => Reply::Failure(why),
            },
            Request::Proxy if self.session.is_some() => {
                Reply::Failure("a passenger with a session has no proxy mode")
            }
            Request::Proxy => {
                self.proxied = Some(ProxiedSession::begin(self.host));
                Reply::Proxy
            }
        };
        Ok(self.passenger.reply(id, reply)?)
    }

    /// Opens a forward. It stays when the passenger leaves, also before it is open.
    fn open(&mut self, id: RequestId, forward: Forward) {
        let (tell, opened) = oneshot::channel();
        let open = forward::open(self.host.clone(), forward);
        drop(spawn_local(async move {
            // The passenger may be gone.
            let _ = tell.send(open.await);
        }));
        self.opening = Some(Opening { id, opened });
    }

    /// Tells what came of it.
    fn answer(&mut self, opened: Result<Opened, String>) -> Result<(), Ended> {
        let Some(Opening { id, .. }) = self.opening.take() else {
            return Ok(());
        };
        let reply = match &opened {
            Ok(Opened::Done) => Reply::Ok,
            Ok(Opened::At(port)) => Reply::RemotePort(u32::from(*port)),
            Err(why) => Reply::Failure(why),
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

    /// Whether there is more for the passenger than its socket has taken.
    fn has_more(&self) -> bool {
        let waits = self.proxied.as_ref().is_some_and(ProxiedSession::has_more);
        waits || self.passenger.poll_transmit().is_some()
    }

    /// Nothing more comes from the server: whether the passenger has had its time to read what has come.
    fn is_late(&mut self) -> bool {
        let now = Instant::now();
        now >= *self.last_moment.get_or_insert(now + LAST_WORDS)
    }

    /// Whoever speaks the connection protocol hears why it is left, if its socket takes that at once.
    fn dismiss(&mut self, ended: &Ended) {
        let why = match ended {
            Ended::Proxy(why) => why.clone(),
            Ended::Protocol(error) => error.to_string(),
            Ended::Socket(_) | Ended::Left => return,
        };
        if self.proxied.is_some() && self.passenger.dismiss(&why).is_ok() {
            // It may be gone.
            let _ = self.write();
        }
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
        // Who sends more packets than the server takes is not heard meanwhile.
        let is_heard = self.proxied.as_ref().is_none_or(ProxiedSession::has_room);
        let interest = match (is_heard, is_written) {
            (true, true) => Interest::READABLE,
            (true, false) => Interest::READABLE | Interest::WRITABLE,
            (false, _) => Interest::WRITABLE,
        };
        let last_moment = self.last_moment;
        tokio::select! {
            () = sleep_until(last_moment.unwrap_or_else(Instant::now).into()), if last_moment.is_some() => return Ok(()),
            ready = self.socket.ready(interest), if is_heard || !is_written => drop(ready?),
            () = session_news(&mut self.session) => return Ok(()),
            () = proxy_news(&self.proxied) => return Ok(()),
            opened = opening_news(&mut self.opening) => return self.answer(opened),
        }
        if !is_heard {
            return Ok(());
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

async fn proxy_news(proxied: &Option<ProxiedSession>) {
    match proxied {
        Some(proxied) => proxied.news().await,
        None => std::future::pending().await,
    }
}

async fn opening_news(opening: &mut Option<Opening>) -> Result<Opened, String> {
    let Some(opening) = opening else {
        return std::future::pending().await;
    };
    let lost = || Err("the connection to the host has ended".to_owned());
    (&mut opening.opened).await.unwrap_or_else(|_| lost())
}
