//! A host as known_hosts writes it.

/// The port that is left out in known_hosts (RFC 4253 section 4.2).
pub const DEFAULT_PORT: u16 = 22;

/// A name or an address, and the port behind which the host key was or will be seen.
///
/// For a host with `HostKeyAlias` give the alias and [`DEFAULT_PORT`]: an alias takes no port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HostName<'a> {
    /// The name without brackets; letters of either case.
    pub name: &'a str,
    /// The port; 0 and 22 are not written.
    pub port: u16,
}

impl<'a> HostName<'a> {
    /// The name at port 22.
    pub fn new(name: &'a str) -> HostName<'a> {
        HostName {
            name,
            port: DEFAULT_PORT,
        }
    }

    /// The name at `port`.
    pub fn with_port(name: &'a str, port: u16) -> HostName<'a> {
        HostName { name, port }
    }

    /// How the host is written in known_hosts: lowercase, `[name]:port` unless the port is 22
    /// (`put_host_port`, misc.c).
    pub fn written(&self) -> String {
        let mut name = self.name.to_ascii_lowercase();
        if !self.is_default_port() {
            name = format!("[{name}]:{}", self.port);
        }
        name
    }

    /// Whether the name may be written into a known_hosts file: it has no character that means
    /// something there (`check_host_key`, sshconnect.c), and none that parts names or lines.
    pub fn is_recordable(&self) -> bool {
        const MEANINGFUL: &[u8] = b"@?*#[]|'\"\\,!";
        let plain = |c: u8| !MEANINGFUL.contains(&c) && !c.is_ascii_whitespace() && c >= b' ';
        !self.name.is_empty() && self.name.bytes().all(plain)
    }

    /// Whether the port is left out when the host is written.
    pub fn is_default_port(&self) -> bool {
        self.port == 0 || self.port == DEFAULT_PORT
    }
}
