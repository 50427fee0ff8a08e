//! What a run is to do, resolved: nothing here needs a look at a configuration file any more.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sshoal_fleet::{Deadlines, HostId, JumpId, Limits, RetryPolicy};
use sshoal_known_hosts::{KnownHosts, RevokedHostKeys};
use sshoal_openssh::{CommandLine, Surroundings};
use sshoal_proto::{Command, Pipelining, Secret, SessionRequest, Settings};
use sshoal_ssh_config::AddressFamily;

use crate::agent::Agent;
use crate::input::Input;
use crate::interfaces::LocalAddresses;
use crate::keep::Keeper;
use crate::kill::KillPlan;
use crate::known_hosts::KnownHostsCommand;
use crate::listening::Listening;
use crate::login::LoginPlan;
use crate::rolling::RollingPlan;
use crate::runs::RunJournal;
use crate::timing::TimingPlan;
use crate::transfer::{Transfer, TransferPlan};
use crate::trial::{TrialPlan, TrialWay};
use crate::warm::{self, Sharing, WarmBerth, WarmPlan};

/// Octets of output that all hosts together may have sent and nobody has read: the sum of the channels' windows.
const UNREAD_BUDGET: usize = 64 * 1024 * 1024;
/// What stands in the command line of one that outlives its connection for nothing that has come.
const START: &[u8] = b"first 0 0";
/// The least window, octets: two packets, so that one is under way while the other is read.
const LEAST_WINDOW: usize = 64 * 1024;

/// A run: what is done for which hosts, and the bounds it keeps to.
pub struct RunPlan {
    /// What is done.
    pub work: Work,
    /// The jump hosts on the way to the hosts; an entry's index is the fleet's `JumpId`.
    pub jumps: Vec<Endpoint>,
    /// How many hosts may do the same thing at a time.
    pub limits: Limits,
    /// In which batches they begin; `None`: all in one, whatever fails.
    pub rolling: Option<RollingPlan>,
    /// How long each part may take.
    pub deadlines: Deadlines,
    /// How commands that must end are ended, and looked after; `None`: by a signal request alone.
    pub kill: Option<KillPlan>,
    /// When a host that was turned away is tried again.
    pub retry: RetryPolicy,
    /// The password of the account on every host that asks for one.
    pub password: Option<Secret>,
    /// Seed of back-off jitter.
    pub seed: u64,
    /// What the commands read; their requests must say that standard input will come.
    pub input: Option<Input>,
    /// Whether there is somebody to ask about unknown host keys ([`Strictness::Ask`]).
    pub asks: bool,
    /// Where to remember what servers are (see [`server_cache_path`](crate::server_cache_path)); `None` to neither
    /// read nor write it.
    pub server_cache: Option<PathBuf>,
    /// How an ssh is started, for the hosts that are reached by one.
    pub ssh: Surroundings,
    /// Threads that perform the hosts' work, at least 1.
    pub workers: usize,
    /// What the sessions transfer; their requests must be for SFTP ([`NativePlan::transfers`]).
    pub transfer: Option<TransferPlan>,
    /// What the sessions measure; their requests must be its own ([`NativePlan::measures`]).
    pub trial: Option<TrialPlan>,
    /// What is measured of the logins; their plans must be made for that ([`NativePlan::is_timed`]).
    pub timing: Option<TimingPlan>,
    /// Who keeps the connections, in place of commands; all hosts must be native.
    pub keeper: Option<Arc<dyn Keeper>>,
    /// Where it is noted which commands may have run, and how hosts ended.
    pub journal: Option<Arc<RunJournal>>,
    /// Hosts whose commands or transfers go by connections that are kept already, if any do.
    pub warm: Option<WarmPlan>,
}

impl RunPlan {
    /// Whether everything else on the machine comes first (docs/adr/0004): not before octets that a server waits for, for a
    /// window that is not used is lost, nor where time is what is measured.
    pub(crate) fn gives_way(&self) -> bool {
        self.transfer.is_none() && self.trial.is_none()
    }

    /// The jump host with this number, which the plan must have.
    pub(crate) fn jump(&self, jump: JumpId) -> &Endpoint {
        &self.jumps[jump.0 as usize]
    }

