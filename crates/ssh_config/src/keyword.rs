//! Every keyword that ssh 9.2 to 10 knows, in one table (`keywords`, readconf.c).

use crate::algorithms::names::Family;
use crate::forward::Direction;
use crate::value::Choice;
use crate::value::forms::{self, Form};
use crate::value::lists::{self, Items};
use crate::value::words::{
    AddressFamily, COMPRESSION, CONTROL_MASTER, CanonicalizeHostname, FINGERPRINT_HASH, FLAG,
    LogLevel, PubkeyAuthentication, RequestTty, SYSLOG_FACILITY, SessionType,
    StrictHostKeyChecking, TUNNEL, WARN_WEAK_CRYPTO, Words, YesNoAsk, is_word,
};

/// What a keyword's arguments look like.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Read and without effect: "oIgnore" and "oDeprecated".
    Deprecated,
    /// Read and without effect but a warning: "oUnsupported".
    Unsupported,
    /// Opens a block for hosts.
    Host,
    /// Opens a block under conditions.
    Match,
    /// Reads other files.
    Include,
    /// One of the words of a type.
    Choice(Choice),
    /// One of these words.
    OneOf(Words),
    /// A whole number.
    Integer,
    /// `convtime` (misc.c), or `none`.
    Time,
    /// One argument.
    Text,
    /// One argument, a path with tokens and variables.
    Path,
    /// The rest of the line, as it stands.
    Command,
    /// `VersionAddendum`: the rest of the line without comments.
    Addendum,
    /// A port's number.
    Port,
    /// A form of its own.
    Form(Form),
    /// Several words of a form of their own.
    List(Items),
    /// `AlgorithmSpec`.
    Algorithms(Family),
    /// `RekeyLimit`.
    RekeyLimit,
    /// `ProxyJump`.
    ProxyJump,
    /// `SetEnv`.
    SetEnv,
    /// `IdentityAgent`.
    AgentPath,
    /// `ForwardAgent`.
    ForwardAgent,
    /// `AddKeysToAgent`.
    AddKeysToAgent,
    /// A forward.
    Forward(Direction),
}

/// A keyword's row of the table.
pub(crate) struct Row {
    /// The keyword in lowercase.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Whether the settings have a field for it; the others are recorded by name.
    pub(crate) has_field: bool,
}

macro_rules! keywords {
    ($($variant:ident $name:literal $kind:expr, $has_field:literal;)*) => {
        /// A keyword; its number is that of its row.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Keyword { $($variant),* }

        const KEYWORDS: &[Keyword] = &[$(Keyword::$variant),*];

        const ROWS: &[Row] = &[$(Row { name: $name, kind: $kind, has_field: $has_field }),*];
    };
}

