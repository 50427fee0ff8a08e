//! An agent of ours, for manners that OpenSSH's does not have.
//!
//! It holds one key: one from a file, or a security key's, which it makes of the file's ed25519 key as an
//! authenticator would (PROTOCOL.u2f).

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use sshoal_crypto::{Digest, HashAlgorithm, PrivateKey};
use tempfile::TempDir;

const FAILURE: &[u8] = &[5];
const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;
const EXTENSION: u8 = 27;

/// How long a touch takes, or a signature that takes its time.
const MOMENT: Duration = Duration::from_millis(50);
const APPLICATION: &[u8] = b"ssh:";

/// How the agent behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// It does what it is asked, and takes a moment for each signature.
    TakesItsTime,
    RefusesToBind,
    HangsUpOnBind,
    HangsUpOnSign,
    IsSilent,
    IsSilentOnSign,
    /// Its key is a security key, touched after a moment.
    WaitsForTouch,
}

/// What the agent saw of its clients.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) lists: usize,
    pub(crate) signatures: usize,
    pub(crate) signatures_at_once: usize,
    signing: usize,
}

/// A running agent. Its threads end with the test's process.
pub(crate) struct FakeAgent {
    folder: TempDir,
    shared: Arc<Shared>,
}

struct Shared {
    private: PrivateKey,
    manner: Manner,
    seen: Mutex<Seen>,
}

impl FakeAgent {
    pub(crate) fn start(key: &Path, manner: Manner) -> Self {
        let folder = TempDir::new().unwrap();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        let shared = Arc::new(Shared {
            private: PrivateKey::parse(&fs::read(key).unwrap(), None).unwrap(),
            manner,
            seen: Mutex::default(),
        });
        let agent = FakeAgent {
            folder,
            shared: shared.clone(),
        };
        thread::spawn(move || {
            for stream in listener.incoming() {
                let shared = shared.clone();
                thread::spawn(move || shared.serve(stream.unwrap()));
            }
        });
        agent
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    pub(crate) fn seen(&self) -> Seen {
        self.shared.seen.lock().unwrap().clone()
    }

    /// The line for authorized_keys.
    pub(crate) fn public_line(&self) -> String {
        let blob = self.shared.public_blob();
        let key = sshoal_crypto::PublicKey::parse(&blob).unwrap();
        format!("{} {}", key.key_type(), base64(&blob))
    }
}

impl Shared {
    fn serve(&self, mut stream: UnixStream) {
        while let Some(message) = receive(&mut stream) {
            match self.answer(&message) {
                Answer::Say(answer) => {
                    let mut framed = Vec::new();
                    put_string(&mut framed, &answer);
                    if stream.write_all(&framed).is_err() {
                        break;
                    }
                }
                Answer::HangUp => break,
                Answer::Silence => {}
            }
        }
    }

    fn answer(&self, message: &[u8]) -> Answer {
        match (message[0], self.manner) {
            (_, Manner::IsSilent) => Answer::Silence,
            (REQUEST_IDENTITIES, _) => {
                self.note(|seen| seen.lists += 1);
                let mut answer = vec![IDENTITIES_ANSWER];
                answer.extend_from_slice(&1u32.to_be_bytes());
                put_string(&mut answer, &self.public_blob());
                put_string(&mut answer, b"the only key");
                Answer::Say(answer)
            }
            (EXTENSION, Manner::RefusesToBind) => Answer::Say(FAILURE.to_vec()),
            (EXTENSION, Manner::HangsUpOnBind) => Answer::HangUp,
            (EXTENSION, _) => Answer::Say(vec![6]),
            (SIGN_REQUEST, Manner::HangsUpOnSign) => Answer::HangUp,
            (SIGN_REQUEST, Manner::IsSilentOnSign) => Answer::Silence,
            (SIGN_REQUEST, _) => self.sign(&message[1..]),
            other => panic!("asked for {other:?}"),
        }
    }

    fn sign(&self, request: &[u8]) -> Answer {
        let (key, rest) = take_string(request);
        assert_eq!(key, self.public_blob());
        let (data, _flags) = take_string(rest);
        self.note(|seen| {
            seen.signatures += 1;
            seen.signing += 1;
            seen.signatures_at_once = seen.signatures_at_once.max(seen.signing);
        });
        let signature = match self.manner {
            Manner::WaitsForTouch => self.sign_touched(data),
            _ => self
                .private
                .sign(self.private.algorithms()[0], data)
                .unwrap(),
        };
        if matches!(self.manner, Manner::WaitsForTouch | Manner::TakesItsTime) {
            thread::sleep(MOMENT);
        }
        self.note(|seen| seen.signing -= 1);
        let mut answer = vec![SIGN_RESPONSE];
        put_string(&mut answer, &signature);
        Answer::Say(answer)
    }

    /// PROTOCOL.u2f, "SSH U2F signatures".
    fn sign_touched(&self, data: &[u8]) -> Vec<u8> {
        let user_present = [1, 0, 0, 0, 1];
        let signed = [&sha256(APPLICATION), &user_present[..], &sha256(data)].concat();
        let plain = self.private.sign("ssh-ed25519", &signed).unwrap();
        let (_algorithm, rest) = take_string(&plain);
        let mut signature = Vec::new();
        put_string(&mut signature, b"sk-ssh-ed25519@openssh.com");
        put_string(&mut signature, take_string(rest).0);
        signature.extend_from_slice(&user_present);
        signature
    }

    fn public_blob(&self) -> Vec<u8> {
        let plain = self.private.public_blob().to_vec();
        if self.manner != Manner::WaitsForTouch {
            return plain;
        }
        let (_key_type, rest) = take_string(&plain);
        let mut blob = Vec::new();
        put_string(&mut blob, b"sk-ssh-ed25519@openssh.com");
        put_string(&mut blob, take_string(rest).0);
        put_string(&mut blob, APPLICATION);
        blob
    }

    fn note(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen.lock().unwrap());
    }
}

enum Answer {
    Say(Vec<u8>),
    HangUp,
    Silence,
}

fn receive(stream: &mut UnixStream) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut message = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut message).ok()?;
    Some(message)
}

fn put_string(out: &mut Vec<u8>, octets: &[u8]) {
    out.extend_from_slice(&u32::try_from(octets.len()).unwrap().to_be_bytes());
    out.extend_from_slice(octets);
}

fn take_string(octets: &[u8]) -> (&[u8], &[u8]) {
    let (length, rest) = octets.split_first_chunk().unwrap();
    rest.split_at(u32::from_be_bytes(*length) as usize)
}

fn sha256(data: &[u8]) -> Vec<u8> {
    let mut digest = Digest::new(HashAlgorithm::Sha256);
    digest.update(data);
    digest.finish().as_ref().to_vec()
}

fn base64(octets: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in octets.chunks(3) {
        let bits = three
            .iter()
            .fold(0u32, |bits, octet| bits << 8 | u32::from(*octet))
            << (8 * (3 - three.len()));
        for place in 0..4 {
            text.push(match place <= three.len() {
                true => char::from(DIGITS[(bits >> (18 - 6 * place) & 63) as usize]),
                false => '=',
            });
        }
    }
    text
}
