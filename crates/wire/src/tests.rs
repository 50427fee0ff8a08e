//! Properties that every row of the table has.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::messages::{ROWS, Row, Sender};
use crate::{
    AuthMethod, Counted, Dialect, Extension, KexDialect, Message, NameList, Phase, Prompt,
    UserauthDialect, allowed, message_name,
};

/// Where the fields of [`Message::samples`] come from: one method for each wire type of the table.
pub(crate) struct Pool<'a> {
    bytes: &'a [u8],
    names: &'a [String],
    extensions: &'a [Extension<'a>],
    prompts: &'a [Prompt<'a>],
    responses: &'a [&'a [u8]],
}

impl<'a> Pool<'a> {
    fn take(&mut self, len: usize) -> &'a [u8] {
        let (head, tail) = self.bytes.split_at(len.min(self.bytes.len()));
        self.bytes = tail;
        head
    }

    fn u8(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or_default()
    }

    pub(crate) fn u32(&mut self) -> u32 {
        self.take(4)
            .iter()
            .fold(0, |sum, byte| sum << 8 | u32::from(*byte))
    }

    pub(crate) fn boolean(&mut self) -> bool {
        self.u8() & 1 == 1
    }

    pub(crate) fn cookie(&mut self) -> [u8; 16] {
        self.take(16).try_into().unwrap_or([7; 16])
    }

    pub(crate) fn string(&mut self) -> &'a [u8] {
        let len = usize::from(self.u8() % 40);
        self.take(len)
    }

    pub(crate) fn last_tag(&mut self) -> &'a [u8] {
        self.string()
    }

    pub(crate) fn tail(&mut self) -> &'a [u8] {
        self.string()
    }

    pub(crate) fn mpint(&mut self) -> &'a [u8] {
        let bytes = self.string();
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        &bytes[zeros..]
    }

    pub(crate) fn name_list(&mut self) -> NameList<'a> {
        let at = usize::from(self.u8());
        NameList::new(self.names.get(at % 8).map_or("", String::as_str))
    }

    pub(crate) fn extensions(&mut self) -> Counted<'a, Extension<'a>> {
        self.extensions.into()
    }

    pub(crate) fn prompts(&mut self) -> Counted<'a, Prompt<'a>> {
        self.prompts.into()
    }

    pub(crate) fn responses(&mut self) -> Counted<'a, &'a [u8]> {
        self.responses.into()
    }

    pub(crate) fn auth_method(&mut self) -> AuthMethod<'a> {
        let shape = self.u8() % 5;
        let optional = |pool: &mut Self| pool.boolean().then(|| pool.string());
        match shape {
            0 => AuthMethod::None,
            1 => AuthMethod::PublicKey {
                algorithm: self.string(),
                key: self.string(),
                signature: optional(self),
            },
            2 => AuthMethod::HostboundPublicKey {
                algorithm: self.string(),
                key: self.string(),
                signature: optional(self),
                host_key: self.string(),
            },
            3 => AuthMethod::Password {
                password: self.string(),
                new_password: optional(self),
            },
            _ => AuthMethod::KeyboardInteractive {
                language_tag: self.string(),
                submethods: self.string(),
            },
        }
    }
}