keywords! {
    Host "host" Kind::Host, true;
    Match "match" Kind::Match, true;
    Include "include" Kind::Include, true;

    HostName "hostname" Kind::Text, true;
    User "user" Kind::Text, true;
    Port "port" Kind::Port, true;
    AddressFamily "addressfamily" Kind::Choice(is_word::<AddressFamily>), true;
    BindAddress "bindaddress" Kind::Text, true;
    ProxyJump "proxyjump" Kind::ProxyJump, true;
    ProxyCommand "proxycommand" Kind::Command, true;
    ConnectTimeout "connecttimeout" Kind::Time, true;
    ConnectionAttempts "connectionattempts" Kind::Integer, true;
    ServerAliveInterval "serveraliveinterval" Kind::Time, true;
    ServerAliveCountMax "serveralivecountmax" Kind::Integer, true;
    TcpKeepAlive "tcpkeepalive" Kind::Choice(is_word::<bool>), true;
    Compression "compression" Kind::OneOf(COMPRESSION), true;

    UserKnownHostsFile "userknownhostsfile" Kind::List(lists::files), true;
    GlobalKnownHostsFile "globalknownhostsfile" Kind::List(lists::files), true;
    StrictHostKeyChecking "stricthostkeychecking" Kind::Choice(is_word::<StrictHostKeyChecking>), true;
    HostKeyAlias "hostkeyalias" Kind::Text, true;
    CheckHostIp "checkhostip" Kind::Choice(is_word::<bool>), true;
    RequiredRsaSize "requiredrsasize" Kind::Integer, true;

    IdentityFile "identityfile" Kind::Text, true;
    CertificateFile "certificatefile" Kind::Text, true;
    IdentitiesOnly "identitiesonly" Kind::Choice(is_word::<bool>), true;
    IdentityAgent "identityagent" Kind::AgentPath, true;
    PreferredAuthentications "preferredauthentications" Kind::Text, true;
    PubkeyAuthentication "pubkeyauthentication" Kind::Choice(is_word::<PubkeyAuthentication>), true;
    PasswordAuthentication "passwordauthentication" Kind::Choice(is_word::<bool>), true;
    KbdInteractiveAuthentication "kbdinteractiveauthentication" Kind::Choice(is_word::<bool>), true;
    NumberOfPasswordPrompts "numberofpasswordprompts" Kind::Integer, true;
    BatchMode "batchmode" Kind::Choice(is_word::<bool>), true;

    KexAlgorithms "kexalgorithms" Kind::Algorithms(Family::Kex), true;
    Ciphers "ciphers" Kind::Algorithms(Family::Cipher), true;
    Macs "macs" Kind::Algorithms(Family::Mac), true;
    HostKeyAlgorithms "hostkeyalgorithms" Kind::Algorithms(Family::Key), true;
    PubkeyAcceptedAlgorithms "pubkeyacceptedalgorithms" Kind::Algorithms(Family::Key), true;
    CaSignatureAlgorithms "casignaturealgorithms" Kind::Algorithms(Family::PlainKey), true;
    RekeyLimit "rekeylimit" Kind::RekeyLimit, true;

    SendEnv "sendenv" Kind::List(lists::send_env), true;
    SetEnv "setenv" Kind::SetEnv, true;
    RequestTty "requesttty" Kind::Choice(is_word::<RequestTty>), true;
    RemoteCommand "remotecommand" Kind::Command, true;
    ForwardAgent "forwardagent" Kind::ForwardAgent, true;
    LogLevel "loglevel" Kind::Choice(is_word::<LogLevel>), true;
    IgnoreUnknown "ignoreunknown" Kind::Text, true;
    Tag "tag" Kind::Text, true;
    RefuseConnection "refuseconnection" Kind::Text, true;

    AddKeysToAgent "addkeystoagent" Kind::AddKeysToAgent, true;
    BindInterface "bindinterface" Kind::Text, true;
    CanonicalDomains "canonicaldomains" Kind::List(lists::canonical_domains), false;
    CanonicalizeFallbackLocal "canonicalizefallbacklocal" Kind::OneOf(FLAG), false;
    CanonicalizeHostname "canonicalizehostname" Kind::Choice(is_word::<CanonicalizeHostname>), true;
    CanonicalizeMaxDots "canonicalizemaxdots" Kind::Integer, false;
    CanonicalizePermittedCnames "canonicalizepermittedcnames" Kind::List(lists::permitted_cnames), false;
    ChannelTimeout "channeltimeout" Kind::List(lists::channel_timeouts), false;
    ClearAllForwardings "clearallforwardings" Kind::OneOf(FLAG), false;
    ControlMaster "controlmaster" Kind::OneOf(CONTROL_MASTER), false;
    ControlPath "controlpath" Kind::Path, false;
    ControlPersist "controlpersist" Kind::Form(forms::control_persist), false;
    DynamicForward "dynamicforward" Kind::Forward(Direction::Dynamic), false;
    EnableEscapeCommandline "enableescapecommandline" Kind::OneOf(FLAG), false;
    EnableSshKeysign "enablesshkeysign" Kind::OneOf(FLAG), false;
    EscapeChar "escapechar" Kind::Form(forms::escape_char), false;
    ExitOnForwardFailure "exitonforwardfailure" Kind::OneOf(FLAG), false;
    FingerprintHash "fingerprinthash" Kind::OneOf(FINGERPRINT_HASH), false;
    ForkAfterAuthentication "forkafterauthentication" Kind::OneOf(FLAG), false;
    ForwardX11 "forwardx11" Kind::OneOf(FLAG), false;
    ForwardX11Timeout "forwardx11timeout" Kind::Time, false;
    ForwardX11Trusted "forwardx11trusted" Kind::OneOf(FLAG), false;
    GatewayPorts "gatewayports" Kind::OneOf(FLAG), false;
    GssapiAuthentication "gssapiauthentication" Kind::Choice(is_word::<bool>), true;
    GssapiDelegateCredentials "gssapidelegatecredentials" Kind::OneOf(FLAG), false;
    // Debian, Fedora and others patch key exchange by GSSAPI in.
    GssapiClientIdentity "gssapiclientidentity" Kind::Text, false;
    GssapiKeyExchange "gssapikeyexchange" Kind::OneOf(FLAG), false;
    GssapiKexAlgorithms "gssapikexalgorithms" Kind::Algorithms(Family::GssKex), false;
    GssapiRenewalForcesRekey "gssapirenewalforcesrekey" Kind::OneOf(FLAG), false;
    GssapiServerIdentity "gssapiserveridentity" Kind::Text, false;
    GssapiTrustDns "gssapitrustdns" Kind::OneOf(FLAG), false;
    HashKnownHosts "hashknownhosts" Kind::Choice(is_word::<bool>), true;
    HostbasedAcceptedAlgorithms "hostbasedacceptedalgorithms" Kind::Algorithms(Family::Key), true;
    HostbasedAuthentication "hostbasedauthentication" Kind::Choice(is_word::<bool>), true;
    IpQos "ipqos" Kind::Form(forms::ip_qos), false;
    KbdInteractiveDevices "kbdinteractivedevices" Kind::Text, false;
    KnownHostsCommand "knownhostscommand" Kind::Command, true;
    LocalCommand "localcommand" Kind::Command, false;
    LocalForward "localforward" Kind::Forward(Direction::Local), false;
    LogVerbose "logverbose" Kind::List(lists::log_verbose), false;
    NoHostAuthenticationForLocalhost "nohostauthenticationforlocalhost" Kind::Choice(is_word::<bool>), true;
    ObscureKeystrokeTiming "obscurekeystroketiming" Kind::Form(forms::obscure_keystroke_timing), false;
    PermitLocalCommand "permitlocalcommand" Kind::OneOf(FLAG), false;
    PermitRemoteOpen "permitremoteopen" Kind::List(lists::permit_remote_open), false;
    Pkcs11Provider "pkcs11provider" Kind::Text, true;
    ProxyUseFdpass "proxyusefdpass" Kind::Choice(is_word::<bool>), true;
    RemoteForward "remoteforward" Kind::Forward(Direction::Remote), false;
    RevokedHostKeys "revokedhostkeys" Kind::List(lists::some_files), true;
    SecurityKeyProvider "securitykeyprovider" Kind::Text, false;
    SessionType "sessiontype" Kind::Choice(is_word::<SessionType>), true;
    StdinNull "stdinnull" Kind::OneOf(FLAG), false;
    StreamLocalBindMask "streamlocalbindmask" Kind::Form(forms::stream_local_bind_mask), false;
    StreamLocalBindUnlink "streamlocalbindunlink" Kind::OneOf(FLAG), false;
    SyslogFacility "syslogfacility" Kind::OneOf(SYSLOG_FACILITY), false;
    Tunnel "tunnel" Kind::OneOf(TUNNEL), false;
    TunnelDevice "tunneldevice" Kind::Form(forms::tunnel_device), false;
    UpdateHostKeys "updatehostkeys" Kind::Choice(is_word::<YesNoAsk>), true;
    VerifyHostKeyDns "verifyhostkeydns" Kind::Choice(is_word::<YesNoAsk>), true;
    VersionAddendum "versionaddendum" Kind::Addendum, false;
    VisualHostKey "visualhostkey" Kind::OneOf(FLAG), false;
    WarnWeakCrypto "warnweakcrypto" Kind::OneOf(WARN_WEAK_CRYPTO), false;
    XauthLocation "xauthlocation" Kind::Text, false;

    // "oIgnore" and "oDeprecated"; "oUnsupported".
    Deprecated "protocol" Kind::Deprecated, false;
    Unsupported "afstokenpassing" Kind::Unsupported, false;
}

