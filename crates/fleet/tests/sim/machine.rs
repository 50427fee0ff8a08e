//! What a simulated host is like: how long it takes for each step, and what is wrong with it.

use std::time::Duration;

use sshoal_fleet::{FailureKind, Fate, Outcome};

/// The steps of a healthy host, in order, and what may come in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Step {
    LookedUp,
    Connected,
    KeysExchanged,
    Signed,
    Authenticated,
    CommandStarted,
    CommandEnded,
    /// The connection has been torn down, as the fleet asked.
    TornDown,
    /// The command has ended by the signal that the fleet asked for.
    Signalled,
}

/// What is wrong with a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Trouble {
    Nothing,
    NoSuchName,
    SilentResolver,
    Refuses,
    NoRoute,
    SilentAtConnect,
    AlwaysThrottles,
    ThrottlesTwice,
    Garbles,
    SilentAtLogin,
    ChangedKey,
    AgentRefuses,
    Denies,
    OpensNoSession,
    SilentAtSession,
    BreaksOff,
    NeverEnds,
    Killed,
    ExitsWithOne,
}

/// The twelve ways in which the hosts of target T14 are bad.
pub(crate) const TWELVE: [Trouble; 12] = [
    Trouble::NoSuchName,
    Trouble::SilentResolver,
    Trouble::Refuses,
    Trouble::NoRoute,
    Trouble::SilentAtConnect,
    Trouble::AlwaysThrottles,
    Trouble::Garbles,
    Trouble::SilentAtLogin,
    Trouble::ChangedKey,
    Trouble::Denies,
    Trouble::BreaksOff,
    Trouble::NeverEnds,
];

/// How trouble shows at its step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strike {
    /// The step never comes.
    Silence,
    /// A failure comes in its place.
    Fails(FailureKind, Fate),
}

impl Trouble {
    /// Where and how the trouble strikes in this attempt.
    pub(crate) fn strikes(self, attempt: u32) -> Option<(Step, Strike)> {
        use FailureKind as Kind;
        let fails = |step, kind| Some((step, Strike::Fails(kind, Fate::NotSent)));
        let discards = |step, kind| Some((step, Strike::Fails(kind, Fate::ProvenDiscarded)));
        match self {
            Trouble::Nothing | Trouble::Killed | Trouble::ExitsWithOne => None,
            Trouble::ThrottlesTwice if attempt > 2 => None,
            Trouble::NoSuchName => fails(Step::LookedUp, Kind::Resolve),
            Trouble::SilentResolver => Some((Step::LookedUp, Strike::Silence)),
            Trouble::Refuses => fails(Step::Connected, Kind::Refused),
            Trouble::NoRoute => fails(Step::Connected, Kind::Unreachable),
            Trouble::SilentAtConnect => Some((Step::Connected, Strike::Silence)),
            Trouble::AlwaysThrottles | Trouble::ThrottlesTwice => {
                fails(Step::KeysExchanged, Kind::Throttled)
            }
            Trouble::Garbles => fails(Step::KeysExchanged, Kind::Protocol),
            Trouble::SilentAtLogin => Some((Step::KeysExchanged, Strike::Silence)),
            Trouble::ChangedKey => fails(Step::KeysExchanged, Kind::HostKeyChanged),
            Trouble::AgentRefuses => fails(Step::Signed, Kind::Agent),
            Trouble::Denies => discards(Step::Authenticated, Kind::AuthDenied),
            Trouble::OpensNoSession => discards(Step::CommandStarted, Kind::ChannelRefused),
            Trouble::SilentAtSession => Some((Step::CommandStarted, Strike::Silence)),
            Trouble::BreaksOff => Some((
                Step::CommandStarted,
                Strike::Fails(Kind::Lost, Fate::MayHaveRun),
            )),
            Trouble::NeverEnds => Some((Step::CommandEnded, Strike::Silence)),
        }
    }

