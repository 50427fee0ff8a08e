//! The version exchange: RFC 4253 section 4.2.

use crate::error::{ConnectionError, Misbehaviour, printable};

/// Longest identification string, with CR LF (RFC 4253 section 4.2).
const MAX_IDENTIFICATION: usize = 255;
/// Longest other line before it, as in OpenSSH (SSH_MAX_BANNER_LEN): more without a line end is not SSH.
const MAX_LINE: usize = 8192;
/// Most octets of other lines before it. The RFC sets no limit, a client needs one.
const MAX_PRELUDE: usize = 64 * 1024;

/// The server's identification string, without CR LF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identification(String);

impl Identification {
    /// The whole string, as it enters the exchange hash.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The software part: what follows "SSH-2.0-".
    pub fn software(&self) -> &str {
        self.0.splitn(3, '-').nth(2).unwrap_or_default()
    }

    /// OpenSSH's version as (major, minor), if this is OpenSSH for a Unix.
    ///
    /// "OpenSSH_for_Windows" counts as unknown software: its session code differs.
    pub fn openssh_version(&self) -> Option<(u16, u16)> {
        let version = self.software().strip_prefix("OpenSSH_")?;
        let (major, rest) = version.split_once('.')?;
        let minor = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    }

    /// Reads the string without its CR LF.
    pub(crate) fn parse(line: &[u8]) -> Result<Self, ConnectionError> {
        let not_ssh = || ConnectionError::NotSsh {
            said: printable(line),
        };
        // "Both the 'protoversion' and 'softwareversion' strings MUST consist of printable US-ASCII
        // characters"; the comments after them "MUST NOT contain null characters".
        let text = std::str::from_utf8(line)
            .ok()
            .filter(|text| text.bytes().all(|b| (b' '..=b'~').contains(&b)))
            .ok_or_else(not_ssh)?;
        // "SSH-protoversion-softwareversion SP comments CR LF"
        let mut parts = text.splitn(3, '-').skip(1);
        let (Some(version), Some(_)) = (parts.next(), parts.next()) else {
            return Err(not_ssh());
        };
        match version {
            // Section 5.1: a "1.99" server speaks 2.0 as well.
            "2.0" | "1.99" => Ok(Identification(text.to_owned())),
            other => Err(Misbehaviour::ProtocolVersion(other.to_owned()).into()),
        }
    }
}

/// Collects lines until the identification string is there.
#[derive(Default)]
pub(crate) struct IdentificationReader {
    line: Vec<u8>,
    prelude: usize,
    said: Vec<u8>,
}

impl IdentificationReader {
    /// Whether nothing has come yet.
    pub(crate) fn is_unused(&self) -> bool {
        self.line.is_empty() && self.prelude == 0
    }

    /// Takes octets from the front of `input`; returns how many, and the identification when it is complete.
    pub(crate) fn handle(
        &mut self,
        input: &[u8],
    ) -> Result<(usize, Option<Identification>), ConnectionError> {
        let mut used = 0;
        while used < input.len() {
            let rest = &input[used..];
            let newline = rest.iter().position(|&b| b == b'\n');
            let taken = newline.map_or(rest.len(), |at| at + 1);
            self.line.extend_from_slice(&rest[..taken]);
            used += taken;
            // "The maximum length of the string is 255 characters, including the Carriage Return and Line Feed."
            if self.is_identification() && self.line.len() > MAX_IDENTIFICATION {
                return Err(Misbehaviour::LongIdentification.into());
            }
            if self.line.len() > MAX_LINE {
                let said = printable(&self.line);
                return Err(ConnectionError::NotSsh { said });
            }
            if self.prelude + self.line.len() > MAX_PRELUDE {
                return Err(Misbehaviour::EndlessPrelude { limit: MAX_PRELUDE }.into());
            }
            if newline.is_some() && self.end_line()? {
                return Identification::parse(&self.line).map(|found| (used, Some(found)));
            }
        }
        Ok((used, None))
    }

    /// What the server said instead, when it closed before identifying itself. An identification that was cut off
    /// says nothing.
    pub(crate) fn said(&self) -> Option<String> {
        let said = [self.said.as_slice(), self.line.as_slice()].concat();
        let cut_off = said.starts_with(b"SSH-") || b"SSH-".starts_with(&said);
        (!cut_off).then(|| printable(&said))
    }

