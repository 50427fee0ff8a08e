//! What a server is asked to listen at, and what it says when somebody connects there: RFC 4254 section 7, OpenSSH's PROTOCOL
//! section 2.4.

use sshoal_wire::{ChannelOpen, DecodeError, Decoder, GlobalRequest, Problem, Put};

use crate::bodies::text;
use crate::error::ProxyError;
use crate::forward::Place;
use crate::proxy::check_len;

const TCP: &[u8] = b"tcpip-forward";
const CANCEL_TCP: &[u8] = b"cancel-tcpip-forward";
const UNIX: &[u8] = b"streamlocal-forward@openssh.com";
const CANCEL_UNIX: &[u8] = b"cancel-streamlocal-forward@openssh.com";
/// What OpenSSH's client asks a silent server; all answer, and none grants it.
const KEEPALIVE: &[u8] = b"keepalive@openssh.com";

/// A global request: its name, and what follows `want_reply`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedGlobally {
    /// Its name.
    pub name: &'static [u8],
    /// Its own fields.
    pub data: Vec<u8>,
}

impl AskedGlobally {
    /// The server is to listen there.
    #[must_use]
    pub fn listen(at: &Place) -> Self {
        AskedGlobally::about(at, [TCP, UNIX])
    }

    /// The server is to listen there no longer.
    #[must_use]
    pub fn cancel(at: &Place) -> Self {
        AskedGlobally::about(at, [CANCEL_TCP, CANCEL_UNIX])
    }

    /// A sign of life, which costs nothing and is answered in its turn.
    #[must_use]
    pub fn keepalive() -> Self {
        AskedGlobally {
            name: KEEPALIVE,
            data: Vec::new(),
        }
    }

    fn about(at: &Place, [tcp, unix]: [&'static [u8]; 2]) -> Self {
        let mut data = Vec::new();
        let name = match at {
            Place::Tcp { host, port } => {
                data.put_string(host.as_bytes());
                data.put_u32(u32::from(*port));
                tcp
            }
            Place::Unix(path) => {
                data.put_string(path);
                unix
            }
        };
        AskedGlobally { name, data }
    }
}

impl Place {
    /// Where a server is asked to listen for a passenger's words: as channels.c, `channel_rfwd_bind_host`.
    #[must_use]
    pub fn for_server(&self) -> Place {
        match self {
            Place::Tcp { host, port } => Place::Tcp {
                host: match host.as_str() {
                    "" => "localhost",
                    "*" => "",
                    other => other,
                }
                .to_owned(),
                port: *port,
            },
            Place::Unix(_) => self.clone(),
        }
    }

    /// The same place with the port that the server chose.
    #[must_use]
    pub fn with_port(self, port: u16) -> Place {
        match self {
            Place::Tcp { host, .. } => Place::Tcp { host, port },
            unix @ Place::Unix(_) => unix,
        }
    }
}

/// The port in the answer to a request for port 0 (RFC 4254 section 7.1).
///
/// # Errors
/// There is no port in it.
pub fn allocated_port(reply: &[u8]) -> Result<u16, DecodeError> {
    let mut fields = Decoder::named("REQUEST_SUCCESS", reply);
    let port = fields.field("allocated port").u32()?;
    u16::try_from(port).map_err(|_| fields.error(Problem::UnknownName))
}

/// Somebody has connected to where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrived {
    /// Where: as the server was asked, but with the port that it has chosen.
    pub at: Place,
}

impl Arrived {
    /// Reads the payload of a CHANNEL_OPEN; `None` if it is of another type.
    ///
    /// # Errors
    /// It does not follow its format.
    pub fn decode(payload: &[u8]) -> Result<Option<Arrived>, DecodeError> {
        let open = decode_open(payload)?;
        let mut fields = Decoder::named("CHANNEL_OPEN", open.data);
        let at = match open.channel_type {
            b"forwarded-tcpip" => {
                let at = tcp_place(&mut fields)?;
                fields.field("originator IP address").string()?;
                fields.field("originator port").u32()?;
                at
            }
            b"forwarded-streamlocal@openssh.com" => {
                let path = fields.field("socket path").string()?.to_vec();
                fields.field("reserved").string()?;
                Place::Unix(path)
            }
            _ => return Ok(None),
        };
        Ok(Some(Arrived { at }))
    }
}

