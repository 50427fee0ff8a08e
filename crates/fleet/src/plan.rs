//! What a run is to do and the bounds it keeps to.

use std::num::NonZeroU32;
use std::time::Duration;

/// A host of the run, numbered by the caller. Numbering from 0 without gaps makes every look-up one index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u32);

/// A jump host that others are reached through, numbered by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JumpId(pub u32);

impl JumpId {
    /// No jump host but a program of this machine that makes the connections and logs in. Its hosts have a limit of
    /// their own, [`Limits::logins_by_program`]; connecting it means to see that it is there.
    pub const PROGRAM: JumpId = JumpId(u32::MAX);
}

/// One host to run on. Hosts start in the order of the jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// The host.
    pub host: HostId,
    /// The last jump host on the way, if any.
    pub via: Option<JumpId>,
}

/// How many hosts may do the same thing at a time. All are counts of hosts and at least 1.
///
/// A host in back-off counts nowhere. A host that is slow to connect or to log in stops counting against
/// `connects`, `logins` and the limits of its way once it has taken much longer than the others do (see
/// [`Fleet`](crate::Fleet)); it counts against `sessions` until it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Hosts from their start until they may log in: name lookup, TCP, waiting for a login.
    ///
    /// Default 256: the neighbour table of a stock Linux holds 1,024 entries (`gc_thresh3`), and small
    /// firewalls notice bursts of more.
    pub connects: u32,
    /// Hosts between the login gate and authenticated.
    ///
    /// Default 256. A login takes 30 ms against a stock sshd on a LAN and about 500 ms at a round trip of
    /// 100 ms; 256 at a time are more than two cores can compute on the former and 500 a second on the
    /// latter.
    pub logins: u32,
    /// Hosts behind one jump host, from their start until authenticated.
    ///
    /// Default 64: all share one connection and one sshd process on the jump host, each with a file
    /// descriptor of the usual 1,024 and a connection of its own from there.
    pub logins_per_jump: u32,
    /// Hosts that a program of this machine logs in to ([`JumpId::PROGRAM`]), from their start until authenticated.
    ///
    /// Default 16: an ssh computes for 10 to 100 ms a login, so a few for each core keep it busy, and more only take it
    /// from everything else on the machine.
    pub logins_by_program: u32,
    /// Signatures an agent is asked for at a time.
    ///
    /// Default 4: ssh-agent is one process and serves one request at a time on a connection. A few in
    /// flight keep it busy; more only wait inside it, where they end as "agent refused operation".
    pub signatures: u32,
    /// Hosts in flight, from their start to their end.
    ///
    /// Default 2,048: handshakes have limits of their own, so this one bounds only descriptors and memory
    /// (128 MiB at 64 KiB each). Hosts that hang hold their places here until a deadline: of 50,000 simulated
    /// hosts with 5,000 in trouble, the last healthy one ended 6 % later than without trouble at 2,048, and
    /// after 2.2 times as long at 1,024.
    pub sessions: u32,
    /// The least time between two starts. Default zero: `connects` bounds a burst.
    pub start_interval: Duration,
    /// How long each place among `sessions` rests: the first use of one comes so long after that of another, and the
    /// next host so long after the one before has left the place (mpssh's `-d`). Default zero.
    pub place_rest: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connects: 256,
            logins: 256,
            logins_per_jump: 64,
            logins_by_program: 16,
            signatures: 4,
            sessions: 2048,
            start_interval: Duration::ZERO,
            place_rest: Duration::ZERO,
        }
    }
}

/// A run in batches, and when it is not gone on with. By default: one batch, whatever fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rolling {
    /// So many of the first jobs are a batch of their own, in which one failure is too many. Default 0.
    pub canaries: u32,
    /// Hosts of each batch.
    pub batch: Option<NonZeroU32>,
    /// Hosts that may fail in the whole run: with one more nothing is begun any more.
    pub max_failures: Option<u32>,
}

/// How long each part of a host's way may take, without the time spent waiting at gates. `None` waits
/// for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// Name lookup. Default 10 s, what the C library's resolver takes to give up on one server (5 s, twice).
    pub lookup: Option<Duration>,
    /// From the first packet to a TCP connection. Default 10 s: three lost SYNs are repeated within 7 s.
    pub connect: Option<Duration>,
    /// From the TCP connection to authenticated, and once more from authenticated to the command's start.
    ///
    /// Default 60 s: half of sshd's LoginGraceTime, above the 25 s that a hanging logind costs and the
    /// 30 s of two nested resolver timeouts.
    pub login: Option<Duration>,
    /// From the command's start to its end. Default: none, the command may take as long as it likes.
    pub command: Option<Duration>,
    /// How long the performer may take to end a command that must end and to see whether it is gone, beside what it needs
    /// to tear down a connection. Default zero.
    pub kill: Duration,
    /// How long a host that was cut off ([`Event::Cut`](crate::Event::Cut)) is tried again, from each loss on. Default: none, it
    /// is tried once more in a run.
    pub survive: Option<Duration>,
}

impl Default for Deadlines {
    fn default() -> Deadlines {
        Deadlines {
            lookup: Some(Duration::from_secs(10)),
            connect: Some(Duration::from_secs(10)),
            login: Some(Duration::from_secs(60)),
            command: None,
            kill: Duration::ZERO,
            survive: None,
        }
    }
}

/// When a host that was turned away is tried again.
///
/// The n-th delay is drawn evenly from the upper half of `first_delay * 2^(n-1)`, at most `max_delay`: hosts
/// that were turned away together come back apart. It depends on the seed, the host and n alone, so that no
/// host's trouble changes another's delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts in all, the first included; 0 means 1.
    ///
    /// Default 6: with the default delays five retries over 15 to 31 s. That outlasts a burst that ran into
    /// MaxStartups, and the 15 s from which on sshd enforces PerSourcePenalties.
    pub attempts: u32,
    /// The longest first delay. Default 1 s.
    pub first_delay: Duration,
    /// No delay is longer. Default 16 s.
    pub max_delay: Duration,
}

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        RetryPolicy {
            attempts: 6,
            first_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(16),
        }
    }
}

/// A plan that could not be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Two jobs for one host.
    #[error("host {} has two jobs; give each host of a run one job", .0.0)]
    DuplicateHost(HostId),
    /// A limit that lets nobody through.
    #[error("the limit on {0} is 0, so nothing would ever run; it must be at least 1")]
    ZeroLimit(&'static str),
    /// More jobs than a run can number.
    #[error("more than {MAX_JOBS} hosts are too many for one run; split the list")]
    TooManyJobs,
}

/// The most jobs of one run: well above any list of hosts, and far below what a 32-bit index can hold.
pub const MAX_JOBS: usize = 16_000_000;
