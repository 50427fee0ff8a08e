//! Key exchange and re-exchange: RFC 4253 sections 7 to 9, RFC 4419, RFC 5656, OpenSSH's strict variant.

use std::time::Instant;

use sshoal_crypto::kex::GexGroup;
use sshoal_crypto::{
    Digest, Ephemeral, HostCertificate, KexAlgorithm, KexMethod, Opener, Sealer, SharedSecret,
    derive_key, verify_with_minimum,
};
use sshoal_wire::{
    Decoder, ExtInfo, KexDhInit, KexDialect, KexEcdhInit, KexGexInit, KexGexRequest, KexInit,
    NameList, NewKeys, Put,
};
use zeroize::Zeroizing;

use super::authentication::Authentication;
use super::{Connection, Held, Login, ServerProfile};
use crate::error::{ConnectionError, Misbehaviour};
use crate::event::{Event, HostKeyQuestion};
use crate::negotiation::{Chosen, Protection, choose, propose};
use crate::settings::Settings;

/// Sizes of a group for RFC 4419, bits: OpenSSH's limits and preference (dh.h, kexgexc.c).
const GROUP_MIN: u32 = 2048;
const GROUP_PREFERRED: u32 = 3072;
const GROUP_MAX: u32 = 8192;

/// A key exchange, by what it awaits.
///
/// ```text
/// Idle --our KEXINIT--> ExpectKexInit --theirs--> (ExpectGroup -->) ExpectReply
///   ^                                                                  | their reply, signature good
///   |                        first exchange: ExpectVerdict <-----------+
///   |                                            | accepted            | rekeying: same key as before
///   +------------ their NEWKEYS ---- ExpectNewKeys <--- our NEWKEYS ---+
/// ```
pub(super) enum Exchange {
    /// No key exchange goes on.
    Idle,
    /// Our KEXINIT is sent; theirs is awaited.
    ExpectKexInit(Box<Offer>),
    /// KEX_DH_GEX_GROUP is awaited (RFC 4419 section 3).
    ExpectGroup(Box<Agreed>),
    /// The server's half, host key and signature are awaited.
    ExpectReply(Box<Agreed>, Box<Ours>),
    /// The caller judges the host key; all else waits.
    ExpectVerdict(Box<Proven>),
    /// Our NEWKEYS is sent; theirs is awaited.
    ExpectNewKeys(Box<Opener>),
}

/// Our side of the negotiation.
pub(super) struct Offer {
    /// KEXINIT's payload.
    kex_init: Vec<u8>,
    /// The ephemeral key that was sent as a guess.
    guess: Option<Ephemeral>,
}

/// What was negotiated, and what the exchange hash needs of it.
pub(super) struct Agreed {
    chosen: Chosen,
    client_kex_init: Vec<u8>,
    server_kex_init: Vec<u8>,
    /// The server's next key-exchange message is a wrong guess.
    skip_next: bool,
}

/// Our half of the exchange.
pub(super) struct Ours {
    ephemeral: Ephemeral,
    /// p and g of RFC 4419, as they enter the exchange hash.
    group: Option<GexGroup>,
}

/// Both directions' keys, before they are used.
pub(super) struct NextKeys {
    sealer: Sealer,
    opener: Opener,
    /// Octets after which the ciphers want new keys: sending, receiving (RFC 4344 section 3.2).
    limits: [u64; 2],
}

/// A finished first exchange whose host key is being judged.
pub(super) struct Proven {
    keys: NextKeys,
    established: Established,
}

/// What the first key exchange left for the rest of the connection.
pub(super) struct Established {
    /// The first exchange hash.
    pub(super) session_id: Vec<u8>,
    /// The accepted host key or certificate.
    pub(super) host_key: Vec<u8>,
    /// Its signature of the session identifier.
    pub(super) proof: Vec<u8>,
    strict: bool,
    /// As in the keys now in use.
    limits: [u64; 2],
    /// server-sig-algs (RFC 8308 section 3.1), comma separated.
    pub(super) signature_algorithms: Option<String>,
    /// publickey-hostbound@openssh.com (PROTOCOL section 3.1).
    pub(super) hostbound: bool,
}

impl Exchange {
    /// Whether our KEXINIT is out and our NEWKEYS is not: only key-exchange messages may be sent.
    pub(super) fn holds_messages(&self) -> bool {
        !matches!(self, Exchange::Idle | Exchange::ExpectNewKeys(_))
    }

    pub(super) fn awaits_verdict(&self) -> bool {
        matches!(self, Exchange::ExpectVerdict(_))
    }

    pub(super) fn is_idle(&self) -> bool {
        matches!(self, Exchange::Idle)
    }

