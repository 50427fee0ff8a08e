//! What a server offers, from its own SSH_MSG_KEXINIT.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::time::Duration;

use sshoal_wire::{DecodeError, Dialect, KexInit, Message, NameList};
use thiserror::Error;

/// Longest wait for the connection and for each read.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest line before and including the identification string that is read.
const MAX_LINE: u64 = 1024;
/// Lines that a server may send before its identification string (RFC 4253, section 4.2).
const MAX_LINES: usize = 20;
/// Largest packet that every implementation must take (RFC 4253, section 6.1).
const MAX_PACKET: u32 = 35_000;

/// The algorithms of a server, in its order, by the field names of RFC 4253, section 7.1. Both directions offer the
/// same in all servers here, so the client's direction stands for both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offers {
    /// The identification string, without its line end.
    pub identification: String,
    /// Key exchanges, without the pseudo-algorithms `ext-info-s` and `kex-strict-s-v00@openssh.com`.
    pub kex_algorithms: Vec<String>,
    /// Whether `kex-strict-s-v00@openssh.com` was among the key exchanges.
    pub strict_kex: bool,
    /// Host-key algorithms.
    pub server_host_key_algorithms: Vec<String>,
    /// Ciphers.
    pub encryption_algorithms: Vec<String>,
    /// Message authentication codes.
    pub mac_algorithms: Vec<String>,
}

/// Why a server's offers could not be read.
#[derive(Debug, Error)]
pub enum OffersError {
    /// No connection, or it broke or fell silent.
    #[error("reading the server's KEXINIT: {0}")]
    Io(#[from] io::Error),
    /// No identification string where one must be.
    #[error("the server did not identify itself; it said {0:?}")]
    Identification(String),
    /// The first packet is not a well-formed KEXINIT.
    #[error("the server's first packet is not KEXINIT: {0}")]
    Packet(String),
}

impl From<DecodeError> for OffersError {
    fn from(error: DecodeError) -> Self {
        OffersError::Packet(error.to_string())
    }
}

impl Offers {
    /// Connects, exchanges identification strings, reads the server's KEXINIT and hangs up.
    ///
    /// # Errors
    /// When no server answers within ten seconds, or what answers is not an SSH server.
    pub fn read(address: SocketAddrV4) -> Result<Offers, OffersError> {
        let mut stream = TcpStream::connect_timeout(&address.into(), PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(b"SSH-2.0-sshoal_interop\r\n")?;
        let mut reader = BufReader::new(stream);
        let identification = read_identification(&mut reader)?;
        let payload = read_packet(&mut reader)?;
        match Message::decode(&payload, Dialect::default())? {
            Message::KexInit(kex_init) => Ok(Offers::from_kex_init(identification, &kex_init)),
            other => Err(OffersError::Packet(format!("{other:?}"))),
        }
    }

    fn from_kex_init(identification: String, kex_init: &KexInit<'_>) -> Offers {
        const STRICT: &str = "kex-strict-s-v00@openssh.com";
        let kex = names(&kex_init.kex_algorithms);
        Offers {
            identification,
            strict_kex: kex.iter().any(|name| name == STRICT),
            kex_algorithms: kex
                .into_iter()
                .filter(|name| name != STRICT && name != "ext-info-s")
                .collect(),
            server_host_key_algorithms: names(&kex_init.server_host_key_algorithms),
            encryption_algorithms: names(&kex_init.encryption_algorithms_client_to_server),
            mac_algorithms: names(&kex_init.mac_algorithms_client_to_server),
        }
    }
}

fn names(list: &NameList<'_>) -> Vec<String> {
    list.iter().map(str::to_owned).collect()
}

/// RFC 4253, section 4.2: other lines may come first.
fn read_identification(reader: &mut impl BufRead) -> Result<String, OffersError> {
    let mut line = String::new();
    for _ in 0..MAX_LINES {
        line.clear();
        reader.by_ref().take(MAX_LINE).read_line(&mut line)?;
        if line.starts_with("SSH-2.0-") {
            return Ok(line.trim_end().to_owned());
        }
    }
    Err(OffersError::Identification(line))
}

/// RFC 4253, section 6, before encryption: packet_length, padding_length, payload, padding.
fn read_packet(reader: &mut impl Read) -> Result<Vec<u8>, OffersError> {
    let mut head = [0; 5];
    reader.read_exact(&mut head)?;
    let [a, b, c, d, padding_length] = head;
    let packet_length = u32::from_be_bytes([a, b, c, d]);
    let payload_length = packet_length.checked_sub(1 + u32::from(padding_length));
    let Some(payload_length) = payload_length.filter(|_| packet_length <= MAX_PACKET) else {
        return Err(OffersError::Packet(format!(
            "packet_length {packet_length}"
        )));
    };
    let mut payload = vec![0; payload_length as usize];
    reader.read_exact(&mut payload)?;
    Ok(payload)
}
