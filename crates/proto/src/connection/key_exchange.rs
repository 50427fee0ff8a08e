//! Key exchange and re-exchange: RFC 4253 sections 7 to 9, RFC 4419, RFC 5656, OpenSSH's strict variant.

mod arithmetic;
mod rekey;
mod states;

use std::time::Instant;

use sshoal_crypto::kex::GexGroup;
use sshoal_crypto::{Ephemeral, KexAlgorithm, KexMethod};
use sshoal_wire::{
    ExtInfo, KexDhInit, KexDialect, KexEcdhInit, KexGexInit, KexGexRequest, KexInit,
    MAX_NAME_LIST_LEN, NameList, NewKeys, Put,
};

use super::authentication::Authentication;
use super::{Connection, Held, Login, ServerLists, ServerProfile};
use crate::error::{ConnectionError, Misbehaviour};
use crate::event::{Event, HostKeyQuestion};
use crate::negotiation::{choose, propose};
use crate::settings::Settings;

use arithmetic::{Halves, NextKeys};
use states::{Agreed, Offer, Ours, Proven};

pub(super) use states::{Established, Exchange};

/// Sizes of a group for RFC 4419, bits: OpenSSH's limits and preference (dh.h, kexgexc.c).
const GROUP_MIN: u32 = 2048;
const GROUP_PREFERRED: u32 = 3072;
const GROUP_MAX: u32 = 8192;
/// Longest host key or certificate, octets. One with as many names as OpenSSH allows (sshkey.h,
/// SSHKEY_CERT_MAX_PRINCIPALS) has half of that; twice as much would not fit into what an agent takes as session-bind.
const MAX_HOST_KEY: usize = 128 * 1024;
/// RFC 4251 section 6: algorithm names "MUST NOT be longer than 64 characters".
const MAX_NAME: usize = 64;

/// Our identification string without CR LF (RFC 4253 section 4.2).
pub(super) fn client_identification(settings: &Settings) -> String {
    format!("SSH-2.0-{}", settings.software)
}

fn dialect(method: KexMethod) -> KexDialect {
    match method {
        KexMethod::DhGroup14 | KexMethod::DhGroup16 | KexMethod::DhGroup18 => KexDialect::Dh,
        KexMethod::DhGroupExchange => KexDialect::GroupExchange,
        _ => KexDialect::Ecdh,
    }
}

// Sending our side.
impl Connection {
    /// Sends KEXINIT, and on the first exchange the guessed next message if the opening asks for it.
    pub(super) fn start_key_exchange(&mut self) -> Result<(), ConnectionError> {
        let initial = matches!(self.login, Login::Unkeyed);
        let guessed = match initial && self.opening.guess_key_exchange {
            true => self
                .settings
                .kex
                .first()
                .filter(|kex| kex.method != KexMethod::DhGroupExchange)
                .copied(),
            false => None,
        };
        let kex_init = propose(
            &self.settings,
            &self.opening.host_key_algorithms,
            initial,
            guessed.is_some(),
        );
        self.outgoing.seal(|out| out.put_bytes(&kex_init))?;
        let guess = guessed.map(|kex| self.send_init(kex, None)).transpose()?;
        self.exchange = Exchange::ExpectKexInit(Box::new(Offer { kex_init, guess }));
        Ok(())
    }

    /// Makes our half and sends it.
    fn send_init(
        &mut self,
        kex: &KexAlgorithm,
        group: Option<&GexGroup>,
    ) -> Result<Ephemeral, ConnectionError> {
        let ephemeral = Ephemeral::generate(kex.method, group)?;
        let public = ephemeral.public();
        match dialect(kex.method) {
            KexDialect::Ecdh => self
                .outgoing
                .seal(|out| KexEcdhInit { public }.encode(out))?,
            KexDialect::Dh => self
                .outgoing
                .seal(|out| KexDhInit { e: public }.encode(out))?,
            KexDialect::GroupExchange => self
                .outgoing
                .seal(|out| KexGexInit { e: public }.encode(out))?,
        };
        Ok(ephemeral)
    }

    pub(super) fn strict(&self) -> bool {
        match (&self.established, &self.exchange) {
            (Some(established), _) => established.strict,
            (None, Exchange::ExpectGroup(agreed) | Exchange::ExpectReply(agreed, _)) => {
                agreed.chosen.strict
            }
            (None, Exchange::ExpectVerdict(proven)) => proven.established.strict,
            _ => false,
        }
    }
}

