//! The server's side of a key exchange: RFC 4253 sections 7 and 8, RFC 4419, RFC 5656.

use sshoal_crypto::kex::GexGroup;
use sshoal_crypto::{
    Cipher, Digest, Ephemeral, HashAlgorithm, KexAlgorithm, KexMethod, Mac, Opener, Sealer,
    SharedSecret, derive_key,
};
use sshoal_wire::{
    Counted, Decoder, Dialect, ExtInfo, Extension, KexDhReply, KexDialect, KexEcdhReply,
    KexGexGroup, KexGexReply, KexInit, Message, NameList, NewKeys, Put,
};

use super::packets::Packets;
use super::policy::{Guess, Policy};

/// RFC 3526 section 3: the prime of group 14, for group exchange too.
const GROUP_14: &str = "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74\
    020BBEA63B139B22514A08798E3404DDEF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6\
    F44C42E9A637ED6B0BFF5CB6F406B7EDEE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3DC2007CB8A163BF05\
    98DA48361C55D39A69163FA8FD24CF5F83655D23DCA3AD961C62F356208552BB9ED529077096966D670C354E4ABC9804\
    F1746C08CA18217C32905E462E36CE3BE39E772C180E86039B2783A2EC07A28FB5C55DF06F4C52C9DE2BCBF695581718\
    3995497CEA956AE515D2261898FA051015728E5A8AACAA68FFFFFFFFFFFFFFFF";

/// What was agreed on in one exchange.
#[derive(Clone, Copy)]
struct Agreed {
    kex: &'static KexAlgorithm,
    client_to_server: (Cipher, Option<Mac>),
    server_to_client: (Cipher, Option<Mac>),
}

/// The server's key exchanges, one after the other.
#[derive(Default)]
pub struct KeyExchange {
    pub client_identification: String,
    /// Our KEXINIT, from when it is sent until our NEWKEYS is.
    offered: Option<Vec<u8>>,
    /// The client's KEXINIT, and what follows from both.
    agreed: Option<(Vec<u8>, Agreed)>,
    /// The client's next key-exchange message is its wrong guess.
    skips_next: bool,
    group: Option<GexGroup>,
    /// What 30 to 34 mean in the method agreed on last.
    pub dialect: KexDialect,
    /// The client's NEWKEYS is awaited, and these keys with it.
    next_opener: Option<Opener>,
    pub session_id: Vec<u8>,
    /// Both sides offered strict key exchange.
    pub strict: bool,
    /// Exchanges finished.
    pub finished: usize,
    /// The client guessed in its first KEXINIT, and whether it was right.
    pub client_guess: Option<bool>,
    /// Sent in place of our half, to see it refused.
    pub false_half: Option<Vec<u8>>,
}

impl KeyExchange {
    /// Between our KEXINIT and our NEWKEYS nothing else may be said.
    pub fn holds_messages(&self) -> bool {
        self.offered.is_some()
    }

    /// Between the client's KEXINIT and its NEWKEYS nothing else may be heard.
    pub fn awaits_client(&self) -> bool {
        self.agreed.is_some() || self.next_opener.is_some()
    }

    /// Says our KEXINIT, with a guess if this is the first.
    pub fn start(&mut self, policy: &Policy, packets: &mut Packets) {
        let payload = kex_init(policy, self.finished == 0);
        packets.say(&payload);
        if self.finished == 0 && policy.guess == Guess::Wrong {
            // KEX_ECDH_REPLY of a method that is not chosen, with nothing sound in it.
            packets.say(&[31, 0, 0, 0, 1, 7]);
        }
        self.offered = Some(payload);
    }

    /// A message of the client's from 20 to 49. `host_key` and signer come from `policy`.
    pub fn handle(&mut self, policy: &Policy, packets: &mut Packets, payload: &[u8]) {
        match payload[0] {
            20 => self.handle_kex_init(policy, packets, payload),
            21 => {
                assert_eq!(payload.len(), 1, "NEWKEYS has no fields");
                let opener = self.next_opener.take().expect("NEWKEYS in its place");
                packets.hear_with(opener, self.strict);
                self.finished += 1;
            }
            _ if std::mem::take(&mut self.skips_next) => {}
            number => self.handle_half(policy, packets, number, &payload[1..]),
        }
    }