/// The fields of a CHANNEL_OPEN.
pub(crate) fn decode_open(payload: &[u8]) -> Result<ChannelOpen<'_>, DecodeError> {
    let mut fields = Decoder::named("CHANNEL_OPEN", payload);
    fields.field("message number").u8()?;
    Ok(ChannelOpen {
        channel_type: fields.field("channel type").string()?,
        sender_channel: fields.field("sender channel").u32()?,
        initial_window_size: fields.field("initial window size").u32()?,
        maximum_packet_size: fields.field("maximum packet size").u32()?,
        data: fields.rest(),
    })
}

/// The type of channel that a CHANNEL_OPEN is for, and its sender's number.
///
/// # Errors
/// It does not follow its format.
pub fn opened_by(payload: &[u8]) -> Result<(&[u8], u32), DecodeError> {
    let open = decode_open(payload)?;
    Ok((open.channel_type, open.sender_channel))
}

/// What a passenger in proxy mode asks of the server for the connection as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxiedRequest {
    /// To listen there.
    Listen(Place),
    /// To listen there no longer.
    Cancel(Place),
    /// Something that is not the passenger's to ask of a connection that others share: "no-more-sessions@openssh.com" would
    /// end it for all. It is answered as a server does that does not know it.
    Other,
}

impl ProxiedRequest {
    /// Reads the payload of a GLOBAL_REQUEST; returns also whether it wants a reply.
    ///
    /// # Errors
    /// It does not follow its format.
    pub fn decode(payload: &[u8]) -> Result<(ProxiedRequest, bool), ProxyError> {
        check_len(payload)?;
        let mut fields = Decoder::named("GLOBAL_REQUEST", payload);
        let number = fields.field("message number").u8()?;
        if number != GlobalRequest::NUMBER {
            return Err(ProxyError::NotOfConnection { number });
        }
        let name = fields.field("request name").string()?;
        let want_reply = fields.field("want reply").boolean()?;
        let request = match name {
            TCP => ProxiedRequest::Listen(tcp_place(&mut fields)?),
            CANCEL_TCP => ProxiedRequest::Cancel(tcp_place(&mut fields)?),
            UNIX => ProxiedRequest::Listen(unix_place(&mut fields)?),
            CANCEL_UNIX => ProxiedRequest::Cancel(unix_place(&mut fields)?),
            _ => return Ok((ProxiedRequest::Other, want_reply)),
        };
        fields.finish()?;
        Ok((request, want_reply))
    }
}

fn tcp_place(fields: &mut Decoder<'_>) -> Result<Place, DecodeError> {
    let host = text(fields, "address")?;
    let host = std::str::from_utf8(host).map_err(|_| fields.error(Problem::UnknownName))?;
    let host = host.to_owned();
    let port = fields.field("port").u32()?;
    let port = u16::try_from(port).map_err(|_| fields.error(Problem::UnknownName))?;
    Ok(Place::Tcp { host, port })
}