// The server's side, in the order in which it comes.
impl Connection {
    pub(super) fn handle_kex_init(
        &mut self,
        theirs: &KexInit<'_>,
        octets: &[u8],
        sequence: u32,
    ) -> Result<(), ConnectionError> {
        if self.exchange.is_idle() {
            self.start_key_exchange()?;
        }
        let Exchange::ExpectKexInit(offer) = std::mem::replace(&mut self.exchange, Exchange::Idle)
        else {
            return Err(self.out_of_turn("KEXINIT"));
        };
        let chosen = choose(&self.settings, &self.opening.host_key_algorithms, theirs);
        if chosen.is_err() && self.established.is_none() {
            // What others may have in common with it.
            self.remember_lists(theirs);
        }
        let mut chosen = chosen?;
        match &self.established {
            Some(established) => chosen.strict = established.strict,
            // PROTOCOL, strict key exchange: KEXINIT must be the first packet. Anything before it could be a
            // Terrapin prefix (CVE-2023-48795).
            None if chosen.strict && sequence != 0 => {
                return Err(Misbehaviour::StrictKexInitNotFirst.into());
            }
            None => self.remember_lists(theirs),
        }
        let Offer { kex_init, guess } = *offer;
        let agreed = Box::new(Agreed {
            skip_next: chosen.skip_next,
            chosen,
            client_kex_init: kex_init,
            server_kex_init: octets.to_vec(),
        });
        let usable_guess = guess.filter(|_| chosen.guess_was_right);
        if chosen.kex.method == KexMethod::DhGroupExchange {
            let request = KexGexRequest {
                min: GROUP_MIN,
                n: GROUP_PREFERRED,
                max: GROUP_MAX,
            };
            self.outgoing.seal(|out| request.encode(out))?;
            self.exchange = Exchange::ExpectGroup(agreed);
            return Ok(());
        }
        let ephemeral = match usable_guess {
            Some(ephemeral) => ephemeral,
            None => self.send_init(chosen.kex, None)?,
        };
        self.exchange = Exchange::ExpectReply(
            agreed,
            Box::new(Ours {
                ephemeral,
                group: None,
            }),
        );
        Ok(())
    }

    pub(super) fn handle_kex_group(&mut self, p: &[u8], g: &[u8]) -> Result<(), ConnectionError> {
        let Exchange::ExpectGroup(agreed) = std::mem::replace(&mut self.exchange, Exchange::Idle)
        else {
            return Err(self.out_of_turn("KEX_DH_GEX_GROUP"));
        };
        let group = GexGroup {
            p: p.to_vec(),
            g: g.to_vec(),
        };
        let ephemeral = self.send_init(agreed.chosen.kex, Some(&group))?;
        self.exchange = Exchange::ExpectReply(
            agreed,
            Box::new(Ours {
                ephemeral,
                group: Some(group),
            }),
        );
        Ok(())
    }

    /// The server's half: shared secret, exchange hash, signature; then the caller judges the host key.
    /// `message` is what the method calls it.
    pub(super) fn handle_kex_reply(
        &mut self,
        message: &'static str,
        host_key: &[u8],
        public: &[u8],
        signature: &[u8],
    ) -> Result<(), ConnectionError> {
        let Exchange::ExpectReply(agreed, ours) =
            std::mem::replace(&mut self.exchange, Exchange::Idle)
        else {
            return Err(self.out_of_turn(message));
        };
        if host_key.len() > MAX_HOST_KEY {
            return Err(Misbehaviour::Flood {
                what: "octets in a host key",
                limit: MAX_HOST_KEY,
            }
            .into());
        }
        // RFC 4253 section 8: the client "verifies the signature on H" before anything is made of the host key.
        let Ours { ephemeral, group } = *ours;
        let client_public = ephemeral.public().to_vec();
        let secret = ephemeral.agree(public)?;
        let halves = Halves {
            host_key,
            client: &client_public,
            server: public,
            group: group.as_ref(),
        };
        let hash = self.exchange_hash(&agreed, &halves, &secret);
        self.verify_host_key(agreed.chosen.host_key, host_key, signature, &hash)?;
        match &self.established {
            // The caller judged one host key: another one in its place would go unjudged.
            Some(established) if established.host_key != host_key => {
                Err(Misbehaviour::HostKeyChangedOnRekey.into())
            }
            Some(established) => {
                let keys =
                    NextKeys::derive(&agreed.chosen, &secret, &hash, &established.session_id)?;
                self.use_next_keys(keys)
            }
            None => {
                let keys = NextKeys::derive(&agreed.chosen, &secret, &hash, &hash)?;
                if let Some(kept) = &mut self.kept {
                    kept.kex = Some(agreed.chosen.kex.name);
                }
                self.tell(Event::HostKey(HostKeyQuestion {
                    algorithm: agreed.chosen.host_key,
                    blob: host_key.to_vec(),
                }));
                let established = Established {
                    session_id: hash,
                    host_key: host_key.to_vec(),
                    host_key_algorithm: agreed.chosen.host_key,
                    proof: signature.to_vec(),
                    strict: agreed.chosen.strict,
                    limits: keys.limits,
                    signature_algorithms: None,
                    hostbound: false,
                };
                self.exchange = Exchange::ExpectVerdict(Box::new(Proven { keys, established }));
                Ok(())
            }
        }
    }