    /// A host's plan, if the transport is our own.
    pub(crate) fn native(&self, host: HostId) -> Option<&NativePlan> {
        match &self.work {
            Work::Sessions(hosts) => hosts[host.0 as usize].native(),
            Work::Local(_) => None,
        }
    }

    /// How to get to a host, which the plan must have a session on.
    pub(crate) fn endpoint(&self, host: HostId) -> &Endpoint {
        match &self.work {
            Work::Sessions(hosts) => match &hosts[host.0 as usize] {
                HostPlan::Native(plan) => &plan.endpoint,
                HostPlan::OpenSsh(_) => unreachable!("ssh judges host keys itself"),
            },
            Work::Local(_) => unreachable!("only sessions have host keys"),
        }
    }

    /// What the user calls a host; commands on this machine have no name here.
    pub(crate) fn label(&self, host: HostId) -> Option<&str> {
        match &self.work {
            Work::Sessions(hosts) => Some(hosts[host.0 as usize].label()),
            Work::Local(_) => None,
        }
    }

    /// Which account of which host it is ([`HostPlan::account`]).
    pub(crate) fn account(&self, host: HostId) -> Option<String> {
        match &self.work {
            Work::Sessions(hosts) => Some(hosts[host.0 as usize].account()),
            Work::Local(_) => None,
        }
    }

    /// Where a host is kept whose command goes by a stream.
    pub(crate) fn berth(&self, host: HostId) -> Option<WarmBerth> {
        self.warm.as_ref()?.berth(host)
    }

    /// Who has a host's connection shared for its transfer.
    pub(crate) fn sharing(&self, host: HostId) -> Option<&Arc<dyn Sharing>> {
        self.warm.as_ref()?.sharing(host)
    }

    /// Whether a host was kept when the run began.
    pub(crate) fn is_warm(&self, host: HostId) -> bool {
        self.berth(host).is_some() || self.sharing(host).is_some()
    }

    /// The last jump host on the way to a host; or the program that finds its way itself.
    pub(crate) fn via(&self, host: HostId) -> Option<JumpId> {
        match &self.work {
            Work::Sessions(hosts) => match &hosts[host.0 as usize] {
                HostPlan::Native(plan) => plan.endpoint.via,
                // Nothing is copied by it.
                HostPlan::OpenSsh(_) if self.transfer.is_some() => None,
                HostPlan::OpenSsh(_) => Some(JumpId::PROGRAM),
            },
            Work::Local(_) => None,
        }
    }

    /// The first of the jump hosts that lead to this one.
    pub(crate) fn first_jump(&self, jump: JumpId) -> JumpId {
        let mut first = jump;
        // A jump host's way is planned before itself, so there is no loop.
        while let Some(before) = self.jump(first).via {
            first = before;
        }
        first
    }

    /// How many logins share a thread at a time, at most.
    pub(crate) fn logins_a_worker(&self) -> u32 {
        let hosts = u32::try_from(self.work.hosts()).unwrap_or(u32::MAX);
        let limits = &self.limits;
        let logins = limits.logins.min(limits.sessions).min(hosts);
        logins.div_ceil(self.workers as u32)
    }

    /// How many hosts may be worked on at a time.
    pub(crate) fn hosts_at_once(&self) -> usize {
        let sessions = self.limits.sessions.max(1) as usize;
        self.work.hosts().clamp(1, sessions)
    }

    /// The window of each channel if `hosts` have one: their share of what may be unread, octets.
    pub(crate) fn window_of(&self, hosts: usize) -> u32 {
        let at_once = hosts.clamp(1, self.limits.sessions.max(1) as usize);
        let share = (UNREAD_BUDGET / at_once).max(LEAST_WINDOW);
        u32::try_from(share).unwrap_or(u32::MAX)
    }

    /// All hosts and jump hosts that are reached natively.
    pub(crate) fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        let hosts: &[HostPlan] = match &self.work {
            Work::Sessions(hosts) => hosts,
            Work::Local(_) => &[],
        };
        let native = hosts.iter().filter_map(HostPlan::native);
        native.map(|host| &host.endpoint).chain(&self.jumps)
    }
}

/// What is done for hosts, in the order in which they start. One entry a host; its index is the fleet's `HostId`.
pub enum Work {
    /// A session on each host.
    Sessions(Vec<HostPlan>),
    /// A command on this machine for each host.
    Local(Vec<LocalCommand>),
}

