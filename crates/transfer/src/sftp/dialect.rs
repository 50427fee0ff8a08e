//! What servers read differently, and no extension tells of.

/// In which order a server takes the two paths of SSH_FXP_SYMLINK.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Dialect {
    /// What the link says, then the link: OpenSSH's order (PROTOCOL section 4.1), which others have taken over.
    #[default]
    OpenSsh,
    /// The link, then what it says (draft section 6.10).
    Draft,
}

impl Dialect {
    /// That of a server which identifies itself by this software version (RFC 4253 section 4.2): what follows "SSH-2.0-".
    ///
    /// asyncssh has OpenSSH's order for the clients that it knows by name to expect it, and the draft's for all others.
    pub fn of(software: &str) -> Dialect {
        match software.starts_with("AsyncSSH") {
            true => Dialect::Draft,
            false => Dialect::OpenSsh,
        }
    }
}
