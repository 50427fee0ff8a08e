//! What servers are: remembered from run to run, so that the first flight can carry more.
//!
//! The file is `$XDG_CACHE_HOME/sshoal/servers` (`~/.cache/sshoal/servers`), mode 0600, and may be deleted at any
//! time; docs/server-cache.md describes its format. Servers are known by their host key alone: no name of a
//! host is stored. Runs at the same time replace the file one after the other, each with what the last had.
//! Its lines are sorted: a run over one host must not pay for the thousands that are in the file.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use memchr::{memchr, memrchr};
use sshoal_crypto::{Cipher, Mac, fingerprint_sha256};
use sshoal_proto::{Connection, ServerProfile};

use crate::cache_folder;

/// First line of the file; another version is ignored, and replaced when something is learned.
const HEADER: &str = "sshoal-servers 2\n";
/// Most servers kept: beyond, new ones are not remembered.
const MAX_SERVERS: usize = 200_000;
/// A longer file is not read: nobody but us should have written it.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// What is known about one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownServer {
    pub(crate) profile: ServerProfile,
    /// Whether merged flights work here: they did not if the server dropped the connection over one.
    pub(crate) pipelining: bool,
    /// What `sshoal ciphers` has measured, fastest first, as in the file: nothing if it has not.
    pub(crate) fastest: String,
}

/// A cipher, and the MAC that goes with it unless it authenticates by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Protection {
    /// The cipher.
    pub cipher: Cipher,
    /// Its MAC.
    pub mac: Option<Mac>,
}

/// Servers by the fingerprint of their host key, as they were when the run began.
#[derive(Debug, Default)]
pub(crate) struct ServerCache {
    /// The file as it is, or nothing.
    text: String,
}

/// What a run learned of servers.
#[derive(Debug, Default)]
pub(crate) struct Learned(BTreeMap<String, KnownServer>);

/// Where the cache of this user is, by XDG_CACHE_HOME and HOME.
pub fn server_cache_path() -> Option<PathBuf> {
    Some(cache_folder::path()?.join("servers"))
}

impl ServerCache {
    /// Reads the cache. A missing or damaged file is an empty cache.
    pub(crate) fn read(path: Option<&Path>) -> Self {
        ServerCache {
            text: path.map(read_text).unwrap_or_default(),
        }
    }

    /// Whether nothing is known of any server.
    pub(crate) fn is_empty(&self) -> bool {
        lines_of(&self.text).is_empty()
    }

    /// The server with this host key.
    pub(crate) fn server(&self, fingerprint: &str) -> Option<KnownServer> {
        parsed(find(lines_of(&self.text), fingerprint)?)
    }

    /// What the server at the other end of this connection is, if that is news, with its fingerprint. `known` is what
    /// was found of it before.
    pub(crate) fn news(
        &self,
        connection: &Connection,
        known: Option<&(String, KnownServer)>,
        pipelining: bool,
    ) -> Option<(String, KnownServer)> {
        let (host_key, _) = connection.host_key_proof()?;
        let fingerprint = fingerprint_sha256(host_key);
        let cached = match known {
            Some((known, cached)) if *known == fingerprint => Some(cached.clone()),
            _ => self.server(&fingerprint),
        };
        let server = KnownServer {
            profile: connection.server_profile()?.clone(),
            pipelining,
            fastest: cached
                .as_ref()
                .map_or_else(String::new, |cached| cached.fastest.clone()),
        };
        (cached.as_ref() != Some(&server)).then_some((fingerprint, server))
    }
}

impl Protection {
    /// `aes128-gcm@openssh.com`, `aes128-ctr+hmac-sha2-256`
    fn name(self) -> String {
        match self.mac {
            None => self.cipher.name().to_owned(),
            Some(mac) => format!("{}+{}", self.cipher.name(), mac.name()),
        }
    }

    /// What [`name`](Self::name) says; `None` for what another release may have written.
    fn parsed(name: &str) -> Option<Protection> {
        let (cipher, mac) = match name.split_once('+') {
            None => (name, None),
            Some((cipher, mac)) => (cipher, Some(Mac::by_name(mac)?)),
        };
        let cipher = Cipher::by_name(cipher)?;
        Some(Protection { cipher, mac })
    }

    /// What a field of the file says.
    pub(crate) fn list(field: &str) -> impl Iterator<Item = Protection> + '_ {
        field.split(',').filter_map(Protection::parsed)
    }
}

/// Remembers what was measured of the server with this host key, fastest first, for all runs to come.
///
/// # Errors
///
/// The file cannot be written, or nothing is known of the server: no run has remembered it.
pub fn remember_fastest(path: &Path, fingerprint: &str, fastest: &[Protection]) -> io::Result<()> {
    let _lock = cache_folder::lock(path)?;
    let old = read_text(path);
    let lines = lines_of(&old);
    let server = find(lines, fingerprint).and_then(parsed);
    let mut server = server.ok_or(io::ErrorKind::NotFound)?;
    let names: Vec<String> = fastest.iter().map(|pair| pair.name()).collect();
    server.fastest = names.join(",");
    let news = BTreeMap::from([(fingerprint.to_owned(), server)]);
    cache_folder::replace_file(path, merged(lines, &news).as_bytes())
}

