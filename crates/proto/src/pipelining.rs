//! Which flights may be merged, and for which server.

use crate::identification::Identification;

/// How far ahead of the server's answers this client may run after key exchange.
///
/// The reasons are in OpenSSH's sources: its dispatcher for authentication is armed inside
/// SERVICE_REQUEST (auth2.c), input already read is carried across the privilege separation
/// (packet.c), and the first channel always gets number 0 (channels.c). Other servers may end the
/// connection at a message that comes before authentication succeeded (RFC 4252 section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pipelining {
    /// One message, one answer.
    None,
    /// SERVICE_REQUEST, the authentication request, CHANNEL_OPEN, the session's requests and the command
    /// itself in one flight, the command on the guessed server channel 0.
    Exec,
}

/// Oldest OpenSSH for which merged flights are known to work.
const OLDEST_OPENSSH: (u16, u16) = (7, 4);

impl Pipelining {
    /// The furthest that a server with this identification supports.
    pub fn supported_by(server: &Identification) -> Self {
        match server.openssh_version() {
            Some(version) if version >= OLDEST_OPENSSH => Pipelining::Exec,
            _ => Pipelining::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identification::IdentificationReader;

    #[test]
    fn only_openssh_from_7_4_is_trusted_with_merged_flights() {
        let supported = |line: &str| {
            let (_, found) = IdentificationReader::default()
                .handle(line.as_bytes())
                .expect("valid");
            Pipelining::supported_by(&found.expect("complete"))
        };
        assert_eq!(supported("SSH-2.0-OpenSSH_7.4\r\n"), Pipelining::Exec);
        assert_eq!(supported("SSH-2.0-OpenSSH_10.5\r\n"), Pipelining::Exec);
        assert_eq!(supported("SSH-2.0-OpenSSH_7.3p1\r\n"), Pipelining::None);
        assert_eq!(
            supported("SSH-2.0-OpenSSH_for_Windows_9.5\r\n"),
            Pipelining::None
        );
        assert_eq!(supported("SSH-2.0-dropbear_2022.83\r\n"), Pipelining::None);
    }
}
