//! The settings of one host.

use std::time::Duration;

use crate::algorithms::AlgorithmSpec;
use crate::expand::Piece;
use crate::jump::Hop;
use crate::origin::{Origin, Setting};
use crate::pattern;
use crate::value::words::{
    AddressFamily, CanonicalizeHostname, LogLevel, PubkeyAuthentication, RequestTty, SessionType,
    StrictHostKeyChecking, YesNoAsk,
};
use crate::value::{AddKeysToAgent, ForwardAgent, IdentityAgent, RekeyLimit};

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
    /// `IdentityFile` and `CertificateFile` as written, for `dump`.
    pub(crate) written_identity_files: Vec<Setting<String>>,
    pub(crate) written_certificate_files: Vec<Setting<String>>,
    /// `IgnoreUnknown`, whose work is done.
    pub(crate) ignore_unknown: Option<Setting<String>>,
}

impl Resolved {
    /// A keyword without a field of its own, the first of several lines.
    pub fn other(&self, keyword: &str) -> Option<&OtherSetting> {
        self.others.iter().find(|other| other.keyword == keyword)
    }
}

/// Where and how to connect.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The name or address to connect to, in lowercase.
    pub host_name: Setting<String>,
    /// Whether the name was to be completed by `CanonicalDomains`.
    pub canonicalize_hostname: Setting<CanonicalizeHostname>,
    /// The remote user.
    pub user: Setting<String>,
    /// The port.
    pub port: Setting<u16>,
    /// Which kinds of addresses to use.
    pub address_family: Setting<AddressFamily>,
    /// The local address to connect from.
    pub bind_address: Option<Setting<String>>,
    /// The local interface to connect from.
    pub bind_interface: Option<Setting<String>>,
    /// Through what to connect.
    pub proxy: Setting<Proxy>,
    /// Whether the proxy command hands over a connected socket.
    pub proxy_use_fdpass: Setting<bool>,
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
    /// Files of revoked keys (plain lists and KRLs); empty for `none`.
    pub revoked_host_keys: Setting<Vec<String>>,
    /// A command that prints known_hosts lines, its tokens (`%H`, `%I`, `%K`, `%t`, `%f` among
    /// them) not expanded.
    pub known_hosts_command: Option<Setting<String>>,
    /// The arguments of that command, with all tokens in place but `%H`, `%I`, `%K`, `%t` and `%f`; the first one is
    /// a path, and taken as it is. An error is only one if the command is run (`load_hostkeys_command`, sshconnect.c).
    pub known_hosts_arguments: Option<Result<Vec<Vec<Piece>>, String>>,
    /// What to do about unknown and changed keys.
    pub strict_host_key_checking: Setting<StrictHostKeyChecking>,
    /// The name to look up instead of the host's own, in lowercase.
    pub host_key_alias: Option<Setting<String>>,
    /// Whether the address is looked up, too.
    pub check_host_ip: Setting<bool>,
    /// Fewest bits of an RSA key, the user's as well.
    pub required_rsa_size: Setting<u32>,
    /// Whether names are hashed when they are added.
    pub hash_known_hosts: Setting<bool>,
    /// Whether further keys that an accepted host shows are added.
    pub update_host_keys: Setting<YesNoAsk>,
    /// Whether keys are looked up in the DNS (SSHFP).
    pub verify_host_key_dns: Setting<YesNoAsk>,
    /// Whether the keys of this machine's own addresses are not checked.
    pub no_host_authentication_for_localhost: Setting<bool>,
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
    /// What to do with a key from a file once it was used.
    pub add_keys_to_agent: Setting<AddKeysToAgent>,
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
    /// Whether GSSAPI is tried.
    pub gssapi_authentication: Setting<bool>,
    /// Whether host-based authentication is tried.
    pub hostbased_authentication: Setting<bool>,
    /// The PKCS#11 library to take keys from.
    pub pkcs11_provider: Option<Setting<String>>,
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
    /// `HostbasedAcceptedAlgorithms`
    pub hostbased_accepted: Option<Setting<AlgorithmSpec>>,
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
    /// What kind of session.
    pub session_type: Setting<SessionType>,
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
    /// Its arguments as `ssh -G` prints them.
    pub arguments: Vec<String>,
    /// The line.
    pub origin: Origin,
}
