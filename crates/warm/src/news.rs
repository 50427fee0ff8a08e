//! What a keeper tells a run.

use sshoal_wire::{DecodeError, Decoder, Problem, Put};

use crate::frame::{FrameError, encode};
use crate::order::text;

const STARTED: u8 = 1;
const OUTPUT: u8 = 2;
const TAKEN: u8 = 3;
const ENDED: u8 = 4;

const EXIT: u8 = 0;
const SIGNAL: u8 = 1;
const NO_STATUS: u8 = 2;
const LOST: u8 = 3;
const LEFT: u8 = 4;

/// News of a command. `id` is the run's number for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News<'a> {
    /// The server has started it.
    Started {
        /// Which.
        id: u32,
    },
    /// It has written something.
    Output {
        /// Which.
        id: u32,
        /// Whether to standard error.
        is_error: bool,
        /// What.
        octets: &'a [u8],
    },
    /// So many octets of its input are on their way to the host: so many more may come.
    Taken {
        /// Whose.
        id: u32,
        /// How many more.
        octets: u32,
    },
    /// It is over, and its number free. All output has been told.
    Ended {
        /// Which.
        id: u32,
        /// How.
        end: End<'a>,
        /// What is known of the command.
        fate: Fate,
    },
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End<'a> {
    /// With this status (RFC 4254 section 6.10, `exit-status`).
    Exit(u32),
    /// By a signal (RFC 4254 section 6.10, `exit-signal`).
    Signal {
        /// Its name without `SIG`.
        name: &'a str,
        /// Whether the server reports a core dump.
        core_dumped: bool,
        /// The server's words.
        message: &'a str,
    },
    /// The server closed the channel without saying how.
    NoStatus,
    /// There is no session on a connection to the host, or none any more; why.
    Lost(&'a str),
    /// The run has left it.
    Left,
}

/// What is known of a command: `ExecFate` of the connection that it went by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// Not all of the request left.
    NotSent,
    /// The server threw it away and said so.
    ProvenDiscarded,
    /// It left, and nothing that came back settles what happened.
    MayHaveRun,
    /// The server confirmed that it started.
    Ran,
}

impl Fate {
    const ALL: [Fate; 4] = [
        Fate::NotSent,
        Fate::ProvenDiscarded,
        Fate::MayHaveRun,
        Fate::Ran,
    ];
}

impl<'a> News<'a> {
    /// Appends it as a frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            News::Started { id } => encode(STARTED, out, |out| out.put_u32(*id)),
            News::Output {
                id,
                is_error,
                octets,
            } => encode(OUTPUT, out, |out| {
                out.put_u32(*id);
                out.put_boolean(*is_error);
                out.put_bytes(octets);
            }),
            News::Taken { id, octets } => encode(TAKEN, out, |out| {
                out.put_u32(*id);
                out.put_u32(*octets);
            }),
            News::Ended { id, end, fate } => encode(ENDED, out, |out| {
                out.put_u32(*id);
                out.put_u8(*fate as u8);
                end.write(out);
            }),
        }
    }

    /// Reads a frame.
    ///
    /// # Errors
    ///
    /// It is none of a keeper's.
    pub fn decode(frame: &'a [u8]) -> Result<News<'a>, FrameError> {
        let mut fields = Decoder::named("news", frame);
        let kind = fields.field("kind").u8()?;
        let id = fields.field("number").u32()?;
        let news = match kind {
            STARTED => News::Started { id },
            OUTPUT => News::Output {
                id,
                is_error: fields.field("stream").boolean()?,
                octets: fields.field("octets").rest(),
            },
            TAKEN => News::Taken {
                id,
                octets: fields.field("octets").u32()?,
            },
            ENDED => {
                let fate = fields.field("fate").u8()?;
                let fate = Fate::ALL.get(usize::from(fate)).copied();
                News::Ended {
                    id,
                    fate: fate.ok_or_else(|| fields.error(Problem::UnknownName))?,
                    end: End::read(&mut fields)?,
                }
            }
            kind => return Err(FrameError::Kind { kind }),
        };
        fields.finish()?;
        Ok(news)
    }
}

impl<'a> End<'a> {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            End::Exit(status) => {
                out.put_u8(EXIT);
                out.put_u32(*status);
            }
            End::Signal {
                name,
                core_dumped,
                message,
            } => {
                out.put_u8(SIGNAL);
                out.put_string(name.as_bytes());
                out.put_boolean(*core_dumped);
                out.put_string(message.as_bytes());
            }
            End::NoStatus => out.put_u8(NO_STATUS),
            End::Lost(why) => {
                out.put_u8(LOST);
                out.put_string(why.as_bytes());
            }
            End::Left => out.put_u8(LEFT),
        }
    }

    fn read(fields: &mut Decoder<'a>) -> Result<End<'a>, DecodeError> {
        Ok(match fields.field("end").u8()? {
            EXIT => End::Exit(fields.field("status").u32()?),
            SIGNAL => End::Signal {
                name: text(fields, "signal")?,
                core_dumped: fields.field("core dumped").boolean()?,
                message: text(fields, "message")?,
            },
            NO_STATUS => End::NoStatus,
            LOST => End::Lost(text(fields, "reason")?),
            LEFT => End::Left,
            _ => return Err(fields.error(Problem::UnknownName)),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;
    use crate::Frames;

    fn assert_read_as_written(news: News<'_>) {
        let mut octets = Vec::new();
        news.encode(&mut octets);
        let frame = Frames::of(&octets).next().unwrap().unwrap();
        assert_eq!(News::decode(frame), Ok(news));
    }

    #[test]
    fn every_end_is_read_as_it_was_written() {
        let ends = [
            End::Exit(u32::MAX),
            End::Signal {
                name: "SEGV",
                core_dumped: true,
                message: "a message",
            },
            End::NoStatus,
            End::Lost("it is gone"),
            End::Left,
        ];
        for (end, fate) in ends.into_iter().zip(Fate::ALL.into_iter().cycle()) {
            assert_read_as_written(News::Ended { id: 7, end, fate });
        }
        assert_read_as_written(News::Started { id: 0 });
        let octets = 12;
        assert_read_as_written(News::Taken { id: 1, octets });
        let octets: &[u8] = b"what it wrote";
        for is_error in [false, true] {
            assert_read_as_written(News::Output {
                id: 2,
                is_error,
                octets,
            });
        }
    }

    proptest! {
        #[test]
        fn what_is_read_at_all_is_written_the_same_way(frame: Vec<u8>) {
            if let Ok(news) = News::decode(&frame) {
                let mut octets = Vec::new();
                news.encode(&mut octets);
                prop_assert_eq!(News::decode(&octets[4..]), Ok(news));
            }
        }
    }
}
