//! The macro that makes code of the table in [`crate::messages`].
//!
//! A wire type in the table is the name of a [`Decoder`] method, and a row in each of the three macros below.

use crate::{
    AuthMethod, Counted, DecodeError, Decoder, Extension, MAX_EXTENSIONS, MAX_PROMPTS, Prompt,
};

/// The Rust type of a wire type.
macro_rules! wire_type {
    (u32)         => { u32 };
    (boolean)     => { bool };
    (cookie)      => { [u8; 16] };
    (string)      => { &'a [u8] };
    (last_tag)    => { &'a [u8] };
    (mpint)       => { &'a [u8] };
    (name_list)   => { NameList<'a> };
    (auth_method) => { AuthMethod<'a> };
    (extensions)  => { Counted<'a, Extension<'a>> };
    (prompts)     => { Counted<'a, Prompt<'a>> };
    (responses)   => { Counted<'a, &'a [u8]> };
    (tail)        => { &'a [u8] };
}

/// What a wire type is called in documentation: the RFC's words.
macro_rules! wire_words {
    (u32) => {
        "`uint32`"
    };
    (boolean) => {
        "`boolean`"
    };
    (cookie) => {
        "`byte[16]`"
    };
    (string) => {
        "`string`"
    };
    (last_tag) => {
        "`string`, a language tag; one left away is read as empty"
    };
    (mpint) => {
        "`mpint`, here its magnitude"
    };
    (name_list) => {
        "`name-list`"
    };
    (auth_method) => {
        "`string`, and the fields that the method has"
    };
    (extensions) => {
        "`uint32`, and as many pairs of `string`"
    };
    (prompts) => {
        "`uint32`, and as many pairs of `string` and `boolean`"
    };
    (responses) => {
        "`uint32`, and as many `string`"
    };
    (tail) => {
        "all bytes that are left"
    };
}

/// Appends one field.
macro_rules! wire_put {
    (u32       $value:expr, $out:ident) => {
        $out.put_u32($value)
    };
    (boolean   $value:expr, $out:ident) => {
        $out.put_boolean($value)
    };
    (cookie    $value:expr, $out:ident) => {
        $out.put_bytes(&$value)
    };
    (string    $value:expr, $out:ident) => {
        $out.put_string($value)
    };
    (last_tag  $value:expr, $out:ident) => {
        $out.put_string($value)
    };
    (mpint     $value:expr, $out:ident) => {
        $out.put_mpint($value)
    };
    (name_list $value:expr, $out:ident) => {
        $out.put_name_list($value)
    };
    (tail      $value:expr, $out:ident) => {
        $out.put_bytes($value)
    };
    ($other:ident $value:expr, $out:ident) => {
        $value.encode($out)
    };
}

/// The wire types that only the table uses.
impl<'a> Decoder<'a> {
    pub(crate) fn cookie(&mut self) -> Result<[u8; 16], DecodeError> {
        self.array()
    }

    /// A language tag (RFC 3066) at the end of a message. OpenSSH's client does not read the one of DISCONNECT
    /// (packet.c, `ssh_packet_read_poll_seqnr`), so servers that leave it away go unnoticed and exist.
    pub(crate) fn last_tag(&mut self) -> Result<&'a [u8], DecodeError> {
        if self.unread().is_empty() {
            return Ok(&[]);
        }
        self.string()
    }

    pub(crate) fn auth_method(&mut self) -> Result<AuthMethod<'a>, DecodeError> {
        AuthMethod::decode(self)
    }

    pub(crate) fn extensions(&mut self) -> Result<Counted<'a, Extension<'a>>, DecodeError> {
        Counted::decode(self, MAX_EXTENSIONS)
    }

    pub(crate) fn prompts(&mut self) -> Result<Counted<'a, Prompt<'a>>, DecodeError> {
        Counted::decode(self, MAX_PROMPTS)
    }

    pub(crate) fn responses(&mut self) -> Result<Counted<'a, &'a [u8]>, DecodeError> {
        Counted::decode(self, MAX_PROMPTS)
    }

    pub(crate) fn tail(&mut self) -> Result<&'a [u8], DecodeError> {
        Ok(self.rest())
    }
}

/// One message's struct; a message without fields is a unit struct.
macro_rules! message_struct {
    ($(#[$doc:meta])* $message:ident {}) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $message;
    };
    ($(#[$doc:meta])* $message:ident $(<$life:lifetime>)? { $($field:ident: $type:ident),+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $message $(<$life>)? {
            $(
                #[doc = concat!(wire_words!($type), ".")]
                pub $field: wire_type!($type),
            )+
        }
    };
}

/// Structs, [`Message`](crate::Message) and [`ROWS`](crate::messages::ROWS), from the table of all messages.
macro_rules! messages {
    ($(
        $(#[$doc:meta])*
        $number:literal $name:ident $message:ident $(<$life:lifetime>)?
        $sender:ident [$($phase:ident)*] $source:literal
        $(when $part:ident = $kind:ident::$variant:ident)?
        { $($field:ident: $type:ident),* $(,)? }
    )*) => {
        $(
            message_struct! {
                #[doc = concat!("`SSH_MSG_", stringify!($name), "`, ", stringify!($number), " (", $source, ").")]
                #[doc = ""]
                $(#[$doc])*
                $message $(<$life>)? { $($field: $type),* }
            }

            impl $(<$life>)? $message $(<$life>)? {
                /// The message number.
                pub const NUMBER: u8 = $number;

                /// Appends the payload: the number and the fields.
                pub fn encode(&self, out: &mut Vec<u8>) {
                    out.put_u8(Self::NUMBER);
                    $(wire_put!($type self.$field, out);)*
                }

                #[allow(unused_variables, reason = "a message without fields reads none")]
                fn decode_fields(decoder: &mut Decoder $(<$life>)?) -> Result<Self, DecodeError> {
                    Ok(Self {
                        $($field: decoder.field(stringify!($field)).$type()?,)*
                    })
                }
            }

            impl<'a> From<$message $(<$life>)?> for Message<'a> {
                fn from(message: $message $(<$life>)?) -> Self {
                    Self::$message(message)
                }
            }
        )*

        /// Any message that this program knows.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Message<'a> {
            $(
                #[doc = concat!("`SSH_MSG_", stringify!($name), "`, ", stringify!($number), ".")]
                $message($message $(<$life>)?),
            )*
            /// A number without a meaning in this dialect. RFC 4253, section 11.4: "An implementation MUST respond
            /// to all unrecognized messages with an SSH_MSG_UNIMPLEMENTED message".
            Unknown {
                /// The message number.
                number: u8,
            },
        }

        impl<'a> Message<'a> {
            /// Reads a packet's payload.
            ///
            /// # Errors
            /// An empty payload, a malformed field, a count over its limit, or bytes after the last field.
            pub fn decode(payload: &'a [u8], dialect: Dialect) -> Result<Self, DecodeError> {
                let mut decoder = Decoder::named("packet", payload);
                match decoder.field("message_number").u8()? {
                    $(
                        $number $(if dialect.$part == $kind::$variant)? => {
                            let mut decoder = Decoder::named(stringify!($name), decoder.unread());
                            let message = $message::decode_fields(&mut decoder)?;
                            decoder.finish()?;
                            Ok(Self::$message(message))
                        }
                    )*
                    number => Ok(Self::Unknown { number }),
                }
            }

            /// Appends the payload. An unknown message has its number only.
            pub fn encode(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$message(message) => message.encode(out),)*
                    Self::Unknown { number } => out.put_u8(*number),
                }
            }

            /// The message number.
            #[must_use]
            pub const fn number(&self) -> u8 {
                match self {
                    $(Self::$message(_) => $number,)*
                    Self::Unknown { number } => *number,
                }
            }

            /// The RFC's name of the message, without `SSH_MSG_`.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$message(_) => stringify!($name),)*
                    Self::Unknown { .. } => "UNKNOWN",
                }
            }

            /// One message of every row, in the table's order, its fields drawn from `pool`.
            #[cfg(test)]
            pub(crate) fn samples(pool: &mut crate::tests::Pool<'a>) -> Vec<Self> {
                vec![$(Self::$message($message { $($field: pool.$type()),* }),)*]
            }
        }

        /// The table as data, in its own order.
        pub const ROWS: &[Row] = &[$(
            Row {
                number: $number,
                name: stringify!($name),
                sender: Sender::$sender,
                phases: PhaseSet::NONE $(.union(PhaseSet::$phase))*,
                #[allow(clippy::needless_update, reason = "rows of shared numbers set one part")]
                dialect: Dialect { $($part: $kind::$variant,)? ..Dialect::USUAL },
            },
        )*];
    };
}
