//! What a run wants of a keeper.

use std::borrow::Cow;

use sshoal_wire::{DecodeError, Decoder, Problem, Put};

use crate::frame::{FrameError, encode};

/// Most environment variables of a command: as many as OpenSSH's master takes.
pub const MAX_VARIABLES: u32 = 4096;

/// The longest name of a signal, octets (RFC 4251 section 6).
const MAX_SIGNAL_LEN: usize = 64;

const START: u8 = 1;
const INPUT: u8 = 2;
const INPUT_END: u8 = 3;
const CONSUMED: u8 = 4;
const SIGNAL: u8 = 5;
const LEAVE: u8 = 6;

/// An order. `id` is the run's number for a host's command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order<'a> {
    /// Run a command.
    Start {
        /// From now on this command's, until it has ended.
        id: u32,
        /// Which command, where.
        start: Start<'a>,
    },
    /// Standard input.
    Input {
        /// Whose.
        id: u32,
        /// At most [`INPUT_WINDOW`](crate::INPUT_WINDOW) that were not taken.
        octets: &'a [u8],
    },
    /// No more standard input comes.
    InputEnd {
        /// Whose.
        id: u32,
    },
    /// So many octets of output are out of the way.
    Consumed {
        /// Whose.
        id: u32,
        /// How many more.
        octets: u32,
    },
    /// Signal the command (RFC 4254 section 6.9).
    Signal {
        /// Which.
        id: u32,
        /// Without `SIG`.
        name: &'a str,
    },
    /// The run wants no more of it: its channel is closed, and [`Ended`](crate::News::Ended) says what is known of it.
    Leave {
        /// Which.
        id: u32,
    },
}

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start<'a> {
    /// The host, by the keeper's number.
    pub host: u32,
    /// What its connection has to be: another keeper may have the number for another host.
    pub identity: [u8; 32],
    /// Whether standard input will come. If not, its end travels with the command.
    pub standard_input: bool,
    /// For the user's shell.
    pub command: &'a [u8],
    /// Variables that the server may accept.
    pub environment: Cow<'a, [(Vec<u8>, Vec<u8>)]>,
}

impl<'a> Order<'a> {
    /// Appends it as a frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Order::Start { id, start } => encode(START, out, |out| {
                out.put_u32(*id);
                out.put_u32(start.host);
                out.put_bytes(&start.identity);
                out.put_boolean(start.standard_input);
                out.put_string(start.command);
                out.put_u32(start.environment.len() as u32);
                for (name, value) in start.environment.iter() {
                    out.put_string(name);
                    out.put_string(value);
                }
            }),
            Order::Input { id, octets } => encode(INPUT, out, |out| {
                out.put_u32(*id);
                out.put_bytes(octets);
            }),
            Order::InputEnd { id } => encode(INPUT_END, out, |out| out.put_u32(*id)),
            Order::Consumed { id, octets } => encode(CONSUMED, out, |out| {
                out.put_u32(*id);
                out.put_u32(*octets);
            }),
            Order::Signal { id, name } => encode(SIGNAL, out, |out| {
                out.put_u32(*id);
                out.put_string(name.as_bytes());
            }),
            Order::Leave { id } => encode(LEAVE, out, |out| out.put_u32(*id)),
        }
    }

    /// Reads a frame.
    ///
    /// # Errors
    ///
    /// It is none of a run's.
    pub fn decode(frame: &'a [u8]) -> Result<Order<'a>, FrameError> {
        let mut fields = Decoder::named("order", frame);
        let kind = fields.field("kind").u8()?;
        let id = fields.field("number").u32()?;
        let order = match kind {
            START => Order::Start {
                id,
                start: Start::read(&mut fields)?,
            },
            INPUT => Order::Input {
                id,
                octets: fields.field("octets").rest(),
            },
            INPUT_END => Order::InputEnd { id },
            CONSUMED => Order::Consumed {
                id,
                octets: fields.field("octets").u32()?,
            },
            SIGNAL => Order::Signal {
                id,
                name: signal_name(&mut fields)?,
            },
            LEAVE => Order::Leave { id },
            kind => return Err(FrameError::Kind { kind }),
        };
        fields.finish()?;
        Ok(order)
    }
}

