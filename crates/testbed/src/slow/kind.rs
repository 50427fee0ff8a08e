//! What can make a login slow here, as data: a row each.

use std::fmt;

/// A part of a login, in the order in which stock ssh goes through them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// P0: work on the client's machine before the first packet.
    Local,
    /// P1: the host's name.
    Lookup,
    /// P2: TCP.
    Connect,
    /// P3: until the server's identification.
    Banner,
    /// P4: until the server's KEXINIT.
    KeyExchangeInit,
    /// P5: until the key exchange's reply.
    KeyExchange,
    /// P6: until the answer to the first request for authentication.
    FirstRequest,
    /// P7: until the answer whether a key would do.
    KeyProbe,
    /// P8: from the signed request to USERAUTH_SUCCESS.
    SignedRequest,
    /// P9: until the channel is confirmed.
    ChannelOpen,
    /// P10: from the request to the first byte of output.
    FirstOutput,
}

impl fmt::Display for Phase {
    /// `P0` to `P10`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "P{}", *self as u8)
    }
}

/// What the number of an injection counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The time of one run of what is injected, in milliseconds.
    Milliseconds,
    /// A time-out in whole seconds.
    Seconds,
    /// Per cent of one processor.
    Percent,
    /// Anything that is counted, in the plural.
    Count(&'static str),
    /// There is nothing to choose.
    Nothing,
}

/// Whether a finding is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Makes the login slow, or fail.
    Cause,
    /// Looks like a cause and costs a login nothing: nobody may blame it.
    Decoy,
}

/// A cause or a decoy. Its row in [`TABLE`] says what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // the rows say it
pub enum Kind {
    PamAccount,
    PamSession,
    Motd,
    MotdProcesses,
    Lastlog,
    UseDns,
    UseDnsDead,
    Libwrap,
    LibwrapDead,
    NameService,
    KeysCommand,
    ManyKeys,
    Bashrc,
    Zshenv,
    LoginShell,
    ForcedCommand,
    Sshrc,
    UserRc,
    CpuQuota,
    RsaHostKey,
    KexGroup18,
    KexSntrup761,
    MaxStartups,
    CloseSession,
    InteractiveProfile,
    KnownHosts,
    FastDns,
}

/// All there is to know of a [`Kind`] without starting it.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Which.
    pub kind: Kind,
    /// Its name, as in `pam-account:200`.
    pub name: &'static str,
    /// Whether it is to be found.
    pub role: Role,
    /// What is there, in a few words.
    pub what: &'static str,
    /// What its number counts.
    pub unit: Unit,
    /// The number when none is given.
    pub usual: u64,
    /// Where a client sees the wait; nowhere for a decoy. A wait that several lookups make, one after
    /// the other, is in several.
    pub phases: &'static [Phase],
    /// What would make it well, in words. [`SlowHost::fix`](super::SlowHost::fix) has the lines.
    pub fix: &'static str,
}

use Phase::{Banner, ChannelOpen, FirstOutput, FirstRequest, KeyExchange, KeyProbe, SignedRequest};
use Role::{Cause, Decoy};
use Unit::{Count, Milliseconds, Nothing, Percent, Seconds};

/// A row, in the order of its fields.
macro_rules! rows {
    ($($kind:ident, $name:literal, $role:expr, $unit:expr, $usual:literal, $phases:expr, $what:literal, $fix:literal;)*) => {
        /// Every kind, in the order of [`Kind`].
        pub const TABLE: &[Row] = &[$(Row {
            kind: Kind::$kind, name: $name, role: $role, what: $what, unit: $unit, usual: $usual, phases: $phases, fix: $fix,
        }),*];
    };
}

