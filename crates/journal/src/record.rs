//! One record's body.

use sshoal_wire::{DecodeError, Decoder, Put};

use crate::segments::{MAX_SEGMENTS, Segments};

const BEGAN: u8 = 1;
const PROVEN: u8 = 2;
const ENDED: u8 = 3;

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Record {
    /// A file with this number, called so, known by that.
    Began {
        file: u32,
        key: Vec<u8>,
        identity: Vec<u8>,
    },
    /// These segments of it, too, are there.
    Proven { file: u32, segments: Segments },
    /// It is in place, or given up.
    Ended { file: u32 },
}

impl Record {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        match self {
            Record::Began {
                file,
                key,
                identity,
            } => {
                body.put_u8(BEGAN);
                body.put_u32(*file);
                body.put_string(key);
                body.put_string(identity);
            }
            Record::Proven { file, segments } => {
                body.put_u8(PROVEN);
                body.put_u32(*file);
                body.put_u32(segments.iter().len() as u32);
                for segment in segments.iter() {
                    body.put_u64(segment.start);
                    body.put_u64(segment.end);
                }
            }
            Record::Ended { file } => {
                body.put_u8(ENDED);
                body.put_u32(*file);
            }
        }
        body
    }

    /// `None`: a kind that is not known.
    pub(crate) fn decode(body: &[u8]) -> Result<Option<Record>, DecodeError> {
        let mut fields = Decoder::named("record of a journal", body);
        let kind = fields.field("kind").u8()?;
        let file = fields.field("file").u32()?;
        let record = match kind {
            BEGAN => Record::Began {
                file,
                key: fields.field("key").string()?.to_vec(),
                identity: fields.field("identity").string()?.to_vec(),
            },
            PROVEN => {
                let count = fields.field("count").u32()? as usize;
                let mut segments = Segments::default();
                for _ in 0..count.min(MAX_SEGMENTS) {
                    let start = fields.field("start").u64()?;
                    let end = fields.field("end").u64()?;
                    segments.insert(start..end);
                }
                Record::Proven { file, segments }
            }
            ENDED => Record::Ended { file },
            _ => return Ok(None),
        };
        fields.finish()?;
        Ok(Some(record))
    }
}
