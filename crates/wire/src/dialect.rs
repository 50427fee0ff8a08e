//! Which meaning the method-specific message numbers have just now (RFC 4250, section 4.1.2).

/// Numbers 30 to 49 belong to the key exchange method, 60 to 79 to the authentication method: what they mean is
/// known from what was negotiated, never from the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dialect {
    /// The key exchange method's meaning of 30 to 34.
    pub kex: KexDialect,
    /// The authentication method's meaning of 60 and 61.
    pub userauth: UserauthDialect,
}

impl Dialect {
    /// The default, for constants.
    pub(crate) const USUAL: Self = Self {
        kex: KexDialect::Ecdh,
        userauth: UserauthDialect::PublicKey,
    };
}

/// The family of the negotiated key exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KexDialect {
    /// One string each way: X25519, ECDH on NIST curves, and the hybrids with ML-KEM and Streamlined NTRU Prime
    /// (RFC 5656, section 4; RFC 8731).
    #[default]
    Ecdh,
    /// One mpint each way: Diffie-Hellman in a named group (RFC 4253, section 8).
    Dh,
    /// The server chooses the group (RFC 4419).
    GroupExchange,
}

/// The method of the authentication request that awaits its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UserauthDialect {
    /// 60 is `USERAUTH_PK_OK` (RFC 4252, section 7).
    #[default]
    PublicKey,
    /// 60 is `USERAUTH_PASSWD_CHANGEREQ` (RFC 4252, section 8).
    Password,
    /// 60 is `USERAUTH_INFO_REQUEST`, 61 `USERAUTH_INFO_RESPONSE` (RFC 4256).
    KeyboardInteractive,
}