impl Work {
    /// For how many hosts.
    pub fn hosts(&self) -> usize {
        match self {
            Work::Sessions(hosts) => hosts.len(),
            Work::Local(commands) => commands.len(),
        }
    }
}

/// A command on this machine. It leads a process group of its own, and reads nothing but [`RunPlan::input`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalCommand {
    /// A path, or a name to look for in PATH.
    pub program: OsString,
    /// What follows the program's name.
    pub arguments: Vec<OsString>,
    /// Variables that it has besides our own.
    pub variables: Vec<(OsString, OsString)>,
}

/// One host, and what to run there, by one transport or the other.
pub enum HostPlan {
    /// By a connection of our own.
    Native(Box<NativePlan>),
    /// By the installed ssh.
    OpenSsh(Box<SshPlan>),
}

impl HostPlan {
    /// How the user named the host.
    pub fn label(&self) -> &str {
        match self {
            HostPlan::Native(plan) => &plan.endpoint.label,
            HostPlan::OpenSsh(plan) => &plan.label,
        }
    }

    /// The name or address to connect to (HostName).
    pub fn name(&self) -> &str {
        match self {
            HostPlan::Native(plan) => &plan.endpoint.name,
            HostPlan::OpenSsh(plan) => &plan.name,
        }
    }

    /// The TCP port.
    pub fn port(&self) -> u16 {
        match self {
            HostPlan::Native(plan) => plan.endpoint.port,
            HostPlan::OpenSsh(plan) => plan.port,
        }
    }

    /// The user to log in as.
    pub fn user(&self) -> &str {
        match self {
            HostPlan::Native(plan) => &plan.endpoint.user,
            HostPlan::OpenSsh(plan) => &plan.user,
        }
    }

    /// What tells this account of this host from others: what a transfer has left for one is not what another has.
    pub fn account(&self) -> String {
        let parts = [self.label(), self.user(), self.name()];
        format!("{}\0{}", parts.join("\0"), self.port())
    }

    /// What the host's shell gets.
    pub fn command(&self) -> &[u8] {
        match self {
            HostPlan::Native(plan) => match &plan.request.command {
                Command::Exec(line) => line,
                Command::Shell | Command::Subsystem(_) => &[],
            },
            HostPlan::OpenSsh(plan) => &plan.line.command,
        }
    }

    /// ConnectTimeout, where it is set.
    pub fn connect_timeout(&self) -> Option<Duration> {
        match self {
            HostPlan::Native(plan) => plan.endpoint.tcp.connect_timeout,
            HostPlan::OpenSsh(plan) => plan.connect_timeout,
        }
    }

    /// Whether a process of this machine carries the connection.
    pub fn has_process(&self) -> bool {
        match self {
            HostPlan::Native(plan) => plan.endpoint.proxy_command.is_some(),
            HostPlan::OpenSsh(_) => true,
        }
    }

    /// Whether the session can be had by a connection that another process keeps: without a terminal, an agent and an ssh.
    pub fn can_be_warm(&self) -> bool {
        self.native().is_some_and(warm::serves)
    }

    /// The plan, if the transport is our own.
    pub fn native(&self) -> Option<&NativePlan> {
        match self {
            HostPlan::Native(plan) => Some(plan),
            HostPlan::OpenSsh(_) => None,
        }
    }

    /// The same, to be changed.
    pub fn native_mut(&mut self) -> Option<&mut NativePlan> {
        match self {
            HostPlan::Native(plan) => Some(plan),
            HostPlan::OpenSsh(_) => None,
        }
    }

    /// The plan, if it is ssh that reaches the host.
    pub fn openssh(&self) -> Option<&SshPlan> {
        match self {
            HostPlan::Native(_) => None,
            HostPlan::OpenSsh(plan) => Some(plan),
        }
    }

    /// The same, to be changed.
    pub fn openssh_mut(&mut self) -> Option<&mut SshPlan> {
        match self {
            HostPlan::Native(_) => None,
            HostPlan::OpenSsh(plan) => Some(plan),
        }
    }
}

