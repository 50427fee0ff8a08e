//! Settings that are one of a few words (`multistate_*`, readconf.c).

/// A setting that is one of a few words.
pub(crate) trait Word: Copy + 'static {
    /// The words in lowercase, several may mean the same.
    const WORDS: &'static [(&'static str, Self)];

    /// The word that `ssh -G` says it with.
    fn name(self) -> &'static str;

    /// What a word means.
    fn of_word(word: &str) -> Option<Self> {
        Self::WORDS
            .iter()
            .find(|row| row.0 == word)
            .map(|row| row.1)
    }
}

/// Whether a lowercase word is one of `T`'s.
pub(crate) fn is_word<T: Word>(word: &str) -> bool {
    T::of_word(word).is_some()
}

impl Word for bool {
    const WORDS: &'static [(&'static str, bool)] = &[
        ("yes", true),
        ("true", true),
        ("no", false),
        ("false", false),
    ];

    fn name(self) -> &'static str {
        if self { "yes" } else { "no" }
    }
}

/// A type of a few words: each variant with the word of `ssh -G` and those of configurations.
macro_rules! words {
    ($(#[$doc:meta])* $type:ident {
        $($(#[$variant_doc:meta])* $variant:ident $name:literal: $($word:literal)|+;)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $type { $($(#[$variant_doc])* $variant),* }

        impl $crate::value::words::Word for $type {
            const WORDS: &'static [(&'static str, Self)] = &[$($(($word, $type::$variant)),+),*];

            fn name(self) -> &'static str {
                match self { $($type::$variant => $name),* }
            }
        }
    };
}
pub(crate) use words;

words! {
    /// `StrictHostKeyChecking`
    StrictHostKeyChecking {
        /// Never connect to a host whose key is not known or has changed.
        Yes "true": "yes" | "true";
        /// Ask about unknown hosts.
        Ask "ask": "ask";
        /// Accept and remember unknown hosts, refuse changed keys.
        AcceptNew "accept-new": "accept-new";
        /// Accept all; with a changed key without passwords and agent forwarding.
        No "false": "no" | "off" | "false";
    }
}

words! {
    /// `UpdateHostKeys`, `VerifyHostKeyDNS`
    YesNoAsk {
        /// Without asking.
        Yes "true": "yes" | "true";
        /// Not at all.
        No "false": "no" | "false";
        /// Once the user agrees.
        Ask "ask": "ask";
    }
}

words! {
    /// `AddressFamily`
    #[derive(Hash)]
    AddressFamily {
        /// IPv4 and IPv6.
        Any "any": "any";
        /// IPv4 only.
        Inet "inet": "inet";
        /// IPv6 only.
        Inet6 "inet6": "inet6";
    }
}

words! {
    /// `CanonicalizeHostname`
    CanonicalizeHostname {
        /// Names are used as they are.
        No "false": "no" | "false";
        /// Names are completed unless a proxy is to interpret them.
        Yes "true": "yes" | "true";
        /// Names are completed for proxies, too.
        Always "always": "always";
    }
}

words! {
    /// `RequestTTY`
    RequestTty {
        /// Never a terminal.
        No "false": "no" | "false";
        /// A terminal if standard input is one.
        Yes "true": "yes" | "true";
        /// A terminal always.
        Force "force": "force";
        /// A terminal for login sessions only.
        Auto "auto": "auto";
    }
}

words! {
    /// `SessionType`
    SessionType {
        /// A shell or a command.
        Default "default": "default";
        /// A subsystem, whose name is given in place of a command.
        Subsystem "subsystem": "subsystem";
        /// No session.
        None "none": "none";
    }
}

words! {
    /// `PubkeyAuthentication`
    PubkeyAuthentication {
        /// Not tried.
        No "false": "no" | "false";
        /// Tried, in the host-bound form where the server can.
        Yes "true": "yes" | "true";
        /// Tried in the plain form only (PROTOCOL section 3.1 turned off).
        Unbound "unbound": "unbound";
        /// Tried in the host-bound form.
        HostBound "host-bound": "host-bound";
    }
}

words! {
    /// `LogLevel`
    LogLevel {
        /// Nothing.
        Quiet "QUIET": "quiet" | "silent";
        /// Errors that end the program.
        Fatal "FATAL": "fatal";
        /// Errors.
        Error "ERROR": "error";
        /// The default.
        Info "INFO": "info";
        /// More.
        Verbose "VERBOSE": "verbose";
        /// As `-v`.
        Debug1 "DEBUG": "debug" | "debug1";
        /// As `-vv`.
        Debug2 "DEBUG2": "debug2";
        /// As `-vvv`.
        Debug3 "DEBUG3": "debug3";
    }
}

/// The words of a keyword without a type: as a line may have them in lowercase, and as `ssh -G`
/// says them.
pub(crate) type Words = &'static [(&'static str, &'static str)];

pub(crate) const FLAG: Words = &[
    ("yes", "yes"),
    ("true", "yes"),
    ("no", "no"),
    ("false", "no"),
];

pub(crate) const CONTROL_MASTER: Words = &[
    ("true", "true"),
    ("yes", "true"),
    ("false", "false"),
    ("no", "false"),
    ("auto", "auto"),
    ("ask", "ask"),
    ("autoask", "autoask"),
];

pub(crate) const TUNNEL: Words = &[
    ("ethernet", "ethernet"),
    ("point-to-point", "point-to-point"),
    ("true", "point-to-point"),
    ("yes", "point-to-point"),
    ("false", "false"),
    ("no", "false"),
];

pub(crate) const COMPRESSION: Words = &[("yes", "yes"), ("no", "no")];

pub(crate) const WARN_WEAK_CRYPTO: Words = &[
    ("true", "yes"),
    ("false", "no"),
    ("yes", "yes"),
    ("no", "no"),
    ("no-pq-kex", "no"),
];

pub(crate) const FINGERPRINT_HASH: Words = &[
    ("md5", "MD5"),
    ("sha1", "SHA1"),
    ("sha256", "SHA256"),
    ("sha384", "SHA384"),
    ("sha512", "SHA512"),
];

pub(crate) const SYSLOG_FACILITY: Words = &[
    ("daemon", "DAEMON"),
    ("user", "USER"),
    ("auth", "AUTH"),
    ("authpriv", "AUTHPRIV"),
    ("local0", "LOCAL0"),
    ("local1", "LOCAL1"),
    ("local2", "LOCAL2"),
    ("local3", "LOCAL3"),
    ("local4", "LOCAL4"),
    ("local5", "LOCAL5"),
    ("local6", "LOCAL6"),
    ("local7", "LOCAL7"),
];