    fn handle_kex_init(&mut self, policy: &Policy, packets: &mut Packets, payload: &[u8]) {
        assert!(!self.awaits_client(), "one key exchange after the other");
        if self.offered.is_none() {
            self.start(policy, packets);
        }
        let Ok(Message::KexInit(theirs)) = Message::decode(payload, Dialect::default()) else {
            panic!("a KEXINIT that does not decode");
        };
        if self.finished == 0 {
            let offers = |name: &str| theirs.kex_algorithms.contains(name);
            self.strict = policy.strict && offers("kex-strict-c-v00@openssh.com");
            assert!(offers("ext-info-c"), "the client understands EXT_INFO");
        }
        let kex = pick(theirs.kex_algorithms, &policy.kex);
        let host_key = pick(
            theirs.server_host_key_algorithms,
            &policy.host_key_algorithms,
        );
        let right = theirs.kex_algorithms.first() == policy.kex.first().copied()
            && theirs.server_host_key_algorithms.first()
                == policy.host_key_algorithms.first().copied();
        assert!(!host_key.is_empty());
        self.skips_next = theirs.first_kex_packet_follows && !right;
        self.client_guess = theirs.first_kex_packet_follows.then_some(right);
        let protection = |ciphers: NameList<'_>, macs: NameList<'_>| {
            let cipher = Cipher::by_name(&pick(ciphers, &policy.ciphers)).expect("known");
            let mac = (!cipher.is_aead())
                .then(|| Mac::by_name(&pick(macs, &policy.macs)).expect("known"));
            (cipher, mac)
        };
        let agreed = Agreed {
            kex: KexAlgorithm::by_name(&kex).expect("known"),
            client_to_server: protection(
                theirs.encryption_algorithms_client_to_server,
                theirs.mac_algorithms_client_to_server,
            ),
            server_to_client: protection(
                theirs.encryption_algorithms_server_to_client,
                theirs.mac_algorithms_server_to_client,
            ),
        };
        self.dialect = match agreed.kex.method {
            KexMethod::DhGroupExchange => KexDialect::GroupExchange,
            method if is_dh(method) => KexDialect::Dh,
            _ => KexDialect::Ecdh,
        };
        self.agreed = Some((payload.to_vec(), agreed));
    }

    /// The client's half: KEX_ECDH_INIT, KEXDH_INIT, or group exchange's two messages.
    fn handle_half(&mut self, policy: &Policy, packets: &mut Packets, number: u8, body: &[u8]) {
        let (_, agreed) = self.agreed.as_ref().expect("a KEXINIT before its half");
        let method = agreed.kex.method;
        let mut fields = Decoder::new(body);
        match (number, method) {
            (34, KexMethod::DhGroupExchange) => {
                let sizes = [(); 3].map(|()| fields.u32().expect("three sizes"));
                assert_eq!(sizes, [2048, 3072, 8192]);
                let group = GexGroup {
                    p: unhex(GROUP_14),
                    g: vec![2],
                };
                let mut message = Vec::new();
                KexGexGroup {
                    p: &group.p,
                    g: &group.g,
                }
                .encode(&mut message);
                packets.say(&message);
                self.group = Some(group);
                return;
            }
            (32, KexMethod::DhGroupExchange) | (30, _) => {}
            _ => panic!("key-exchange message {number} with {method:?}"),
        }
        let client = match is_dh(method) {
            true => fields.mpint(),
            false => fields.string(),
        };
        let client = client.expect("the client's half").to_vec();
        self.finish(policy, packets, &client);
    }

    /// Our half, its signature, NEWKEYS, and EXT_INFO the first time.
    fn finish(&mut self, policy: &Policy, packets: &mut Packets, client: &[u8]) {
        let (client_kex_init, agreed) = self.agreed.take().expect("agreed");
        let server_kex_init = self.offered.take().expect("offered");
        let method = agreed.kex.method;
        let group = self.group.take();
        let ours = Ephemeral::generate(method, group.as_ref()).expect("a key");
        let server = ours.public().to_vec();
        let secret = ours.agree(client).expect("the client's half is sound");
        let host_key = policy.host_key.public_blob();

        let mut hashed = Vec::new();
        hashed.put_string(self.client_identification.as_bytes());
        hashed.put_string(policy.identification.as_bytes());
        hashed.put_string(&client_kex_init);
        hashed.put_string(&server_kex_init);
        hashed.put_string(host_key);
        if let Some(group) = &group {
            for size in [2048, 3072, 8192] {
                hashed.put_u32(size);
            }
            hashed.put_mpint(&group.p);
            hashed.put_mpint(&group.g);
        }
        for half in [client, &server] {
            match is_dh(method) {
                true => hashed.put_mpint(half),
                false => hashed.put_string(half),
            }
        }
        hashed.put_bytes(secret.encoded());
        let mut digest = Digest::new(agreed.kex.hash);
        digest.update(&hashed);
        let hash = digest.finish().as_ref().to_vec();
        let signature = policy
            .signing_key
            .sign(policy.signing_key.algorithms()[0], &hash)
            .expect("signed");
        if self.session_id.is_empty() {
            self.session_id = hash.clone();
        }

        let half = self.false_half.as_deref().unwrap_or(&server);
        packets.say(&reply(method, host_key, half, &signature));
        let mut message = Vec::new();
        NewKeys.encode(&mut message);
        packets.say(&message);
        let keys = Keys {
            hash: agreed.kex.hash,
            secret: &secret,
            exchange_hash: &hash,
            session_id: &self.session_id,
        };
        let (cipher, mac) = agreed.server_to_client;
        let [iv, key, mac_key] = keys.draw(b"BDF", cipher, mac);
        let sealer = Sealer::new(cipher, mac, &key, &iv, &mac_key).expect("keys that fit");
        packets.say_with(sealer, self.strict);
        let (cipher, mac) = agreed.client_to_server;
        let [iv, key, mac_key] = keys.draw(b"ACE", cipher, mac);
        let opener = Opener::new(cipher, mac, &key, &iv, &mac_key).expect("keys that fit");
        self.next_opener = Some(opener);
        if self.finished == 0 && !policy.ext_info.is_empty() {
            packets.say(&ext_info(policy));
        }
    }
}