    /// "The server MAY send other lines of data before sending the version string. [...] Such lines MUST NOT begin
    /// with "SSH-"".
    fn is_identification(&self) -> bool {
        self.line.starts_with(b"SSH-")
    }

    /// Ends a line: true if it is the identification, now without its CR LF.
    fn end_line(&mut self) -> Result<bool, ConnectionError> {
        if self.is_identification() {
            self.line.pop();
            // Section 5.1: an old server may leave the CR away.
            if self.line.last() == Some(&b'\r') {
                self.line.pop();
            }
            return Ok(true);
        }
        self.prelude += self.line.len();
        if self.said.len() < MAX_IDENTIFICATION {
            self.said
                .extend_from_slice(&self.line[..self.line.len().min(MAX_IDENTIFICATION)]);
        }
        self.line.clear();
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chunks: &[&[u8]]) -> Result<Option<Identification>, ConnectionError> {
        let mut reader = IdentificationReader::default();
        for chunk in chunks {
            if let (_, Some(found)) = reader.handle(chunk)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    #[test]
    fn reads_a_split_identification_after_other_lines() {
        let found =
            read(&[b"welcome\r\nSSH-2.", b"0-OpenSSH_9.2p1 Debian-2\r", b"\n"]).expect("valid");
        let found = found.expect("complete");
        assert_eq!(found.as_str(), "SSH-2.0-OpenSSH_9.2p1 Debian-2");
        assert_eq!(found.openssh_version(), Some((9, 2)));
    }

    #[test]
    fn lines_before_it_may_be_long_and_of_any_octets() {
        let line = [
            b"\xa1Cuidado! \x1b[31m".as_slice(),
            &[0xe9; MAX_LINE - 20],
            b"\r\n",
        ]
        .concat();
        let found = read(&[&line, b"\xff\n\nSSH-2.0-x\r\n"]).expect("tolerated");
        assert_eq!(found.expect("complete").as_str(), "SSH-2.0-x");
    }

    #[test]
    fn takes_nothing_behind_the_line_end() {
        let mut reader = IdentificationReader::default();
        let (used, found) = reader.handle(b"SSH-2.0-x\nrest").expect("valid");
        assert_eq!((used, found.is_some()), (10, true));
    }

    #[test]
    fn limits_what_comes_before_it() {
        let line = [[b'a'; 1000].as_slice(), b"\n"].concat();
        let chunks: Vec<&[u8]> = (0..100).map(|_| line.as_slice()).collect();
        assert_eq!(
            read(&chunks),
            Err(Misbehaviour::EndlessPrelude { limit: MAX_PRELUDE }.into())
        );
        let long = [b"SSH-2.0-".as_slice(), &[b'x'; 300], b"\r\n"].concat();
        assert_eq!(read(&[&long]), Err(Misbehaviour::LongIdentification.into()));
        let noise = [b'a'; MAX_LINE + 1];
        assert!(matches!(
            read(&[&noise]),
            Err(ConnectionError::NotSsh { .. })
        ));
    }

    #[test]
    fn refuses_other_versions_and_control_characters() {
        assert_eq!(
            read(&[b"SSH-1.5-old\n"]),
            Err(Misbehaviour::ProtocolVersion("1.5".into()).into())
        );
        for line in [b"SSH-2.0-\x1b[2J\n".as_slice(), b"SSH-2.0\n", b"SSH-\n"] {
            assert!(matches!(read(&[line]), Err(ConnectionError::NotSsh { .. })));
        }
    }

    #[test]
    fn versions_of_other_software_are_unknown() {
        for line in [
            "SSH-2.0-dropbear_2022.83\n",
            "SSH-2.0-OpenSSH_for_Windows_9.5\n",
            "SSH-2.0-Go\n",
        ] {
            let found = read(&[line.as_bytes()]).expect("valid").expect("complete");
            assert_eq!(found.openssh_version(), None, "{line}");
        }
    }

    #[test]
    fn keeps_what_was_said_instead() {
        let mut reader = IdentificationReader::default();
        reader
            .handle(b"Exceeded MaxStartups\r\n")
            .expect("tolerated");
        assert_eq!(reader.said().as_deref(), Some("Exceeded MaxStartups"));
    }
}