/// Other spellings, and what ssh reads for the sake of old files only.
const ALIASES: &[(&str, Keyword)] = &[
    (
        "challengeresponseauthentication",
        Keyword::KbdInteractiveAuthentication,
    ),
    ("skeyauthentication", Keyword::KbdInteractiveAuthentication),
    ("tisauthentication", Keyword::KbdInteractiveAuthentication),
    ("dsaauthentication", Keyword::PubkeyAuthentication),
    ("identityfile2", Keyword::IdentityFile),
    ("keepalive", Keyword::TcpKeepAlive),
    ("hostbasedkeytypes", Keyword::HostbasedAcceptedAlgorithms),
    ("pubkeyacceptedkeytypes", Keyword::PubkeyAcceptedAlgorithms),
    ("smartcarddevice", Keyword::Pkcs11Provider),
    ("cipher", Keyword::Deprecated),
    ("fallbacktorsh", Keyword::Deprecated),
    ("globalknownhostsfile2", Keyword::Deprecated),
    ("rhostsauthentication", Keyword::Deprecated),
    ("userknownhostsfile2", Keyword::Deprecated),
    ("useroaming", Keyword::Deprecated),
    ("usersh", Keyword::Deprecated),
    ("useprivilegedport", Keyword::Deprecated),
    ("kerberosauthentication", Keyword::Unsupported),
    ("kerberostgtpassing", Keyword::Unsupported),
    ("rsaauthentication", Keyword::Unsupported),
    ("rhostsrsaauthentication", Keyword::Unsupported),
    ("compressionlevel", Keyword::Unsupported),
];

