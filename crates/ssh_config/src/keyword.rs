//! Every keyword that ssh 9.2 to 10 knows, in one table (`keywords`, readconf.c).

use crate::value::{
    AddressFamily, Choice, LogLevel, PubkeyAuthentication, RequestTty, StrictHostKeyChecking,
    is_word,
};

/// What a keyword's arguments look like.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Read and without effect, as ssh has it: deprecated, unsupported, long gone.
    Ignored,
    /// Opens a block for hosts.
    Host,
    /// Opens a block under conditions.
    Match,
    /// Reads other files.
    Include,
    /// One of the words of a type.
    Choice(Choice),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A whole number.
    Integer,
    /// `convtime` (misc.c), or `none`.
    Time,
    /// One argument.
    Text,
    /// The rest of the line, as it stands.
    Command,
    /// A port's number.
    Port,
    /// Arguments, of which `none` must stand alone.
    List,
    /// Arguments of a form that is not looked into.
    Words,
    /// `AlgorithmSpec`.
    Algorithms,
    /// `RekeyLimit`.
    RekeyLimit,
    /// `ProxyJump`.
    ProxyJump,
    /// `SendEnv`.
    SendEnv,
    /// `SetEnv`.
    SetEnv,
    /// `IdentityAgent`.
    AgentPath,
    /// `ForwardAgent`.
    ForwardAgent,
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
    Compression "compression" Kind::OneOf(&["yes", "no"]), true;

    UserKnownHostsFile "userknownhostsfile" Kind::List, true;
    GlobalKnownHostsFile "globalknownhostsfile" Kind::List, true;
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

    KexAlgorithms "kexalgorithms" Kind::Algorithms, true;
    Ciphers "ciphers" Kind::Algorithms, true;
    Macs "macs" Kind::Algorithms, true;
    HostKeyAlgorithms "hostkeyalgorithms" Kind::Algorithms, true;
    PubkeyAcceptedAlgorithms "pubkeyacceptedalgorithms" Kind::Algorithms, true;
    CaSignatureAlgorithms "casignaturealgorithms" Kind::Algorithms, true;
    RekeyLimit "rekeylimit" Kind::RekeyLimit, true;

    SendEnv "sendenv" Kind::SendEnv, true;
    SetEnv "setenv" Kind::SetEnv, true;
    RequestTty "requesttty" Kind::Choice(is_word::<RequestTty>), true;
    RemoteCommand "remotecommand" Kind::Command, true;
    ForwardAgent "forwardagent" Kind::ForwardAgent, true;
    LogLevel "loglevel" Kind::Choice(is_word::<LogLevel>), true;
    IgnoreUnknown "ignoreunknown" Kind::Text, true;
    Tag "tag" Kind::Text, true;
    RefuseConnection "refuseconnection" Kind::Text, true;

    AddKeysToAgent "addkeystoagent" Kind::Words, false;
    BindInterface "bindinterface" Kind::Text, false;
    CanonicalDomains "canonicaldomains" Kind::List, false;
    CanonicalizeFallbackLocal "canonicalizefallbacklocal" Kind::Choice(is_word::<bool>), false;
    CanonicalizeHostname "canonicalizehostname" Kind::OneOf(&["yes", "true", "no", "false", "always"]), false;
    CanonicalizeMaxDots "canonicalizemaxdots" Kind::Integer, false;
    CanonicalizePermittedCnames "canonicalizepermittedcnames" Kind::List, false;
    ChannelTimeout "channeltimeout" Kind::List, false;
    ClearAllForwardings "clearallforwardings" Kind::Choice(is_word::<bool>), false;
    ControlMaster "controlmaster" Kind::OneOf(&["yes", "true", "no", "false", "auto", "ask", "autoask"]), false;
    ControlPath "controlpath" Kind::Text, false;
    ControlPersist "controlpersist" Kind::Text, false;
    DynamicForward "dynamicforward" Kind::Words, false;
    EnableEscapeCommandline "enableescapecommandline" Kind::Choice(is_word::<bool>), false;
    EnableSshKeysign "enablesshkeysign" Kind::Choice(is_word::<bool>), false;
    EscapeChar "escapechar" Kind::Text, false;
    ExitOnForwardFailure "exitonforwardfailure" Kind::Choice(is_word::<bool>), false;
    FingerprintHash "fingerprinthash" Kind::OneOf(&["md5", "sha1", "sha256", "sha384", "sha512"]), false;
    ForkAfterAuthentication "forkafterauthentication" Kind::Choice(is_word::<bool>), false;
    ForwardX11 "forwardx11" Kind::Choice(is_word::<bool>), false;
    ForwardX11Timeout "forwardx11timeout" Kind::Time, false;
    ForwardX11Trusted "forwardx11trusted" Kind::Choice(is_word::<bool>), false;
    GatewayPorts "gatewayports" Kind::Choice(is_word::<bool>), false;
    GssapiAuthentication "gssapiauthentication" Kind::Choice(is_word::<bool>), false;
    GssapiDelegateCredentials "gssapidelegatecredentials" Kind::Choice(is_word::<bool>), false;
    // Debian, Fedora and others patch key exchange by GSSAPI in.
    GssapiClientIdentity "gssapiclientidentity" Kind::Text, false;
    GssapiKeyExchange "gssapikeyexchange" Kind::Choice(is_word::<bool>), false;
    GssapiKexAlgorithms "gssapikexalgorithms" Kind::Text, false;
    GssapiRenewalForcesRekey "gssapirenewalforcesrekey" Kind::Choice(is_word::<bool>), false;
    GssapiServerIdentity "gssapiserveridentity" Kind::Text, false;
    GssapiTrustDns "gssapitrustdns" Kind::Choice(is_word::<bool>), false;
    HashKnownHosts "hashknownhosts" Kind::Choice(is_word::<bool>), false;
    HostbasedAcceptedAlgorithms "hostbasedacceptedalgorithms" Kind::Algorithms, false;
    HostbasedAuthentication "hostbasedauthentication" Kind::Choice(is_word::<bool>), false;
    IpQos "ipqos" Kind::Words, false;
    KbdInteractiveDevices "kbdinteractivedevices" Kind::Text, false;
    KnownHostsCommand "knownhostscommand" Kind::Command, false;
    LocalCommand "localcommand" Kind::Command, false;
    LocalForward "localforward" Kind::Words, false;
    LogVerbose "logverbose" Kind::List, false;
    NoHostAuthenticationForLocalhost "nohostauthenticationforlocalhost" Kind::Choice(is_word::<bool>), false;
    ObscureKeystrokeTiming "obscurekeystroketiming" Kind::Words, false;
    PermitLocalCommand "permitlocalcommand" Kind::Choice(is_word::<bool>), false;
    PermitRemoteOpen "permitremoteopen" Kind::Words, false;
    Pkcs11Provider "pkcs11provider" Kind::Text, false;
    ProxyUseFdpass "proxyusefdpass" Kind::Choice(is_word::<bool>), false;
    RemoteForward "remoteforward" Kind::Words, false;
    RevokedHostKeys "revokedhostkeys" Kind::List, false;
    SecurityKeyProvider "securitykeyprovider" Kind::Text, false;
    SessionType "sessiontype" Kind::OneOf(&["none", "subsystem", "default"]), false;
    StdinNull "stdinnull" Kind::Choice(is_word::<bool>), false;
    StreamLocalBindMask "streamlocalbindmask" Kind::Text, false;
    StreamLocalBindUnlink "streamlocalbindunlink" Kind::Choice(is_word::<bool>), false;
    SyslogFacility "syslogfacility" Kind::Text, false;
    Tunnel "tunnel" Kind::OneOf(&["ethernet", "point-to-point", "yes", "true", "no", "false"]), false;
    TunnelDevice "tunneldevice" Kind::Text, false;
    UpdateHostKeys "updatehostkeys" Kind::OneOf(&["yes", "true", "no", "false", "ask"]), false;
    VerifyHostKeyDns "verifyhostkeydns" Kind::OneOf(&["yes", "true", "no", "false", "ask"]), false;
    VersionAddendum "versionaddendum" Kind::Command, false;
    VisualHostKey "visualhostkey" Kind::Choice(is_word::<bool>), false;
    WarnWeakCrypto "warnweakcrypto" Kind::OneOf(&["yes", "true", "no", "false", "no-pq-kex"]), false;
    XauthLocation "xauthlocation" Kind::Text, false;

    // "oIgnore", "oDeprecated" and "oUnsupported".
    Gone "protocol" Kind::Ignored, false;
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
    ("cipher", Keyword::Gone),
    ("fallbacktorsh", Keyword::Gone),
    ("globalknownhostsfile2", Keyword::Gone),
    ("rhostsauthentication", Keyword::Gone),
    ("userknownhostsfile2", Keyword::Gone),
    ("useroaming", Keyword::Gone),
    ("usersh", Keyword::Gone),
    ("useprivilegedport", Keyword::Gone),
    ("afstokenpassing", Keyword::Gone),
    ("kerberosauthentication", Keyword::Gone),
    ("kerberostgtpassing", Keyword::Gone),
    ("rsaauthentication", Keyword::Gone),
    ("rhostsrsaauthentication", Keyword::Gone),
    ("compressionlevel", Keyword::Gone),
];

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