/// A host that the installed ssh reaches.
pub struct SshPlan {
    /// How the user named it: what output and results are labelled with.
    pub label: String,
    /// The name or address that ssh will connect to (HostName).
    pub name: String,
    /// The TCP port.
    pub port: u16,
    /// The user to log in as.
    pub user: String,
    /// What ssh is told.
    pub line: CommandLine,
    /// ConnectTimeout, where it is set: ssh keeps to it by itself.
    pub connect_timeout: Option<Duration>,
    /// Why it is ssh: a flag, or what the configuration requires and where.
    pub why: String,
    /// Whether the command reads the run's input.
    pub reads: bool,
    /// Whether ssh gets our own terminal.
    pub lends_terminal: bool,
    /// Whether a jump host or a ProxyCommand is on the way.
    pub is_proxied: bool,
    /// Whether the configuration lets a password be given (BatchMode, NumberOfPasswordPrompts, the methods).
    pub takes_password: bool,
}

/// A host that is reached natively.
pub struct NativePlan {
    /// How to get there.
    pub endpoint: Endpoint,
    /// What to run.
    pub request: SessionRequest,
    /// Whether the command's pseudo-terminal is our own terminal.
    pub lends_terminal: bool,
    /// Where `0 0` stands in the command line, if the command outlives its connection: the octets of output and of errors that have
    /// come take its place when the connection was lost and the line is sent again. It must not begin anything twice.
    pub resumes_at: Option<usize>,
    /// What the command line says first on both streams, if something else that answers is a failure. It is no output.
    pub announcement: Option<Vec<u8>>,
    /// The agent that processes on the host may talk to (ForwardAgent).
    pub(crate) forwarded_agent: Option<Arc<Agent>>,
    /// How this side listens for forwards, where the connection is kept.
    pub listening: Listening,
}

impl NativePlan {
    /// What the session asks for; when the host has begun the command before, and so many octets of output and of errors have come.
    pub(crate) fn request_after(&self, come: Option<[u64; 2]>) -> SessionRequest {
        let mut request = self.request.clone();
        if let (Some(at), Command::Exec(line)) = (self.resumes_at, &mut request.command)
            && let Some([out, err]) = come
            && line.get(at..at + START.len()) == Some(START)
        {
            let again = format!("again {out} {err}");
            line.splice(at..at + START.len(), again.into_bytes());
        }
        request
    }

    /// The command outlives its connection: `line` is what the command line has before its first `first 0 0`.
    pub fn outlives(&mut self, line: &[u8]) {
        if let Command::Exec(command) = &self.request.command {
            let whole = [line, START].concat();
            let found = command.windows(whole.len()).position(|part| part == whole);
            self.resumes_at = found.map(|at| at + line.len());
        }
    }
}

impl NativePlan {
    /// The session is for a run's [`RunPlan::transfer`] in place of a command: SFTP, without a terminal or an agent.
    pub fn transfers(&mut self) {
        let environment = std::mem::take(&mut self.request.environment);
        self.request = SessionRequest {
            environment,
            ..Transfer::request()
        };
        self.lends_terminal = false;
        self.forwarded_agent = None;
    }
}

impl NativePlan {
    /// The session is a trial of a run's [`RunPlan::trial`] in place of a command, over so many blocks either way.
    pub fn measures(&mut self, way: TrialWay, blocks: u64) {
        let environment = std::mem::take(&mut self.request.environment);
        self.request = SessionRequest {
            environment,
            ..TrialPlan::request(way, blocks)
        };
        self.lends_terminal = false;
        self.forwarded_agent = None;
        Arc::make_mut(&mut self.endpoint.settings).keeps_lists = true;
    }
}

impl NativePlan {
    /// The login is measured, to the first output of this command: it merges no flights.
    pub fn is_timed(&mut self, command: &[u8]) {
        let environment = std::mem::take(&mut self.request.environment);
        self.request = SessionRequest {
            environment,
            ..SessionRequest::exec(command.to_vec())
        };
        self.lends_terminal = false;
        self.forwarded_agent = None;
        let settings = Arc::make_mut(&mut self.endpoint.settings);
        settings.pipelining = Pipelining::None;
        settings.notes_arrivals = true;
    }
}

impl SshPlan {
    /// The same by ssh.
    pub fn is_timed(&mut self, command: &[u8]) {
        self.line.command = command.to_vec();
        self.line.names_packets = true;
        self.lends_terminal = false;
        self.line.has_terminal = false;
    }
}