    /// The host key of [`Event::HostKey`] is the right one: from here on the user's secrets may be sent.
    ///
    /// # Errors
    ///
    /// The error that ended the connection, if it is over.
    pub fn accept_host_key(&mut self) -> Result<(), ConnectionError> {
        self.check()?;
        let result = match std::mem::replace(&mut self.exchange, Exchange::Idle) {
            Exchange::ExpectVerdict(proven) => {
                self.established = Some(Box::new(proven.established));
                self.use_next_keys(proven.keys)
            }
            other => {
                self.exchange = other;
                Ok(())
            }
        };
        result.map_err(|error| self.fail(error))
    }

    /// The host key of [`Event::HostKey`] is not the right one: the connection is over.
    pub fn refuse_host_key(&mut self) {
        self.fail(ConnectionError::HostKeyRefused);
    }

    /// Sends NEWKEYS; our next packet uses the new keys, theirs after their NEWKEYS.
    fn use_next_keys(&mut self, keys: NextKeys) -> Result<(), ConnectionError> {
        let strict = match &mut self.established {
            Some(established) => {
                established.limits = keys.limits;
                established.strict
            }
            None => false,
        };
        // RFC 4253 section 7.3: NEWKEYS "is sent with the old keys and algorithms. All messages sent after this message
        // MUST use the new keys and algorithms."
        self.outgoing.seal(|out| NewKeys.encode(out))?;
        self.outgoing.rekey(keys.sealer, strict);
        self.exchange = Exchange::ExpectNewKeys(Box::new(keys.opener));
        self.held_replies = 0;
        for Held { message, starts } in std::mem::take(&mut self.held) {
            let sequence = self.outgoing.seal(|out| out.put_bytes(&message))?;
            if let Some(channel) = starts {
                self.note_start(channel, sequence);
            }
        }
        Ok(())
    }

    pub(super) fn handle_new_keys(&mut self, now: Instant) -> Result<(), ConnectionError> {
        let Exchange::ExpectNewKeys(opener) = std::mem::replace(&mut self.exchange, Exchange::Idle)
        else {
            return Err(self.out_of_turn("NEWKEYS"));
        };
        self.incoming.rekey(*opener, self.strict());
        self.last_exchange = now;
        if matches!(self.login, Login::Unkeyed) {
            self.login = Login::Authenticating(Box::new(Authentication::new()));
            return self.request_service();
        }
        self.offer_room();
        Ok(())
    }

    /// EXT_INFO (RFC 8308 section 2.5): "Applications MUST ignore unrecognized extension names." A later value of an
    /// extension replaces an earlier one (section 2.4).
    pub(super) fn handle_ext_info(&mut self, info: &ExtInfo<'_>) {
        let Some(established) = &mut self.established else {
            return;
        };
        for extension in info.extensions.iter() {
            match extension.name {
                b"server-sig-algs" if extension.value.len() <= MAX_NAME_LIST_LEN => {
                    established.signature_algorithms =
                        std::str::from_utf8(extension.value).ok().map(str::to_owned);
                }
                b"publickey-hostbound@openssh.com" => {
                    established.hostbound = extension.value == b"0"
                }
                _ => {}
            }
        }
    }

    fn out_of_turn(&self, message: &'static str) -> ConnectionError {
        Misbehaviour::Unexpected {
            message,
            during: self.phase(),
        }
        .into()
    }

    fn remember_lists(&mut self, theirs: &KexInit<'_>) {
        let first = |list: NameList<'_>| {
            let name = list.first().filter(|name| name.len() <= MAX_NAME);
            name.unwrap_or_default().to_owned()
        };
        self.profile = self.server.as_ref().ok().map(|identification| {
            Box::new(ServerProfile {
                identification: identification.as_str().to_owned(),
                first_kex: first(theirs.kex_algorithms),
                first_host_key: first(theirs.server_host_key_algorithms),
            })
        });
        if self.settings.keeps_lists
            && let Some(kept) = &mut self.kept
        {
            kept.lists = Some(ServerLists {
                kex: names(theirs.kex_algorithms, None),
                host_keys: names(theirs.server_host_key_algorithms, None),
                ciphers: names(
                    theirs.encryption_algorithms_server_to_client,
                    Some(theirs.encryption_algorithms_client_to_server),
                ),
                macs: names(
                    theirs.mac_algorithms_server_to_client,
                    Some(theirs.mac_algorithms_client_to_server),
                ),
            });
        }
    }
}

/// The names of a list that are also in the other direction's; without those that RFC 4251 does not allow.
fn names(list: NameList<'_>, other: Option<NameList<'_>>) -> Vec<String> {
    let both = |name: &&str| other.is_none_or(|other| other.contains(name));
    let names = list.iter().filter(|name| name.len() <= MAX_NAME);
    names.filter(both).map(str::to_owned).collect()
}