/// Owned raw material of a [`Pool`].
#[derive(Debug, Clone)]
struct Material {
    bytes: Vec<u8>,
    names: Vec<String>,
    pairs: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Material {
    /// Calls `check` with every row and a message of its kind.
    fn for_each_row(&self, mut check: impl FnMut(&Row, &Message<'_>)) {
        let extensions: Vec<_> = self
            .pairs
            .iter()
            .map(|(name, value)| Extension { name, value })
            .collect();
        let prompts: Vec<_> = self
            .pairs
            .iter()
            .map(|(prompt, echo)| Prompt {
                prompt,
                echo: echo.is_empty(),
            })
            .collect();
        let responses: Vec<_> = self.pairs.iter().map(|(name, _)| &name[..]).collect();
        let mut pool = Pool {
            bytes: &self.bytes,
            names: &self.names,
            extensions: &extensions,
            prompts: &prompts,
            responses: &responses,
        };
        let samples = Message::samples(&mut pool);
        assert_eq!(samples.len(), ROWS.len());
        ROWS.iter()
            .zip(&samples)
            .for_each(|(row, message)| check(row, message));
    }
}

fn material() -> impl Strategy<Value = Material> {
    (
        vec(any::<u8>(), 0..1500),
        vec("([!-+.-~]{1,12}(,[!-+.-~]{1,12}){0,4})?", 8),
        vec((vec(any::<u8>(), 0..20), vec(any::<u8>(), 0..2)), 0..5),
    )
        .prop_map(|(bytes, names, pairs)| Material {
            bytes,
            names,
            pairs,
        })
}

fn dialects() -> impl Iterator<Item = Dialect> {
    use {KexDialect::*, UserauthDialect::*};
    [Ecdh, Dh, GroupExchange].into_iter().flat_map(|kex| {
        [PublicKey, Password, KeyboardInteractive].map(|userauth| Dialect { kex, userauth })
    })
}

/// Rows whose last field takes whatever follows, so that no byte is left over.
fn takes_all(row: &Row) -> bool {
    [
        "GLOBAL_REQUEST",
        "REQUEST_SUCCESS",
        "CHANNEL_OPEN",
        "CHANNEL_OPEN_CONFIRMATION",
        "CHANNEL_REQUEST",
    ]
    .contains(&row.name)
}

/// Rows whose last field is a language tag, which may be missing altogether.
fn ends_in_tag(row: &Row) -> bool {
    [
        "DISCONNECT",
        "DEBUG",
        "USERAUTH_BANNER",
        "USERAUTH_PASSWD_CHANGEREQ",
        "CHANNEL_OPEN_FAILURE",
    ]
    .contains(&row.name)
}

proptest! {
    #[test]
    fn every_message_survives_the_round_trip(material in material()) {
        material.for_each_row(|row, message| {
            let mut payload = Vec::new();
            message.encode(&mut payload);
            assert_eq!((payload[0], message.number(), message.name()), (row.number, row.number, row.name));
            let decoded = Message::decode(&payload, row.dialect);
            assert_eq!(decoded, Ok(*message));
            // What was decoded encodes to the same bytes: lists kept as bytes included.
            let mut again = Vec::new();
            decoded.unwrap().encode(&mut again);
            assert_eq!(again, payload);
        });
    }

    #[test]
    fn a_byte_too_many_is_rejected(material in material(), extra in any::<u8>()) {
        material.for_each_row(|row, message| {
            let mut payload = Vec::new();
            message.encode(&mut payload);
            payload.push(extra);
            assert_eq!(Message::decode(&payload, row.dialect).is_err(), !takes_all(row), "{}", row.name);
        });
    }

    #[test]
    fn a_message_cut_short_is_rejected(material in material(), cut in any::<prop::sample::Index>()) {
        material.for_each_row(|row, message| {
            let mut payload = Vec::new();
            message.encode(&mut payload);
            let short = &payload[..cut.index(payload.len())];
            if let Ok(part) = Message::decode(short, row.dialect) {
                let mut again = Vec::new();
                part.encode(&mut again);
                // Cut exactly before the tag, which then reads as empty.
                let tag: &[u8] = if ends_in_tag(row) { &[0; 4] } else { &[] };
                assert!(takes_all(row) || ends_in_tag(row), "{}", row.name);
                assert_eq!(again, [short, tag].concat());
            }
        });
    }

    #[test]
    fn any_bytes_decode_or_fail_and_never_panic(mut payload in vec(any::<u8>(), 0..300), row in 0..ROWS.len()) {
        if let Some(first) = payload.first_mut() {
            *first = ROWS[row].number;
        }
        for dialect in dialects() {
            if let Ok(message) = Message::decode(&payload, dialect) {
                let mut encoded = Vec::new();
                message.encode(&mut encoded);
                assert_eq!(Message::decode(&encoded, dialect), Ok(message));
            }
        }
    }
}

#[test]
fn an_empty_payload_is_an_error() {
    let error = Message::decode(&[], Dialect::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the peer's packet is malformed: message_number needs 1 bytes where 0 are left"
    );
}

#[test]
fn a_number_has_one_meaning_in_a_dialect() {
    for dialect in dialects() {
        for number in 0..=u8::MAX {
            let rows = ROWS.iter().filter(|row| {
                row.number == number
                    && (row.dialect.kex == dialect.kex || !(30..50).contains(&number))
                    && (row.dialect.userauth == dialect.userauth || !(60..80).contains(&number))
            });
            let count = rows.count();
            assert!(count <= 1, "{number} has {count} rows in {dialect:?}");
            // Zeros up to the largest message's size: decoding them gets as far as choosing the row.
            let mut payload = [0; 200];
            payload[0] = number;
            let unknown = matches!(
                Message::decode(&payload, dialect),
                Ok(Message::Unknown { .. })
            );
            assert_eq!(unknown, count == 0, "{number} in {dialect:?}");
        }
    }
}

#[test]
fn names_and_rows_agree() {
    let names: BTreeSet<_> = ROWS.iter().map(|row| row.name).collect();
    assert_eq!(names.len(), ROWS.len(), "two rows share a name");
    for number in 0..=u8::MAX {
        let of_rows: Vec<_> = ROWS
            .iter()
            .filter(|row| row.number == number)
            .map(|row| row.name)
            .collect();
        match of_rows.is_empty() {
            true => assert_eq!(message_name(number), "UNKNOWN"),
            false => assert_eq!(message_name(number), of_rows.join("|")),
        }
    }
}

#[test]
fn clients_receive_nothing_that_only_clients_send() {
    for row in ROWS {
        let somewhere = PHASES.iter().any(|(phase, _)| row.phases.contains(*phase));
        assert_eq!(somewhere, row.sender != Sender::Client, "{}", row.name);
    }
}

/// What a client may receive when, written down a second time, by phase.
const PHASES: &[(Phase, &[u8])] = &[
    (Phase::Version, &[]),
    (Phase::Opening, &[1, 2, 3, 4, 20]),
    (STRICT_KEX, &[1, 21, 31, 33]),
    (INITIAL_KEX, &[1, 2, 3, 4, 21, 31, 33]),
    (REKEYING, &[1, 2, 3, 4, 21, 31, 33]),
    (STRICT_REKEYING, &[1, 2, 3, 4, 21, 31, 33]),
    (Phase::Service, &[1, 2, 3, 4, 6, 7, 20]),
    (Phase::Userauth, &[1, 2, 3, 4, 7, 20, 51, 52, 53, 60]),
    (
        Phase::Connection,
        &[
            1, 2, 3, 4, 20, 80, 81, 82, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 100, 192, 193,
        ],
    ),
];

const STRICT_KEX: Phase = Phase::KeyExchange {
    initial: true,
    strict: true,
};
const INITIAL_KEX: Phase = Phase::KeyExchange {
    initial: true,
    strict: false,
};
const REKEYING: Phase = Phase::KeyExchange {
    initial: false,
    strict: false,
};
const STRICT_REKEYING: Phase = Phase::KeyExchange {
    initial: false,
    strict: true,
};

#[test]
fn a_client_may_receive_exactly_this() {
    for (phase, expected) in PHASES {
        let received: Vec<u8> = (0..=u8::MAX)
            .filter(|number| allowed(*number, *phase))
            .collect();
        assert_eq!(received, *expected, "{phase:?}");
    }
}