/// All keywords in lowercase, each once; of those without any effect in today's ssh one stands for all.
pub fn keywords() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.name)
}

impl Keyword {
    /// How many keywords there are.
    pub(crate) const COUNT: usize = ROWS.len();

    /// The keyword of this lowercase name.
    pub(crate) fn by_name(name: &str) -> Option<Keyword> {
        let own = ROWS
            .iter()
            .position(|row| row.name == name)
            .map(|at| KEYWORDS[at]);
        own.or_else(|| {
            ALIASES
                .iter()
                .find(|alias| alias.0 == name)
                .map(|alias| alias.1)
        })
    }

    pub(crate) fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Whether the first pass over the lines settles the keyword, set or not
    /// (`fill_default_options_for_canonicalization`, readconf.c).
    pub(crate) fn is_settled_by_first_pass(self) -> bool {
        matches!(
            self,
            Keyword::CanonicalizeFallbackLocal
                | Keyword::CanonicalizeHostname
                | Keyword::CanonicalizeMaxDots
        )
    }

    /// Whether every line with the keyword counts, not only the first.
    pub(crate) fn accumulates(self) -> bool {
        matches!(
            self,
            Keyword::IdentityFile
                | Keyword::CertificateFile
                | Keyword::SendEnv
                | Keyword::LocalForward
                | Keyword::RemoteForward
                | Keyword::DynamicForward
        )
    }
}