rows! {
    PamAccount, "pam-account", Cause, Milliseconds, 200, &[SignedRequest],
        "pam_exec in PAM's account stack runs a program that waits",
        "/etc/pam.d/sshd: without that account line";
    PamSession, "pam-session", Cause, Milliseconds, 200, &[ChannelOpen],
        "pam_exec in PAM's session stack runs a program that waits",
        "/etc/pam.d/sshd: without that session line";
    Motd, "motd", Cause, Milliseconds, 200, &[ChannelOpen],
        "a script in /etc/update-motd.d waits, which pam_motd runs even for a plain command",
        "chmod -x the script, or `pam_motd.so noupdate` in /etc/pam.d/sshd";
    MotdProcesses, "motd-processes", Cause, Count("processes"), 60, &[ChannelOpen],
        "a script in /etc/update-motd.d starts many processes, every other without an exec",
        "chmod -x the script, or `pam_motd.so noupdate` in /etc/pam.d/sshd";
    Lastlog, "lastlog", Cause, Count("records"), 1_000_000, &[ChannelOpen],
        "pam_lastlog showfailed reads a /var/log/btmp of so many records",
        "/etc/pam.d/sshd: pam_lastlog.so without showfailed";
    UseDns, "use-dns", Cause, Milliseconds, 200, &[FirstRequest],
        "UseDNS yes, and a resolver that takes its time to know nothing",
        "sshd_config: UseDNS no";
    UseDnsDead, "use-dns-dead", Cause, Seconds, 5, &[FirstRequest],
        "UseDNS yes, and a resolver that never answers: its time-out, twice",
        "sshd_config: UseDNS no";
    Libwrap, "libwrap", Cause, Milliseconds, 200, &[Banner],
        "/etc/hosts.deny names a domain, and the resolver takes its time",
        "/etc/hosts.deny: addresses only";
    LibwrapDead, "libwrap-dead", Cause, Seconds, 5, &[Banner],
        "/etc/hosts.deny names a domain, and the resolver never answers",
        "/etc/hosts.deny: addresses only";
    NameService, "name-service", Cause, Milliseconds, 50, &[Banner, FirstRequest, SignedRequest, ChannelOpen, FirstOutput],
        "a slow name service stands before the files: so long for each lookup of a user",
        "/etc/nsswitch.conf: passwd: files first";
    KeysCommand, "keys-command", Cause, Milliseconds, 200, &[KeyProbe, SignedRequest],
        "AuthorizedKeysCommand waits, for the key's probe and for its signature",
        "sshd_config: AuthorizedKeysFile in place of AuthorizedKeysCommand";
    ManyKeys, "many-keys", Cause, Count("lines"), 100_000, &[KeyProbe, SignedRequest],
        "authorized_keys has so many lines before the right one",
        "~/.ssh/authorized_keys: only the keys that are used";
    Bashrc, "bashrc", Cause, Milliseconds, 200, &[FirstOutput],
        "~/.bashrc waits, which Debian's bash reads for each command over SSH",
        "~/.bashrc: return at the top unless the shell is interactive";
    Zshenv, "zshenv", Cause, Milliseconds, 200, &[FirstOutput],
        "~/.zshenv waits, which zsh always reads",
        "~/.zshenv: return at the top unless the shell is interactive";
    LoginShell, "login-shell", Cause, Milliseconds, 200, &[FirstOutput],
        "the account's shell is a script that waits before the real one",
        "/etc/passwd: the real shell (chsh)";
    ForcedCommand, "forced-command", Cause, Milliseconds, 200, &[FirstOutput],
        "ForceCommand is a script that waits before the command",
        "sshd_config: without ForceCommand";
    Sshrc, "sshrc", Cause, Milliseconds, 200, &[FirstOutput],
        "/etc/ssh/sshrc waits",
        "without /etc/ssh/sshrc";
    UserRc, "user-rc", Cause, Milliseconds, 200, &[FirstOutput],
        "~/.ssh/rc waits",
        "sshd_config: PermitUserRC no";
    CpuQuota, "cpu-quota", Cause, Percent, 5, &[Banner, Phase::KeyExchangeInit, KeyExchange, FirstRequest, KeyProbe, SignedRequest, ChannelOpen, FirstOutput],
        "the server's control group may use so much of one processor",
        "the control group's cpu.max, or cpu.cfs_quota_us: no limit";
    RsaHostKey, "rsa-host-key", Cause, Nothing, 0, &[KeyExchange],
        "the only host key is RSA with 8192 bits",
        "sshd_config: an ed25519 HostKey first";
    KexGroup18, "kex-group18", Cause, Nothing, 0, &[KeyExchange],
        "only diffie-hellman-group18-sha512 is left as key exchange",
        "sshd_config: without KexAlgorithms";
    KexSntrup761, "kex-sntrup761", Cause, Nothing, 0, &[KeyExchange],
        "only sntrup761x25519 is left as key exchange, which older clients compute slowly",
        "a newer OpenSSH at both ends (mlkem768x25519), and nothing weaker: nothing to change here";
    MaxStartups, "max-startups", Cause, Count("connections"), 10, &[Banner],
        "so many connections that never log in hold all of MaxStartups: others are refused",
        "sshd_config: MaxStartups 100:30:500";
    CloseSession, "close-session", Decoy, Milliseconds, 700, &[],
        "pam_exec waits when a session is closed, when the client has gone",
        "nothing: the client does not wait for it";
    InteractiveProfile, "interactive-profile", Decoy, Milliseconds, 700, &[],
        "~/.profile and the guarded part of ~/.bashrc wait, for interactive shells only",
        "nothing: no command runs them";
    KnownHosts, "known-hosts", Decoy, Count("lines"), 1_000, &[],
        "the client's known_hosts has so many lines of other hosts",
        "nothing: that is read in a millisecond";
    FastDns, "fast-dns", Decoy, Nothing, 0, &[],
        "UseDNS yes, and a resolver that answers at once",
        "nothing: the lookup takes no time";
}

impl Kind {
    /// What is known of it.
    pub fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// Whether what it injects is queries to the host's name server.
    pub(super) fn asks_name_server(self) -> bool {
        matches!(
            self,
            Kind::UseDns | Kind::UseDnsDead | Kind::Libwrap | Kind::LibwrapDead | Kind::FastDns
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_row_for_each_kind_in_their_order_and_names_are_unique() {
        for (index, row) in TABLE.iter().enumerate() {
            assert_eq!(row.kind as usize, index, "{}", row.name);
            assert_eq!(row.kind.row().name, row.name);
            let others = TABLE.iter().filter(|other| other.name == row.name);
            assert_eq!(others.count(), 1, "{}", row.name);
        }
        assert_eq!(TABLE.len(), Kind::FastDns as usize + 1);
    }

    #[test]
    fn causes_have_phases_and_decoys_have_none() {
        for row in TABLE {
            assert_eq!(row.phases.is_empty(), row.role == Decoy, "{}", row.name);
        }
        assert_eq!(FirstOutput.to_string(), "P10");
    }
}