    /// What the run must report of such a host, if it has deadlines and is not interrupted.
    pub(crate) fn kind(self) -> Option<FailureKind> {
        match self {
            Trouble::Nothing | Trouble::ThrottlesTwice => None,
            Trouble::SilentResolver => Some(FailureKind::Resolve),
            Trouble::SilentAtConnect => Some(FailureKind::ConnectTimeout),
            Trouble::SilentAtLogin => Some(FailureKind::LoginTimeout),
            // The command was sent behind the login: no timeout may claim that it did not run.
            Trouble::SilentAtSession => Some(FailureKind::Lost),
            Trouble::NeverEnds => Some(FailureKind::CommandTimeout),
            Trouble::Killed => Some(FailureKind::Signal),
            Trouble::ExitsWithOne => Some(FailureKind::Exit),
            other => match other.strikes(1) {
                Some((_, Strike::Fails(kind, _))) => Some(kind),
                Some((_, Strike::Silence)) | None => None,
            },
        }
    }

    /// How the command of such a host ends, if it ends.
    pub(crate) fn command_ends(self) -> Outcome {
        match self {
            Trouble::Killed => signal("KILL"),
            Trouble::ExitsWithOne => Outcome::Exit(1),
            _ => Outcome::Exit(0),
        }
    }
}

pub(crate) fn signal(name: &str) -> Outcome {
    Outcome::Signal {
        name: name.to_owned(),
        core_dumped: false,
        message: String::new(),
    }
}

/// One simulated host.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pub(crate) trouble: Trouble,
    pub(crate) via: Option<u32>,
    pub(crate) lookup: Duration,
    pub(crate) connect: Duration,
    pub(crate) key_exchange: Duration,
    pub(crate) signature: Duration,
    pub(crate) authentication: Duration,
    pub(crate) session: Duration,
    pub(crate) command: Duration,
    /// An agent signs for it.
    pub(crate) agent: bool,
    /// Its performer asks at gates with `Event::Reached` instead of `Fleet::try_pass`.
    pub(crate) queues: bool,
    /// A connection to it stands already.
    pub(crate) warm: bool,
    /// Its command ignores signals.
    pub(crate) deaf: bool,
}

impl Machine {
    /// How long the step takes, once the one before it is done.
    pub(crate) fn takes(&self, step: Step) -> Duration {
        match step {
            Step::LookedUp => self.lookup,
            Step::Connected => self.connect,
            Step::KeysExchanged => self.key_exchange,
            Step::Signed => self.signature,
            Step::Authenticated => self.authentication,
            Step::CommandStarted => self.session,
            Step::CommandEnded => self.command,
            Step::TornDown => Duration::from_micros(50),
            Step::Signalled => self.session,
        }
    }
}

/// SplitMix64: seeded randomness for populations.
pub(crate) struct Dice(pub u64);

impl Dice {
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to `bound`, exclusive.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound
    }

    pub(crate) fn micros(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_micros(from + self.below(to - from))
    }
}

/// `count` healthy hosts on a network of mixed distances: the same for the same seed.
pub(crate) fn healthy(seed: u64, count: usize) -> Vec<Machine> {
    let mut dice = Dice(seed);
    let mut machine = || {
        let round_trip = dice.micros(500, 40_000);
        Machine {
            trouble: Trouble::Nothing,
            via: None,
            lookup: dice.micros(100, 5_000),
            connect: round_trip,
            key_exchange: 2 * round_trip + dice.micros(2_000, 20_000),
            signature: dice.micros(50, 300),
            authentication: round_trip + dice.micros(5_000, 15_000),
            session: dice.micros(1_000, 10_000),
            command: dice.micros(1_000, 500_000),
            agent: false,
            queues: dice.below(2) == 0,
            warm: false,
            deaf: dice.below(2) == 0,
        }
    };
    (0..count).map(|_| machine()).collect()
}
