//! The settings of one host.

use std::time::Duration;

use crate::algorithms::AlgorithmSpec;
use crate::jump::Hop;
use crate::origin::{Origin, Setting};
use crate::pattern;
use crate::value::{
    AddressFamily, ForwardAgent, IdentityAgent, LogLevel, PubkeyAuthentication, RekeyLimit,
    RequestTty, StrictHostKeyChecking,
};

/// All settings of a host, grouped by what they govern. Tokens, variables and `~` are expanded.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The host as it was given.
    pub host: String,
    /// Where and how to connect.
    pub connection: Connection,
    /// How the host proves who it is.
    pub host_keys: HostKeys,
    /// How the user proves who they are.
    pub authentication: Authentication,
    /// What is negotiated.
    pub algorithms: Algorithms,
    /// What a session is like.
    pub session: Session,
    /// Keywords that sshoal records and leaves to others, in the order in which they were set.
    pub others: Vec<OtherSetting>,
}

/// Where and how to connect.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The name or address to connect to, in lowercase.
    pub host_name: Setting<String>,
    /// The remote user.
    pub user: Setting<String>,
    /// The port.
    pub port: Setting<u16>,
    /// Which kinds of addresses to use.
    pub address_family: Setting<AddressFamily>,
    /// The local address to connect from.
    pub bind_address: Option<Setting<String>>,
    /// Through what to connect.
    pub proxy: Setting<Proxy>,
    /// How long connecting may take; `None` for as long as the system lets it.
    pub connect_timeout: Option<Setting<Duration>>,
    /// How often to try.
    pub connection_attempts: Setting<u32>,
    /// Silence after which the server is asked for a sign of life; zero for never.
    pub server_alive_interval: Setting<Duration>,
    /// How many such questions may stay unanswered.
    pub server_alive_count_max: Setting<u32>,
    /// Whether TCP keepalives are on.
    pub tcp_keep_alive: Setting<bool>,
    /// Whether compression is asked for.
    pub compression: Setting<bool>,
}

/// Through what to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// Directly.
    None,
    /// Through these hosts, in the order in which they are travelled (`ProxyJump`).
    Jump(Vec<Hop>),
    /// Through a command's standard input and output (`ProxyCommand`), tokens not expanded yet.
    Command(String),
}

/// How the host proves who it is.
#[derive(Clone, Debug)]
pub struct HostKeys {
    /// The user's known_hosts files; empty for `none`.
    pub user_known_hosts_files: Setting<Vec<String>>,
    /// The system's known_hosts files; empty for `none`.
    pub global_known_hosts_files: Setting<Vec<String>>,
    /// What to do about unknown and changed keys.
    pub strict_host_key_checking: Setting<StrictHostKeyChecking>,
    /// The name to look up instead of the host's own, in lowercase.
    pub host_key_alias: Option<Setting<String>>,
    /// Whether the address is looked up, too.
    pub check_host_ip: Setting<bool>,
    /// Fewest bits of an RSA key, the user's as well.
    pub required_rsa_size: Setting<u32>,
}

/// How the user proves who they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authentication {
    /// Private keys to try, in order. Those with [`Origin::Default`] need not exist.
    pub identity_files: Vec<Setting<String>>,
    /// Certificates for those or the agent's keys.
    pub certificate_files: Vec<Setting<String>>,
    /// Whether only these keys are tried, and of the agent's only those that are named here.
    pub identities_only: Setting<bool>,
    /// Which agent to use.
    pub identity_agent: Setting<IdentityAgent>,
    /// Methods in the order to try them; `None` for the client's own order.
    pub preferred_authentications: Option<Setting<Vec<String>>>,
    /// Whether public keys are tried.
    pub pubkey_authentication: Setting<PubkeyAuthentication>,
    /// Whether passwords are tried.
    pub password_authentication: Setting<bool>,
    /// Whether keyboard-interactive is tried.
    pub kbd_interactive_authentication: Setting<bool>,
    /// How often a password may be asked for.
    pub number_of_password_prompts: Setting<u32>,
    /// Whether nothing may be asked at all.
    pub batch_mode: Setting<bool>,
}

/// What is negotiated. A list that is `None` is the client's own.
#[derive(Clone, Debug)]
pub struct Algorithms {
    /// `KexAlgorithms`
    pub kex: Option<Setting<AlgorithmSpec>>,
    /// `Ciphers`
    pub ciphers: Option<Setting<AlgorithmSpec>>,
    /// `MACs`
    pub macs: Option<Setting<AlgorithmSpec>>,
    /// `HostKeyAlgorithms`
    pub host_key: Option<Setting<AlgorithmSpec>>,
    /// `PubkeyAcceptedAlgorithms`
    pub pubkey_accepted: Option<Setting<AlgorithmSpec>>,
    /// `CASignatureAlgorithms`
    pub ca_signature: Option<Setting<AlgorithmSpec>>,
    /// When keys are exchanged anew.
    pub rekey_limit: Setting<RekeyLimit>,
}

/// What a session is like.
#[derive(Clone, Debug)]
pub struct Session {
    /// Names, with `*` and `?`, of environment variables to send.
    pub send_env: Vec<Setting<String>>,
    /// Environment variables to set.
    pub set_env: Setting<Vec<(String, String)>>,
    /// Whether to ask for a terminal.
    pub request_tty: Setting<RequestTty>,
    /// The command to run if none is given.
    pub remote_command: Option<Setting<String>>,
    /// Whether the agent is forwarded.
    pub forward_agent: Setting<ForwardAgent>,
    /// How much to say.
    pub log_level: Setting<LogLevel>,
    /// A name for `Match tagged`.
    pub tag: Option<Setting<String>>,
}

impl Session {
    /// Whether `SendEnv` names an environment variable.
    pub fn sends(&self, variable: &str) -> bool {
        let mut patterns = self.send_env.iter().map(|setting| setting.value.as_bytes());
        patterns.any(|pattern| pattern::matches(pattern, variable.as_bytes()))
    }
}

/// A keyword that sshoal accepts and does nothing about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherSetting {
    /// The keyword in lowercase.
    pub keyword: &'static str,
    /// Its arguments as read.
    pub arguments: Vec<String>,
    /// The line.
    pub origin: Origin,
}