impl Learned {
    /// Notes what a server is.
    pub(crate) fn insert(&mut self, fingerprint: String, server: KnownServer) {
        self.0.insert(fingerprint, server);
    }

    /// Writes what was learned, beside what other runs have written meanwhile.
    pub(crate) fn save(self, path: &Path) -> io::Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let _lock = cache_folder::lock(path)?;
        let old = read_text(path);
        cache_folder::replace_file(path, merged(lines_of(&old), &self.0).as_bytes())
    }
}

/// The file's text; none if it is missing, too long, or of another version.
fn read_text(path: &Path) -> String {
    let read = |(mut file, length): (File, u64)| {
        let mut text = String::with_capacity(usize::try_from(length).ok()? + 1);
        file.read_to_string(&mut text).ok()?;
        Some(text)
    };
    let text = cache_folder::open_own(path, MAX_FILE).and_then(read);
    text.filter(|text| text.starts_with(HEADER))
        .unwrap_or_default()
}

/// A line a server.
fn lines_of(text: &str) -> &str {
    text.strip_prefix(HEADER).unwrap_or_default()
}

/// The line of this fingerprint among sorted ones. In a damaged file it may be missed, and nothing else is found.
fn find<'a>(lines: &'a str, fingerprint: &str) -> Option<&'a str> {
    let mut rest = lines;
    while !rest.is_empty() {
        let (before, after) = rest.as_bytes().split_at(rest.len() / 2);
        let start = memrchr(b'\n', before).map_or(0, |end| end + 1);
        let end = memchr(b'\n', after);
        let end = end.map_or(rest.len(), |end| before.len() + end + 1);
        let line = rest[start..end].trim_end_matches('\n');
        match fingerprint.cmp(fingerprint_of(line)) {
            Ordering::Less => rest = &rest[..start],
            Ordering::Equal => return Some(line),
            Ordering::Greater => rest = &rest[end..],
        }
    }
    None
}

fn fingerprint_of(line: &str) -> &str {
    line.split('\t').next().unwrap_or_default()
}

/// One line: fingerprint, identification, first key exchange, first host-key algorithm, pipelining, what is fastest.
fn parsed(line: &str) -> Option<KnownServer> {
    let mut fields = line.split('\t').skip(1);
    let mut field = || fields.next();
    let profile = ServerProfile {
        identification: field()?.to_owned(),
        first_kex: field()?.to_owned(),
        first_host_key: field()?.to_owned(),
    };
    let pipelining = field()? == "yes";
    Some(KnownServer {
        profile,
        pipelining,
        fastest: field().unwrap_or_default().to_owned(),
    })
}

/// The whole file with what is new, sorted. What is new replaces what is old.
fn merged(old: &str, news: &BTreeMap<String, KnownServer>) -> String {
    let mut lines: BTreeMap<&str, Cow<'_, str>> = old
        .lines()
        .take(MAX_SERVERS)
        .map(|line| (fingerprint_of(line), Cow::Borrowed(line)))
        .collect();
    for (fingerprint, server) in news {
        let there = lines.get(fingerprint.as_str());
        if lines.len() < MAX_SERVERS || there.is_some() {
            let line = match there.and_then(|line| parsed(line)) {
                // Measured since the run that knows nothing of it began.
                Some(old) if server.fastest.is_empty() && !old.fastest.is_empty() => {
                    let fastest = old.fastest;
                    line_of(
                        fingerprint,
                        &KnownServer {
                            fastest,
                            ..server.clone()
                        },
                    )
                }
                _ => line_of(fingerprint, server),
            };
            lines.insert(fingerprint, Cow::Owned(line));
        }
    }
    let mut text = String::with_capacity(HEADER.len() + old.len() + 128 * news.len());
    text.push_str(HEADER);
    for line in lines.values() {
        text.push_str(line);
        text.push('\n');
    }
    text
}

