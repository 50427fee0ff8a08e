//! Lists whose elements are counted before they come.

use std::fmt;

use crate::{DecodeError, Decoder, Problem, Put};

/// Most extensions accepted in one EXT_INFO, about as many as OpenSSH accepts (kex.c, `kex_input_ext_info`).
pub const MAX_EXTENSIONS: u32 = 1024;

/// Most prompts accepted in one USERAUTH_INFO_REQUEST; OpenSSH's server accepts as many responses
/// (auth2-chall.c, `input_userauth_info_response`).
pub const MAX_PROMPTS: u32 = 100;

/// One element of a [`Counted`] list.
pub trait Element<'a>: Copy {
    /// Reads one element.
    ///
    /// # Errors
    /// Malformed input.
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError>;
    /// Appends the element.
    fn encode(&self, out: &mut Vec<u8>);
}

/// One extension of EXT_INFO (RFC 8308, section 2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extension<'a> {
    /// `extension-name`
    pub name: &'a [u8],
    /// `extension-value`, whose format the name decides.
    pub value: &'a [u8],
}

/// One question of keyboard-interactive authentication (RFC 4256, section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prompt<'a> {
    /// What to show, as UTF-8 chosen by the server: sanitise it before a terminal sees it.
    pub prompt: &'a [u8],
    /// Whether the answer may be shown while it is typed.
    pub echo: bool,
}

impl<'a> Element<'a> for Extension<'a> {
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            name: decoder.string()?,
            value: decoder.string()?,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.put_string(self.name);
        out.put_string(self.value);
    }
}

impl<'a> Element<'a> for Prompt<'a> {
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            prompt: decoder.string()?,
            echo: decoder.boolean()?,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.put_string(self.prompt);
        out.put_boolean(self.echo);
    }
}

impl<'a> Element<'a> for &'a [u8] {
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        decoder.string()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.put_string(self);
    }
}

/// A `uint32` count and that many elements: either a slice to send (`Counted::from(&[..])`), or bytes received
/// whose every element was found sound when they were decoded, and which are read again by [`iter`](Self::iter).
#[derive(Clone, Copy)]
pub struct Counted<'a, T>(Form<'a, T>);

#[derive(Clone, Copy)]
enum Form<'a, T> {
    Slice(&'a [T]),
    Wire { count: usize, elements: &'a [u8] },
}

impl<'a, T: Element<'a>> Counted<'a, T> {
    /// Reads a count of at most `limit`, and the elements.
    ///
    /// # Errors
    /// Too many elements, or a malformed one.
    pub fn decode(decoder: &mut Decoder<'a>, limit: u32) -> Result<Self, DecodeError> {
        let count = decoder.u32()?;
        if count > limit {
            return Err(decoder.error(Problem::TooMany { count, limit }));
        }
        let elements = decoder.unread();
        for _ in 0..count {
            T::decode(decoder)?;
        }
        let len = elements.len() - decoder.unread().len();
        Ok(Self(Form::Wire {
            count: count as usize,
            elements: &elements[..len],
        }))
    }

    /// Appends the count and the elements.
    ///
    /// # Panics
    /// If there are 4 Gi elements, which no packet can carry.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let count = u32::try_from(self.len()).expect("no SSH packet carries 4 Gi elements");
        out.put_u32(count);
        match self.0 {
            Form::Slice(elements) => elements.iter().for_each(|element| element.encode(out)),
            Form::Wire { elements, .. } => out.put_bytes(elements),
        }
    }

    /// The elements in order.
    #[must_use]
    pub fn iter(&self) -> Items<'a, T> {
        Items(match self.0 {
            Form::Slice(elements) => Cursor::Slice(elements.iter()),
            Form::Wire { elements, .. } => Cursor::Wire(Decoder::new(elements)),
        })
    }

    /// How many elements there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self.0 {
            Form::Slice(elements) => elements.len(),
            Form::Wire { count, .. } => count,
        }
    }

    /// Whether there is no element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a, T> From<&'a [T]> for Counted<'a, T> {
    fn from(elements: &'a [T]) -> Self {
        Self(Form::Slice(elements))
    }
}

impl<'a, T, const N: usize> From<&'a [T; N]> for Counted<'a, T> {
    fn from(elements: &'a [T; N]) -> Self {
        Self(Form::Slice(elements))
    }
}

impl<'a, T> From<&'a Vec<T>> for Counted<'a, T> {
    fn from(elements: &'a Vec<T>) -> Self {
        Self(Form::Slice(elements))
    }
}

impl<'a, T: Element<'a>> IntoIterator for Counted<'a, T> {
    type Item = T;
    type IntoIter = Items<'a, T>;

    fn into_iter(self) -> Items<'a, T> {
        self.iter()
    }
}

impl<'a, T: Element<'a> + PartialEq> PartialEq for Counted<'a, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<'a, T: Element<'a> + Eq> Eq for Counted<'a, T> {}

/// Shows the count only: the elements may be a user's answers.
impl<'a, T: Element<'a>> fmt::Debug for Counted<'a, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Counted({})", self.len())
    }
}

/// The elements of a [`Counted`] list.
#[derive(Clone)]
pub struct Items<'a, T>(Cursor<'a, T>);

#[derive(Clone)]
enum Cursor<'a, T> {
    Slice(std::slice::Iter<'a, T>),
    Wire(Decoder<'a>),
}

impl<'a, T: Element<'a>> Iterator for Items<'a, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match &mut self.0 {
            Cursor::Slice(elements) => elements.next().copied(),
            // The bytes end exactly after the last element, all of which have been decoded once.
            Cursor::Wire(decoder) => T::decode(decoder).ok(),
        }
    }
}