impl<'a> Start<'a> {
    fn read(fields: &mut Decoder<'a>) -> Result<Start<'a>, DecodeError> {
        let host = fields.field("host").u32()?;
        let identity = fields.field("identity").array()?;
        let standard_input = fields.field("standard input").boolean()?;
        let command = without_nul(fields, "command")?;
        let count = fields.field("environment").u32()?;
        if count > MAX_VARIABLES {
            let limit = MAX_VARIABLES;
            return Err(fields.error(Problem::TooMany { count, limit }));
        }
        let variables = (0..count).map(|_| {
            let name = without_nul(fields, "variable")?.to_vec();
            let value = without_nul(fields, "value")?.to_vec();
            Ok((name, value))
        });
        let environment = variables.collect::<Result<Vec<_>, DecodeError>>()?;
        Ok(Start {
            host,
            identity,
            standard_input,
            command,
            environment: environment.into(),
        })
    }
}

/// A string that a server can take: OpenSSH's ends a connection in which one has a NUL (sshbuf_get_cstring).
fn without_nul<'a>(fields: &mut Decoder<'a>, field: &'static str) -> Result<&'a [u8], DecodeError> {
    let octets = fields.field(field).string()?;
    match octets.contains(&0) {
        true => Err(fields.error(Problem::Nul)),
        false => Ok(octets),
    }
}

fn signal_name<'a>(fields: &mut Decoder<'a>) -> Result<&'a str, DecodeError> {
    let name = without_nul(fields, "name")?;
    let (len, limit) = (name.len(), MAX_SIGNAL_LEN);
    if len > limit {
        return Err(fields.error(Problem::TooLong { len, limit }));
    }
    std::str::from_utf8(name).map_err(|_| fields.error(Problem::UnknownName))
}

/// A field that is text.
pub(crate) fn text<'a>(
    fields: &mut Decoder<'a>,
    field: &'static str,
) -> Result<&'a str, DecodeError> {
    let octets = fields.field(field).string()?;
    std::str::from_utf8(octets).map_err(|_| fields.error(Problem::UnknownName))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;
    use crate::{Frames, MAX_FRAME_LEN};

    /// What a server takes as a string.
    fn octets() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(1..=u8::MAX, 0..99)
    }

    proptest! {
        #[test]
        fn a_start_is_read_as_it_was_written(
            id: u32, host: u32, identity: [u8; 32], standard_input: bool, command in octets(),
            environment in proptest::collection::vec((octets(), octets()), 0..9),
        ) {
            let start = Start { host, identity, standard_input, command: &command, environment: environment.into() };
            let order = Order::Start { id, start };
            let mut octets = Vec::new();
            order.encode(&mut octets);
            let frame = Frames::of(&octets).next().unwrap().unwrap();
            prop_assert_eq!(Order::decode(frame), Ok(order));
        }

        #[test]
        fn what_is_read_at_all_is_written_the_same_way(frame: Vec<u8>) {
            if let Ok(order) = Order::decode(&frame) {
                let mut octets = Vec::new();
                order.encode(&mut octets);
                prop_assert_eq!(Order::decode(&octets[4..]), Ok(order));
            }
        }
    }

    #[test]
    fn a_torn_frame_waits_and_an_absurd_one_is_refused() {
        let mut octets = Vec::new();
        Order::Leave { id: 3 }.encode(&mut octets);
        for len in 0..octets.len() {
            let mut frames = Frames::of(&octets[..len]);
            assert_eq!((frames.next(), frames.taken()), (Ok(None), 0));
        }
        for len in [0, MAX_FRAME_LEN as u32 + 1, u32::MAX] {
            let octets = len.to_be_bytes();
            let len = len as usize;
            assert_eq!(Frames::of(&octets).next(), Err(FrameError::Length { len }));
        }
        let start = Start {
            host: 0,
            identity: [7; 32],
            standard_input: false,
            command: b"echo a\0b",
            environment: Vec::new().into(),
        };
        let mut octets = Vec::new();
        Order::Start { id: 1, start }.encode(&mut octets);
        assert!(Order::decode(&octets[4..]).is_err(), "a NUL");
        let signal = |name: &str| {
            let mut octets = Vec::new();
            Order::Signal { id: 1, name }.encode(&mut octets);
            Order::decode(&octets[4..]).map(drop)
        };
        assert_eq!(signal("TERM"), Ok(()));
        assert!(signal("TE\0RM").is_err(), "a NUL");
        assert!(signal(&"A".repeat(65)).is_err(), "no name");
        let unknown = Order::decode(&[99, 0, 0, 0, 1]);
        assert_eq!(unknown, Err(FrameError::Kind { kind: 99 }));
        assert!(Order::decode(&[LEAVE, 0, 0, 0, 1, 0]).is_err(), "too long");
    }
}
