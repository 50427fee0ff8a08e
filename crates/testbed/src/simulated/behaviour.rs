//! What one connection to a host will meet: the host's fault rules, put together.

use std::time::Duration;

use super::fault::{Action, Cut, Fault, FaultRule, Position, Side};

/// How one connection is treated. The default is a healthy host's.
#[derive(Clone, Debug, Default)]
pub(super) struct Behaviour {
    pub(super) entrance: Entrance,
    /// Presents the key that known_hosts does not say.
    pub(super) other_host_key: bool,
    pub(super) auth_denied: bool,
    pub(super) output_cut: Option<(Action, Position)>,
    pub(super) input_cut: Option<(Action, Position)>,
    /// Bytes a second of output once authenticated.
    pub(super) output_rate: Option<u64>,
    /// Added to each direction.
    pub(super) latency: Duration,
    pub(super) instead: Option<Instead>,
    pub(super) never_close: bool,
}

/// What an accepted connection meets first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Entrance {
    #[default]
    Ssh,
    Silence,
    Garbage,
    EndlessBanner,
    /// This text and a close.
    TurnedAway(&'static str),
}

/// What runs in place of any command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Instead {
    Flood(u64),
    Signal(String),
}

/// sshd 9.7 and earlier, sshd.c drop_connection().
const EXCEEDED_MAX_STARTUPS: &str = "Exceeded MaxStartups\r\n";
/// sshd 9.8 and later, for MaxStartups and PerSourcePenalties alike.
const NOT_ALLOWED: &str = "Not allowed at this time\r\n";

impl Behaviour {
    /// What a host's `rules` and the delay of all hosts make of connection `number` (from 0). Of two
    /// rules about the same thing the later one counts.
    pub(super) fn of_connection(rules: &[FaultRule], latency: Duration, number: u64) -> Behaviour {
        let mut behaviour = Behaviour {
            latency,
            ..Behaviour::default()
        };
        for rule in rules.iter().filter(|rule| rule.applies(number)) {
            behaviour.apply(rule.fault(), number);
        }
        behaviour
    }

    fn apply(&mut self, fault: &Fault, number: u64) {
        match fault {
            // In the listening socket and in known_hosts: nothing that a connection could meet.
            Fault::Refuse | Fault::ConnectHang => {}
            Fault::UnknownHostKey | Fault::RevokedHostKey => {}
            Fault::SilentAfterConnect => self.entrance = Entrance::Silence,
            Fault::GarbageBanner => self.entrance = Entrance::Garbage,
            Fault::EndlessBanner => self.entrance = Entrance::EndlessBanner,
            Fault::MaxStartups => self.entrance = Entrance::TurnedAway(EXCEEDED_MAX_STARTUPS),
            Fault::NotAllowed => self.entrance = Entrance::TurnedAway(NOT_ALLOWED),
            Fault::WrongHostKey => self.other_host_key = true,
            Fault::ChangedHostKey(known) => self.other_host_key = number >= *known,
            Fault::AuthDenied => self.auth_denied = true,
            Fault::Cut(Cut { side, action, at }) => match side {
                Side::Output => self.output_cut = Some((*action, *at)),
                Side::Input => self.input_cut = Some((*action, *at)),
            },
            Fault::SlowOutput(rate) => self.output_rate = Some(*rate),
            Fault::Flood(bytes) => self.instead = Some(Instead::Flood(*bytes)),
            Fault::ExitSignal(name) => self.instead = Some(Instead::Signal(name.clone())),
            Fault::NeverClose => self.never_close = true,
            Fault::Latency(latency) => self.latency = *latency,
        }
    }

    /// Whether packets must be told apart in passing, which AES-GCM alone allows.
    pub(super) fn counts_packets(&self) -> bool {
        [self.output_cut, self.input_cut]
            .into_iter()
            .flatten()
            .any(|(_, at)| matches!(at, Position::Message(_)))
    }
}