    /// Whether the server's KEXINIT has come and its NEWKEYS has not.
    pub(super) fn server_is_in(&self) -> bool {
        !matches!(self, Exchange::Idle | Exchange::ExpectKexInit(_))
    }

    /// Whether this message is the server's wrong guess, to be ignored once (RFC 4253 section 7.1).
    pub(super) fn skips_wrong_guess(&mut self, number: Option<u8>) -> bool {
        match self {
            Exchange::ExpectGroup(agreed) | Exchange::ExpectReply(agreed, _) => {
                matches!(number, Some(30..=49)) && std::mem::take(&mut agreed.skip_next)
            }
            _ => false,
        }
    }

    pub(super) fn dialect(&self) -> KexDialect {
        match self {
            Exchange::ExpectGroup(agreed) | Exchange::ExpectReply(agreed, _) => {
                dialect(agreed.chosen.kex.method)
            }
            _ => KexDialect::default(),
        }
    }
}

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

    /// Starts a re-exchange when a limit of keys, octets or time is reached (RFC 4253 section 9).
    pub(super) fn rekey_if_due(&mut self, now: Instant) -> Result<(), ConnectionError> {
        let Some(established) = self.established.as_deref() else {
            return Ok(());
        };
        if !self.exchange.is_idle() || matches!(self.login, Login::Unkeyed) {
            return Ok(());
        }
        let limits = &self.settings.rekey;
        let bytes = limits.bytes.unwrap_or(u64::MAX);
        let used_up = [self.outgoing.used(), self.incoming.used()]
            .into_iter()
            .zip(established.limits)
            .any(|(used, cipher_limit)| {
                used.packets >= limits.packets || used.bytes >= bytes.min(cipher_limit)
            });
        let late = limits
            .interval
            .is_some_and(|interval| now >= self.last_exchange + interval);
        if used_up || late {
            tracing::debug!("rekeying");
            self.start_key_exchange()?;
        }
        Ok(())
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
            return Err(Misbehaviour::KexInitTwice.into());
        };
        let mut chosen = choose(&self.settings, &self.opening.host_key_algorithms, theirs)?;
        match &self.established {
            Some(established) => chosen.strict = established.strict,
            // PROTOCOL section 1.10: "the first packet"; anything before it could be a Terrapin prefix.
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
            return Err(Misbehaviour::Unexpected {
                message: "KEX_DH_GEX_GROUP",
                during: self.phase(),
            }
            .into());
        };
        let bits = p.len() * 8 - p.first().map_or(0, |first| first.leading_zeros() as usize);
        if !(GROUP_MIN as usize..=GROUP_MAX as usize).contains(&bits) {
            return Err(Misbehaviour::GroupSize {
                bits,
                min: GROUP_MIN,
                max: GROUP_MAX,
            }
            .into());
        }
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
    pub(super) fn handle_kex_reply(
        &mut self,
        host_key: &[u8],
        public: &[u8],
        signature: &[u8],
    ) -> Result<(), ConnectionError> {
        let Exchange::ExpectReply(agreed, ours) =
            std::mem::replace(&mut self.exchange, Exchange::Idle)
        else {
            return Err(Misbehaviour::Unexpected {
                message: "KEX_ECDH_REPLY",
                during: self.phase(),
            }
            .into());
        };
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
                self.tell(Event::HostKey(HostKeyQuestion {
                    algorithm: agreed.chosen.host_key,
                    blob: host_key.to_vec(),
                }));
                let established = Established {
                    session_id: hash,
                    host_key: host_key.to_vec(),
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
        self.outgoing.seal(|out| NewKeys.encode(out))?;
        self.outgoing.rekey(keys.sealer, strict);
        self.exchange = Exchange::ExpectNewKeys(Box::new(keys.opener));
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
            return Err(Misbehaviour::Unexpected {
                message: "NEWKEYS",
                during: self.phase(),
            }
            .into());
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

    /// EXT_INFO (RFC 8308): unknown extensions are ignored.
    pub(super) fn handle_ext_info(&mut self, info: &ExtInfo<'_>) {
        let Some(established) = &mut self.established else {
            return;
        };
        for extension in info.extensions.iter() {
            match extension.name {
                b"server-sig-algs" => {
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

    fn remember_lists(&mut self, theirs: &KexInit<'_>) {
        let first = |list: NameList<'_>| list.first().unwrap_or_default().to_owned();
        self.profile = self.server.as_ref().ok().map(|identification| {
            Box::new(ServerProfile {
                identification: identification.as_str().to_owned(),
                first_kex: first(theirs.kex_algorithms),
                first_host_key: first(theirs.server_host_key_algorithms),
            })
        });
    }
}

/// What the exchange hash covers beside the KEXINITs and the secret.
struct Halves<'a> {
    host_key: &'a [u8],
    client: &'a [u8],
    server: &'a [u8],
    group: Option<&'a GexGroup>,
}

// The arithmetic.
impl Connection {
    /// H of RFC 4253 section 8; RFC 4419 section 3 with a group, RFC 5656 section 4 for curves.
    fn exchange_hash(
        &self,
        agreed: &Agreed,
        halves: &Halves<'_>,
        secret: &SharedSecret,
    ) -> Vec<u8> {
        let client = client_identification(&self.settings);
        let server = self
            .server
            .as_ref()
            .map(|server| server.as_str())
            .unwrap_or_default();
        let mut fields = Vec::with_capacity(8 * 1024);
        fields.put_string(client.as_bytes());
        fields.put_string(server.as_bytes());
        fields.put_string(&agreed.client_kex_init);
        fields.put_string(&agreed.server_kex_init);
        fields.put_string(halves.host_key);
        if let Some(group) = halves.group {
            for bits in [GROUP_MIN, GROUP_PREFERRED, GROUP_MAX] {
                fields.put_u32(bits);
            }
            fields.put_mpint(&group.p);
            fields.put_mpint(&group.g);
        }
        match dialect(agreed.chosen.kex.method) {
            KexDialect::Ecdh => {
                fields.put_string(halves.client);
                fields.put_string(halves.server);
            }
            KexDialect::Dh | KexDialect::GroupExchange => {
                fields.put_mpint(halves.client);
                fields.put_mpint(halves.server);
            }
        }
        let mut digest = Digest::new(agreed.chosen.kex.hash);
        digest.update(&fields);
        digest.update(secret.encoded());
        digest.finish().as_ref().to_vec()
    }

    /// The signature of the exchange hash by the host key, or by the key inside a host certificate.
    fn verify_host_key(
        &self,
        negotiated: &'static str,
        blob: &[u8],
        signature: &[u8],
        hash: &[u8],
    ) -> Result<(), ConnectionError> {
        let found = Decoder::new(blob).string()?;
        let wanted = match negotiated {
            "rsa-sha2-256" | "rsa-sha2-512" => "ssh-rsa",
            "rsa-sha2-256-cert-v01@openssh.com" | "rsa-sha2-512-cert-v01@openssh.com" => {
                "ssh-rsa-cert-v01@openssh.com"
            }
            other => other,
        };
        if found != wanted.as_bytes() {
            return Err(Misbehaviour::HostKeyType {
                found: crate::error::printable(found),
                negotiated,
            }
            .into());
        }
        let minimum = self.settings.required_rsa_size;
        match negotiated.strip_suffix("-cert-v01@openssh.com") {
            Some(algorithm) => {
                let certificate =
                    HostCertificate::parse(blob).map_err(ConnectionError::HostCertificate)?;
                verify_with_minimum(
                    algorithm,
                    certificate.public_key(),
                    signature,
                    hash,
                    minimum,
                )
            }
            None => verify_with_minimum(negotiated, blob, signature, hash, minimum),
        }
        .map_err(ConnectionError::HostKeySignature)
    }
}

impl NextKeys {
    /// RFC 4253 section 7.2: letters A and B for initialisation vectors, C and D for keys, E and F for MACs.
    fn derive(
        chosen: &Chosen,
        secret: &SharedSecret,
        hash: &[u8],
        session_id: &[u8],
    ) -> Result<NextKeys, ConnectionError> {
        let derive = |letter: u8, len: usize| {
            let mut key = Zeroizing::new(vec![0; len]);
            derive_key(chosen.kex.hash, secret, hash, session_id, letter, &mut key);
            key
        };
        let mac_len = |protection: &Protection| protection.mac.map_or(0, |mac| mac.key_len());
        let Protection { cipher, mac } = chosen.client_to_server;
        let (iv, key) = (
            derive(b'A', cipher.iv_len()),
            derive(b'C', cipher.key_len()),
        );
        let sealer = Sealer::new(
            cipher,
            mac,
            &key,
            &iv,
            &derive(b'E', mac_len(&chosen.client_to_server)),
        )?;
        let sending_limit = cipher.rekey_bytes();
        let Protection { cipher, mac } = chosen.server_to_client;
        let (iv, key) = (
            derive(b'B', cipher.iv_len()),
            derive(b'D', cipher.key_len()),
        );
        let opener = Opener::new(
            cipher,
            mac,
            &key,
            &iv,
            &derive(b'F', mac_len(&chosen.server_to_client)),
        )?;
        Ok(NextKeys {
            sealer,
            opener,
            limits: [sending_limit, cipher.rekey_bytes()],
        })
    }
}
