//! Writing the data types of RFC 4251, section 5.

use crate::{ChannelData, NameList};

/// Appends SSH's data types to a buffer.
pub trait Put {
    /// RFC 4251 `byte`.
    fn put_u8(&mut self, value: u8);
    /// RFC 4251 `uint32`.
    fn put_u32(&mut self, value: u32);
    /// RFC 4251 `uint64`.
    fn put_u64(&mut self, value: u64);
    /// RFC 4251 `boolean`.
    fn put_boolean(&mut self, value: bool);
    /// Bytes as they are, with no length before them.
    fn put_bytes(&mut self, bytes: &[u8]);
    /// RFC 4251 `string`.
    ///
    /// # Panics
    /// If `bytes` has 4 GiB or more, which no SSH packet can carry.
    fn put_string(&mut self, bytes: &[u8]);
    /// RFC 4251 `mpint` of a non-negative number, given as its big-endian magnitude.
    fn put_mpint(&mut self, magnitude: &[u8]);
    /// RFC 4251 `name-list`.
    fn put_name_list(&mut self, names: NameList<'_>);
}

impl Put for Vec<u8> {
    fn put_u8(&mut self, value: u8) {
        self.push(value);
    }

    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_boolean(&mut self, value: bool) {
        self.push(u8::from(value));
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn put_string(&mut self, bytes: &[u8]) {
        self.put_u32(string_len(bytes.len()));
        self.extend_from_slice(bytes);
    }

    fn put_mpint(&mut self, magnitude: &[u8]) {
        let zeros = magnitude.iter().take_while(|byte| **byte == 0).count();
        let magnitude = &magnitude[zeros..];
        // The highest bit is the sign: a number that sets it needs a zero byte before it.
        let sign = usize::from(magnitude.first().is_some_and(|first| first & 0x80 != 0));
        self.put_u32(string_len(sign + magnitude.len()));
        self.extend_from_slice(&[0][..sign]);
        self.extend_from_slice(magnitude);
    }

    fn put_name_list(&mut self, names: NameList<'_>) {
        self.put_string(names.as_str().as_bytes());
    }
}

impl ChannelData<'_> {
    /// Appends the payload up to its data, of which `len` octets are to follow.
    pub fn encode_head(recipient_channel: u32, len: u32, out: &mut Vec<u8>) {
        out.put_u8(Self::NUMBER);
        out.put_u32(recipient_channel);
        out.put_u32(len);
    }
}

/// A length as it stands before a string.
fn string_len(len: usize) -> u32 {
    u32::try_from(len).expect("no SSH packet carries a string of 4 GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_and_its_data_are_a_message() {
        let message = ChannelData {
            recipient_channel: 7,
            data: b"octets",
        };
        let (mut whole, mut parts) = (Vec::new(), Vec::new());
        message.encode(&mut whole);
        ChannelData::encode_head(7, 6, &mut parts);
        parts.put_bytes(b"octets");
        assert_eq!(whole, parts);
    }
}
