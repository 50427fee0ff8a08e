//! What is to be forwarded where (PROTOCOL.mux sections 6 and 7).

use sshoal_wire::{DecodeError, Decoder, Problem};

/// In place of a port: the host is the path of a unix socket. "(unsigned int) -2" in PROTOCOL.mux section 6.
const STREAM_LOCAL: u32 = -2i32 as u32;

/// Who listens, and who connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForwardKind {
    /// `-L`: the master listens, the server connects.
    Local,
    /// `-R`: the server listens, the master connects.
    Remote,
    /// `-D`: the master listens and speaks SOCKS.
    Dynamic,
}

/// One end of a forward.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A host, or a local address, and a TCP port. An empty host and "*" are the passenger's words for what
    /// GatewayPorts decides, and for all addresses.
    Tcp {
        /// Its name or address.
        host: String,
        /// The port; 0 has the listening side choose one.
        port: u16,
    },
    /// The path of a unix socket, as it came.
    Unix(Vec<u8>),
}

/// A forward that is to be opened, or closed again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forward {
    /// Who listens, and who connects.
    pub kind: ForwardKind,
    /// Where is listened.
    pub listen: Place,
    /// Where is connected to; `None` where SOCKS says so each time.
    pub connect: Option<Place>,
}

impl Forward {
    pub(crate) fn decode(fields: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let kind = match fields.field("forwarding type").u32()? {
            1 => ForwardKind::Local,
            2 => ForwardKind::Remote,
            3 => ForwardKind::Dynamic,
            _ => return Err(fields.error(Problem::UnknownName)),
        };
        let listen = Place::decode(fields, "listen host", "listen port")?;
        let connect = Place::decode(fields, "connect host", "connect port")?;
        let has_target = kind != ForwardKind::Dynamic;
        Ok(Forward {
            kind,
            listen,
            connect: has_target.then_some(connect),
        })
    }
}

impl Place {
    /// A place without the octet 0 in its name.
    pub(crate) fn decode(
        fields: &mut Decoder<'_>,
        host: &'static str,
        port: &'static str,
    ) -> Result<Self, DecodeError> {
        let name = fields.field(host).string()?;
        let is_text = !name.contains(&0);
        let text = std::str::from_utf8(name).ok().filter(|_| is_text);
        let unknown = fields.error(Problem::UnknownName);
        match fields.field(port).u32()? {
            STREAM_LOCAL if is_text && !name.is_empty() => Ok(Place::Unix(name.to_vec())),
            STREAM_LOCAL => Err(unknown),
            number => {
                let port = u16::try_from(number);
                let port = port.map_err(|_| fields.error(Problem::UnknownName))?;
                let host = text.ok_or(unknown)?.to_owned();
                Ok(Place::Tcp { host, port })
            }
        }
    }
}
