//! What a client may receive when.

use crate::messages::ROWS;

/// How far the connection is, as it concerns what the *server* may send.
///
/// A key exchange begins here with the server's KEXINIT and not with ours: what the server sent before it saw
/// our KEXINIT is still on its way (RFC 4253, section 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The server's identification string has not been read; no packet can come before it.
    Version,
    /// The server's first KEXINIT is awaited.
    Opening,
    /// The server's KEXINIT was read, its NEWKEYS not yet.
    KeyExchange {
        /// The connection's first key exchange, not a rekeying.
        initial: bool,
        /// Both sides offered strict key exchange (OpenSSH's PROTOCOL, 1.9 "transport: strict key exchange extension").
        strict: bool,
    },
    /// Keys are in use; SERVICE_ACCEPT is awaited.
    Service,
    /// The service is accepted; authentication goes on.
    Userauth,
    /// Authenticated.
    Connection,
}

/// A set of phases, as the table of messages writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhaseSet(u8);

impl PhaseSet {
    /// Nowhere: a message that only clients send.
    pub const NONE: Self = Self(0);
    /// [`Phase::Opening`].
    pub const OPENING: Self = Self(1);
    /// A key exchange in which nothing but its own messages may come: the initial one, if strict.
    pub const STRICT_KEX: Self = Self(1 << 1);
    /// Any other key exchange.
    pub const LAX_KEX: Self = Self(1 << 2);
    /// [`Phase::Service`].
    pub const SERVICE: Self = Self(1 << 3);
    /// [`Phase::Userauth`].
    pub const USERAUTH: Self = Self(1 << 4);
    /// [`Phase::Connection`].
    pub const CONNECTION: Self = Self(1 << 5);

    /// Any key exchange.
    pub const KEX: Self = Self::STRICT_KEX.union(Self::LAX_KEX);
    /// Wherever no key exchange goes on, keys being in use.
    pub const KEYED: Self = Self::SERVICE.union(Self::USERAUTH).union(Self::CONNECTION);
    /// Everywhere but in a strict key exchange.
    pub const UNSTRICT: Self = Self::OPENING.union(Self::LAX_KEX).union(Self::KEYED);
    /// Wherever there are packets at all.
    pub const ANY: Self = Self::UNSTRICT.union(Self::STRICT_KEX);

    /// Phases in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether `phase` is in the set.
    #[must_use]
    pub const fn contains(self, phase: Phase) -> bool {
        self.0 & Self::of(phase).0 != 0
    }

    const fn of(phase: Phase) -> Self {
        match phase {
            Phase::Version => Self::NONE,
            Phase::Opening => Self::OPENING,
            Phase::KeyExchange {
                initial: true,
                strict: true,
            } => Self::STRICT_KEX,
            Phase::KeyExchange { .. } => Self::LAX_KEX,
            Phase::Service => Self::SERVICE,
            Phase::Userauth => Self::USERAUTH,
            Phase::Connection => Self::CONNECTION,
        }
    }
}

/// Whether a client in `phase` may receive a message of this number. Unknown numbers are allowed nowhere.
#[must_use]
pub fn allowed(number: u8, phase: Phase) -> bool {
    RECEIVABLE[usize::from(number)].contains(phase)
}

/// For every number, the phases of all rows that share it.
static RECEIVABLE: [PhaseSet; 256] = {
    let mut phases = [PhaseSet::NONE; 256];
    let mut at = 0;
    while at < ROWS.len() {
        let number = ROWS[at].number as usize;
        phases[number] = phases[number].union(ROWS[at].phases);
        at += 1;
    }
    phases
};