fn unix_place(fields: &mut Decoder<'_>) -> Result<Place, DecodeError> {
    Ok(Place::Unix(text(fields, "socket path")?.to_vec()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::MAX_PAYLOAD_LEN;

    fn tcp(host: &str, port: u16) -> Place {
        let host = host.to_owned();
        Place::Tcp { host, port }
    }

    fn request(name: &[u8], data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        GlobalRequest {
            request_name: name,
            want_reply: true,
            data,
        }
        .encode(&mut out);
        out
    }

    #[test]
    fn what_a_passenger_says_of_addresses_becomes_what_servers_know() {
        for (said, meant) in [("", "localhost"), ("*", ""), ("10.0.0.1", "10.0.0.1")] {
            assert_eq!(tcp(said, 7).for_server(), tcp(meant, 7));
        }
        let unix = Place::Unix(b"/run/x".to_vec());
        assert_eq!(unix.for_server(), unix);
        assert_eq!(tcp("a", 0).with_port(9), tcp("a", 9));
    }

    #[test]
    fn requests_are_read_as_they_are_written() {
        for place in [tcp("localhost", 8080), Place::Unix(b"/run/x".to_vec())] {
            let AskedGlobally { name, data } = AskedGlobally::listen(&place);
            let read = ProxiedRequest::decode(&request(name, &data));
            assert_eq!(read, Ok((ProxiedRequest::Listen(place.clone()), true)));
            let AskedGlobally { name, data } = AskedGlobally::cancel(&place);
            let read = ProxiedRequest::decode(&request(name, &data));
            assert_eq!(read, Ok((ProxiedRequest::Cancel(place), true)));
        }
        let other = request(b"no-more-sessions@openssh.com", b"");
        assert_eq!(
            ProxiedRequest::decode(&other),
            Ok((ProxiedRequest::Other, true))
        );
        assert!(ProxiedRequest::decode(&[90]).is_err());
    }

    #[test]
    fn what_the_server_would_end_everybody_s_connection_for_is_not_asked() {
        for place in [tcp("localhost", 8080), Place::Unix(b"/run/x".to_vec())] {
            let AskedGlobally { name, data } = AskedGlobally::listen(&place);
            for len in 0..data.len() {
                assert!(ProxiedRequest::decode(&request(name, &data[..len])).is_err());
            }
            let trailing = [&data[..], b"x"].concat();
            assert!(ProxiedRequest::decode(&request(name, &trailing)).is_err());
        }
        for place in [tcp("a\0b", 1), Place::Unix(b"/a\0b".to_vec())] {
            let AskedGlobally { name, data } = AskedGlobally::listen(&place);
            assert!(ProxiedRequest::decode(&request(name, &data)).is_err());
        }
        let long = Place::Unix(vec![b'a'; MAX_PAYLOAD_LEN]);
        let AskedGlobally { name, data } = AskedGlobally::listen(&long);
        assert!(ProxiedRequest::decode(&request(name, &data)).is_err());
    }

    #[test]
    fn a_server_s_channels_say_where_somebody_has_connected() {
        let open = |channel_type: &[u8], data: &[u8]| {
            let mut out = Vec::new();
            ChannelOpen {
                channel_type,
                sender_channel: 3,
                initial_window_size: 1,
                maximum_packet_size: 2,
                data,
            }
            .encode(&mut out);
            out
        };
        let mut data = Vec::new();
        data.put_string(b"localhost");
        data.put_u32(8080);
        data.put_string(b"127.0.0.1");
        data.put_u32(40_000);
        let at = tcp("localhost", 8080);
        let arrived = Arrived::decode(&open(b"forwarded-tcpip", &data)).unwrap();
        assert_eq!(arrived, Some(Arrived { at }));
        assert!(Arrived::decode(&open(b"forwarded-tcpip", &data[..9])).is_err());
        let mut data = Vec::new();
        data.put_string(b"/run/x");
        data.put_string(b"");
        let at = Place::Unix(b"/run/x".to_vec());
        let payload = open(b"forwarded-streamlocal@openssh.com", &data);
        assert_eq!(Arrived::decode(&payload).unwrap(), Some(Arrived { at }));
        assert_eq!(Arrived::decode(&open(b"x11", b"")).unwrap(), None);
        assert_eq!(opened_by(&open(b"x11", b"")), Ok((&b"x11"[..], 3)));
    }

    #[test]
    fn a_port_that_was_chosen_is_a_port() {
        assert_eq!(allocated_port(&[0, 0, 0x90, 0x01]), Ok(0x9001));
        assert!(allocated_port(&[0, 1, 0, 0]).is_err());
        assert!(allocated_port(b"").is_err());
    }
}