impl SshPlan {
    /// The same by ssh, with commands of the server's shell.
    pub fn measures(&mut self, blocks: u64) {
        if let Command::Exec(line) = TrialPlan::request(TrialWay::Exec, blocks).command {
            self.line.command = line;
        }
        self.lends_terminal = false;
        self.line.has_terminal = false;
    }
}

/// All that is needed to log in to a host or a jump host.
pub struct Endpoint {
    /// How the user named it: what output and results are labelled with.
    pub label: String,
    /// The last jump host on the way (ProxyJump).
    pub via: Option<JumpId>,
    /// The line for the user's shell whose standard input and output are the connection (ProxyCommand), its tokens
    /// expanded; never with `via`.
    pub proxy_command: Option<String>,
    /// The name or address to connect to (HostName). Behind a jump host it is for that to look up.
    pub name: String,
    /// The TCP port.
    pub port: u16,
    /// How TCP is used to get there.
    pub tcp: TcpOptions,
    /// The user to log in as.
    pub user: String,
    /// How to tell that it is the right host.
    pub trust: HostTrust,
    /// What to log in with.
    pub login: Arc<LoginPlan>,
    /// Algorithms and limits of the connection.
    pub settings: Arc<Settings>,
    /// Whether ciphers and MACs go in the order that was measured for the server: the user has named none.
    pub prefers_measured: bool,
}

/// How a TCP connection is made. All are keywords of ssh_config(5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpOptions {
    /// AddressFamily: which addresses of the host to use.
    pub address_family: AddressFamily,
    /// BindAddress, or else BindInterface: the local addresses to connect from.
    pub bind: Option<LocalAddresses>,
    /// ConnectionAttempts: how often to try all addresses of the host, at least 1.
    pub attempts: u32,
    /// ConnectTimeout, where it is set; the run's own deadline holds as well.
    pub connect_timeout: Option<Duration>,
    /// TCPKeepAlive.
    pub keep_alive: bool,
}

/// How to tell that a host is the right one.
pub struct HostTrust {
    /// All known_hosts files.
    pub known: Arc<KnownHosts>,
    /// Their paths: UserKnownHostsFile, then GlobalKnownHostsFile.
    pub files: Arc<[String]>,
    /// A program that knows further lines (KnownHostsCommand).
    pub command: Option<Arc<KnownHostsCommand>>,
    /// The name to look for: HostKeyAlias, or the host name.
    pub name: String,
    /// The port to look for.
    pub port: u16,
    /// Host-key algorithms in order of preference, before what is known reorders them.
    pub algorithms: Arc<[&'static str]>,
    /// What authorities may have signed host certificates with (CASignatureAlgorithms).
    pub ca_signature_algorithms: Arc<[&'static str]>,
    /// The fewest bits of an RSA key that the server may tell of as its own (RequiredRSASize).
    pub required_rsa_size: usize,
    /// RevokedHostKeys: the files, by their paths.
    pub revoked: Arc<[(String, RevokedHostKeys)]>,
    /// StrictHostKeyChecking.
    pub strictness: Strictness,
    /// Whether the address is looked up besides (CheckHostIP).
    pub checks_address: bool,
    /// Whether any key will do on this machine's own loopback (NoHostAuthenticationForLocalhost).
    pub trusts_loopback: bool,
    /// Whether the user wants fingerprints in the DNS to count (VerifyHostKeyDNS), which are not looked up.
    pub wants_dns: bool,
    /// UserKnownHostsFile.
    pub user_files: Arc<[String]>,
    /// Whether a trusted server may change what is known of its keys (UpdateHostKeys).
    pub updates_keys: bool,
    /// Where a new key is recorded; `None` if it is not.
    pub recording: Option<Recording>,
}

/// Where and how new host keys are recorded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Recording {
    /// The first file of UserKnownHostsFile, as the set of known_hosts files names it.
    pub file: String,
    /// HashKnownHosts.
    pub hashes_names: bool,
}

/// StrictHostKeyChecking (ssh_config(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// Only known keys.
    Yes,
    /// Unknown keys if the user accepts them, of all hosts at once; changed ones are refused.
    Ask,
    /// Unknown keys are accepted, changed ones are not.
    AcceptNew,
    /// Unknown and changed keys are accepted; revoked ones never are.
    No,
}
