//! What was passed in a login, and when.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sshoal_fleet::HostId;
use sshoal_proto::Connection;

use super::errands::{ErrandDone, Errands};
use crate::dial::Tried;
use crate::plan::RunPlan;
use crate::worker::Worker;

/// Most marks of a login: the log of an ssh has some 150 lines, and a few for each key and each line of known_hosts that is
/// about the host.
const MAX_MARKS: usize = 4096;

/// What the logins of a run have passed so far, by host.
#[derive(Debug, Default)]
pub struct Timings(Mutex<HashMap<u32, (Instant, TimedLogin)>>);

/// What was learned by one login.
#[derive(Debug, Clone, Default)]
pub struct TimedLogin {
    /// What was passed, in the order of time.
    pub marks: Vec<Mark>,
    /// The server's identification string; not by ssh.
    pub identification: Option<String>,
    /// The algorithm of the key exchange; not by ssh.
    pub kex: Option<&'static str>,
    /// The host key's; not by ssh.
    pub host_key: Option<&'static str>,
    /// The methods that the server names first; not by ssh.
    pub methods: Option<Vec<String>>,
    /// How long signs of life took to come, one after the other, when nothing else went on.
    pub round_trips: Vec<Duration>,
    /// The further sessions that were to follow, as far as they came.
    pub errands: Vec<ErrandDone>,
}

/// Something that was passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Counted from the login's start.
    pub at: Duration,
    /// What.
    pub what: Passed,
}

/// What is passed in a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Passed {
    /// The name was looked up, and has so many addresses.
    LookedUp(usize),
    /// There was no connection to this address; why, and how long it was waited for.
    NotConnected(SocketAddr, String, Duration),
    /// Connected, and how long that took from the first packet to this address: a round trip. `None` is a way on which
    /// others make the connection, a jump host or a ProxyCommand.
    Connected(Option<(SocketAddr, Duration)>),
    /// A message of the server's came ([`Arrival::message`](sshoal_proto::Arrival)).
    Arrived(&'static str),
    /// A credential goes to the server.
    Offered(String),
    /// ssh has written this line of its log, or the first 512 octets of it.
    Said(String),
    /// The first octet of output came from ssh.
    Output,
    /// The attempt is over, whatever became of it.
    Ended,
}

impl Timings {
    /// What a host's login has passed; nothing if it has not begun.
    pub fn of(&self, host: u32) -> TimedLogin {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&host)
            .map(|(_, login)| login.clone())
            .unwrap_or_default()
    }

    /// A login begins: what an attempt before it has left is forgotten.
    fn begin(&self, host: u32, now: Instant) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(host, (now, TimedLogin::default()));
    }

    pub(super) fn learn(&self, host: u32, learn: impl FnOnce(Instant, &mut TimedLogin)) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((began, login)) = all.get_mut(&host) {
            learn(*began, login);
        }
    }

    pub(super) fn note(&self, host: u32, at: Instant, what: Passed) {
        self.learn(host, |began, login| {
            if login.marks.len() < MAX_MARKS {
                let at = at.saturating_duration_since(began);
                login.marks.push(Mark { at, what });
            }
        });
    }
}

/// One login that is measured.
pub(crate) struct Timing {
    plan: Arc<RunPlan>,
    host: u32,
    /// How many of the connection's arrivals are noted.
    arrivals: usize,
    /// What the server judges, as it was noted last.
    offered: Option<String>,
    knows_keys: bool,
}

impl Timing {
    /// A login begins now, if its run measures.
    pub(crate) fn begin(worker: &Worker, host: HostId) -> Option<Timing> {
        let plan = worker.plan.timing.as_ref()?;
        plan.timings.begin(host.0, Instant::now());
        Some(Timing {
            plan: worker.plan.clone(),
            host: host.0,
            arrivals: 0,
            offered: None,
            knows_keys: false,
        })
    }

    /// Notes what is passed now.
    pub(crate) fn pass(&self, what: Passed) {
        self.pass_at(Instant::now(), what);
    }

    pub(super) fn pass_at(&self, at: Instant, what: Passed) {
        if let Some(timing) = &self.plan.timing {
            timing.timings.note(self.host, at, what);
        }
    }

    /// What the run is told besides.
    pub(super) fn learn(&self, learn: impl FnOnce(&mut TimedLogin)) {
        if let Some(timing) = &self.plan.timing {
            timing.timings.learn(self.host, |_, login| learn(login));
        }
    }

    /// Connected directly, by the last of these attempts.
    pub(crate) fn connected(&self, tried: Vec<Tried>) {
        for Tried {
            address,
            took,
            problem,
        } in tried
        {
            self.pass(match problem {
                Some(problem) => Passed::NotConnected(address, problem, took),
                None => Passed::Connected(Some((address, took))),
            });
        }
    }

    /// Notes what has come on the connection since it was looked at last, and what is `offered` to the server now.
    pub(crate) fn look(&mut self, connection: &Connection, offered: Option<String>) {
        let arrivals = connection.arrivals();
        for arrival in &arrivals[self.arrivals..] {
            self.pass_at(arrival.at, Passed::Arrived(arrival.message));
        }
        self.arrivals = arrivals.len();
        if !self.knows_keys && connection.kex_algorithm().is_some() {
            self.knows_keys = true;
            self.learn(|login| {
                login.kex = connection.kex_algorithm();
                login.host_key = connection.host_key_algorithm();
            });
        }
        if self.offered != offered {
            self.offered.clone_from(&offered);
            if let Some(offered) = offered {
                self.pass(Passed::Offered(offered));
            }
        }
        if let Some(server) = connection.server() {
            self.learn(|login| {
                login
                    .identification
                    .get_or_insert_with(|| server.as_str().to_owned());
            });
        }
    }

    /// The server says which methods can continue.
    pub(crate) fn methods(&self, methods: &[String]) {
        self.learn(|login| {
            login.methods.get_or_insert_with(|| methods.to_vec());
        });
    }

    /// What follows the login, if anything does.
    pub(crate) fn errands(&self) -> Option<Box<Errands>> {
        let errands = &self.plan.timing.as_ref()?.errands;
        let list = errands.get(self.host as usize)?.clone()?;
        Some(Box::new(Errands::new(self.again(), list)))
    }

    /// The same login, noted elsewhere.
    fn again(&self) -> Timing {
        Timing {
            plan: self.plan.clone(),
            host: self.host,
            arrivals: self.arrivals,
            offered: None,
            knows_keys: true,
        }
    }
}