/// What keys are drawn from (RFC 4253 section 7.2).
struct Keys<'a> {
    hash: HashAlgorithm,
    secret: &'a SharedSecret,
    exchange_hash: &'a [u8],
    session_id: &'a [u8],
}

impl Keys<'_> {
    /// Initialisation vector, key and MAC key by their letters.
    fn draw(&self, letters: &[u8; 3], cipher: Cipher, mac: Option<Mac>) -> [Vec<u8>; 3] {
        let lens = [
            cipher.iv_len(),
            cipher.key_len(),
            mac.map_or(0, Mac::key_len),
        ];
        std::array::from_fn(|at| {
            let mut key = vec![0; lens[at]];
            derive_key(
                self.hash,
                self.secret,
                self.exchange_hash,
                self.session_id,
                letters[at],
                &mut key,
            );
            key
        })
    }
}

fn kex_init(policy: &Policy, first: bool) -> Vec<u8> {
    let mut kex = policy.kex.clone();
    if first && policy.strict {
        kex.push("kex-strict-s-v00@openssh.com");
    }
    let (kex, host_keys) = (kex.join(","), policy.host_key_algorithms.join(","));
    let (ciphers, macs) = (policy.ciphers.join(","), policy.macs.join(","));
    let mut payload = Vec::new();
    KexInit {
        cookie: [5; 16],
        kex_algorithms: NameList::new(&kex),
        server_host_key_algorithms: NameList::new(&host_keys),
        encryption_algorithms_client_to_server: NameList::new(&ciphers),
        encryption_algorithms_server_to_client: NameList::new(&ciphers),
        mac_algorithms_client_to_server: NameList::new(&macs),
        mac_algorithms_server_to_client: NameList::new(&macs),
        compression_algorithms_client_to_server: NameList::new("none,zlib@openssh.com"),
        compression_algorithms_server_to_client: NameList::new("none,zlib@openssh.com"),
        languages_client_to_server: NameList::new(""),
        languages_server_to_client: NameList::new(""),
        first_kex_packet_follows: first && policy.guess != Guess::None,
        reserved: 0,
    }
    .encode(&mut payload);
    payload
}

fn reply(method: KexMethod, host_key: &[u8], half: &[u8], signature: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    match method {
        KexMethod::DhGroupExchange => KexGexReply {
            host_key,
            f: half,
            signature,
        }
        .encode(&mut message),
        method if is_dh(method) => KexDhReply {
            host_key,
            f: half,
            signature,
        }
        .encode(&mut message),
        _ => KexEcdhReply {
            host_key,
            public: half,
            signature,
        }
        .encode(&mut message),
    }
    message
}

fn ext_info(policy: &Policy) -> Vec<u8> {
    let extensions: Vec<Extension<'_>> = policy
        .ext_info
        .iter()
        .map(|(name, value)| Extension {
            name: name.as_bytes(),
            value: value.as_bytes(),
        })
        .collect();
    let mut message = Vec::new();
    ExtInfo {
        extensions: Counted::from(&extensions),
    }
    .encode(&mut message);
    message
}

/// RFC 4253 section 7.1: the client's first that the server has too.
fn pick(clients: NameList<'_>, servers: &[&str]) -> String {
    clients
        .iter()
        .find(|name| servers.contains(name))
        .unwrap_or_else(|| panic!("nothing in common: {clients} and {servers:?}"))
        .to_owned()
}

fn is_dh(method: KexMethod) -> bool {
    matches!(
        method,
        KexMethod::DhGroup14
            | KexMethod::DhGroup16
            | KexMethod::DhGroup18
            | KexMethod::DhGroupExchange
    )
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().collect();
    digits
        .chunks(2)
        .map(|pair| {
            let pair = std::str::from_utf8(pair).expect("ASCII");
            u8::from_str_radix(pair, 16).expect("hexadecimal")
        })
        .collect()
}