fn line_of(fingerprint: &str, server: &KnownServer) -> String {
    let KnownServer {
        profile,
        pipelining,
        fastest,
    } = server;
    // Identification strings and names have no control characters: they were checked when they came.
    let fields = [
        fingerprint,
        &profile.identification,
        &profile.first_kex,
        &profile.first_host_key,
        if *pipelining { "yes" } else { "no" },
        fastest,
    ];
    fields.join("\t").trim_end_matches('\t').to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn server(first_kex: &str) -> KnownServer {
        KnownServer {
            profile: ServerProfile {
                identification: "SSH-2.0-OpenSSH_9.2p1 Debian-2".to_owned(),
                first_kex: first_kex.to_owned(),
                first_host_key: "ssh-ed25519".to_owned(),
            },
            pipelining: true,
            fastest: String::new(),
        }
    }

    fn write(path: &Path, text: impl AsRef<[u8]>) {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn learned(fingerprint: &str, server: KnownServer) -> Learned {
        let mut learned = Learned::default();
        learned.insert(fingerprint.to_owned(), server);
        learned
    }

    #[test]
    fn what_two_runs_learn_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sshoal/servers");
        learned("SHA256:a", server("mlkem768x25519-sha256"))
            .save(&path)
            .unwrap();
        learned("SHA256:b", server("curve25519-sha256"))
            .save(&path)
            .unwrap();
        let both = ServerCache::read(Some(&path));
        assert_eq!(
            both.server("SHA256:a"),
            Some(server("mlkem768x25519-sha256"))
        );
        assert_eq!(both.server("SHA256:b"), Some(server("curve25519-sha256")));
        assert_eq!(
            fs::metadata(path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn runs_at_the_same_time_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("servers");
        std::thread::scope(|scope| {
            for run in 0..20 {
                let path = &path;
                scope.spawn(move || {
                    learned(&format!("SHA256:{run}"), server("curve25519-sha256"))
                        .save(path)
                        .unwrap()
                });
            }
        });
        let all = ServerCache::read(Some(&path));
        assert!((0..20).all(|run| all.server(&format!("SHA256:{run}")).is_some()));
    }

    #[test]
    fn a_lock_that_is_held_keeps_nobody_and_a_left_over_file_is_not_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("servers");
        let left_over = path.with_extension("new");
        fs::write(&left_over, "somebody's").unwrap();
        let news = || learned("SHA256:a", server("curve25519-sha256"));
        let held = cache_folder::lock(&path).unwrap();
        assert_eq!(
            news().save(&path).unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
        drop(held);
        news().save(&path).unwrap();
        assert_eq!(fs::read_to_string(left_over).unwrap(), "somebody's");
    }

    #[test]
    fn another_version_or_a_damaged_line_is_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("servers");
        write(&path, "sshoal-servers 1\nSHA256:a\tx\ty\tz\tyes\n");
        assert!(ServerCache::read(Some(&path)).is_empty());
        write(
            &path,
            format!("{HEADER}SHA256:a\ttorn\nSHA256:b\ti\tk\th\tno\n"),
        );
        let cache = ServerCache::read(Some(&path));
        assert_eq!(cache.server("SHA256:a"), None);
        assert_eq!(
            cache.server("SHA256:b").map(|server| server.pipelining),
            Some(false)
        );
    }

    #[test]
    fn each_of_many_is_found_and_nothing_else() {
        let name = |number: u32| format!("SHA256:{:x}", number.wrapping_mul(0x9e37_79b9));
        let kex = |number: u32| format!("kex-{}", "x".repeat(number as usize % 40));
        for many in [0, 1, 2, 3, 500] {
            let news = (0..many).map(|number| (name(number), server(&kex(number))));
            let cache = ServerCache {
                text: merged("", &news.collect()),
            };
            for number in 0..many {
                assert_eq!(cache.server(&name(number)), Some(server(&kex(number))));
            }
            assert!((many..many + 100).all(|number| cache.server(&name(number)).is_none()));
            assert_eq!(cache.server("SHA256:"), None);
            assert_eq!(cache.server("SHA256:z"), None);
        }
    }

    #[test]
    fn news_replace_what_was_there() {
        let of = |kex: &str| BTreeMap::from([("SHA256:b".to_owned(), server(kex))]);
        let old = "SHA256:a\ti\tk\th\tno\nSHA256:b\ti\tk\th\tno\n";
        let new = merged(old, &of("curve25519-sha256")).split_off(HEADER.len());
        assert_eq!(new.lines().count(), 2);
        assert_eq!(new.lines().next(), old.lines().next());
        assert_eq!(
            find(&new, "SHA256:b").and_then(parsed),
            Some(server("curve25519-sha256"))
        );
    }

    #[test]
    fn what_was_measured_outlives_what_runs_learn() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("servers");
        let fast = Protection {
            cipher: Cipher::Aes256Ctr,
            mac: Some(Mac::HmacSha512Etm),
        };
        let slow = Protection {
            cipher: Cipher::ChaCha20Poly1305,
            mac: None,
        };
        let unknown = remember_fastest(&path, "SHA256:a", &[fast]).unwrap_err();
        assert_eq!(unknown.kind(), io::ErrorKind::NotFound);
        let news = |kex: &str| learned("SHA256:a", server(kex));
        news("curve25519-sha256").save(&path).unwrap();
        remember_fastest(&path, "SHA256:a", &[fast, slow]).unwrap();
        news("mlkem768x25519-sha256").save(&path).unwrap();
        let cached = ServerCache::read(Some(&path)).server("SHA256:a").unwrap();
        assert_eq!(cached.profile.first_kex, "mlkem768x25519-sha256");
        let found: Vec<Protection> = Protection::list(&cached.fastest).collect();
        assert_eq!(found, [fast, slow]);
        remember_fastest(&path, "SHA256:a", &[slow]).unwrap();
        let cached = ServerCache::read(Some(&path)).server("SHA256:a").unwrap();
        assert_eq!(cached.fastest, slow.cipher.name());
        let odd = "x,aes128-ctr+y,aes128-ctr+hmac-sha1,";
        assert_eq!(Protection::list(odd).count(), 1);
    }

    #[test]
    fn nothing_learned_writes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("servers");
        Learned::default().save(&path).unwrap();
        assert!(!path.exists());
    }
}
