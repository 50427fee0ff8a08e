//! What servers are: remembered from run to run, so that the first flight can carry more.
//!
//! The file is `$XDG_CACHE_HOME/sshoal/servers` (`~/.cache/sshoal/servers`), mode 0600, and may be deleted at any
//! time; docs/server-cache.md describes its format. Servers are known by their host key alone: no name of a
//! host is stored. Runs at the same time replace the file one after the other, each with what the last had.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sshoal_crypto::fingerprint_sha256;
use sshoal_proto::{Connection, ServerProfile};

use crate::cache_folder;

/// First line of the file; another version is ignored, and replaced when something is learned.
const HEADER: &str = "sshoal-servers 1";
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
}

/// Servers by the fingerprint of their host key, as they were when the run began.
#[derive(Debug, Default)]
pub(crate) struct ServerCache {
    servers: HashMap<String, KnownServer>,
}

/// What a run learned of servers.
#[derive(Debug, Default)]
pub(crate) struct Learned(HashMap<String, KnownServer>);

/// Where the cache of this user is, by XDG_CACHE_HOME and HOME.
pub fn server_cache_path() -> Option<PathBuf> {
    Some(cache_folder::path()?.join("servers"))
}

impl ServerCache {
    /// Reads the cache. A missing or damaged file is an empty cache.
    pub(crate) fn read(path: Option<&Path>) -> Self {
        ServerCache {
            servers: path.map(read_servers).unwrap_or_default(),
        }
    }

    /// Whether nothing is known of any server.
    pub(crate) fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// The server with this host key.
    pub(crate) fn server(&self, fingerprint: &str) -> Option<&KnownServer> {
        self.servers.get(fingerprint)
    }

    /// What the server at the other end of this connection is, if that is news, with its fingerprint.
    pub(crate) fn news(
        &self,
        connection: &Connection,
        pipelining: bool,
    ) -> Option<(String, KnownServer)> {
        let (host_key, _) = connection.host_key_proof()?;
        let fingerprint = fingerprint_sha256(host_key);
        let server = KnownServer {
            profile: connection.server_profile()?.clone(),
            pipelining,
        };
        (self.servers.get(&fingerprint) != Some(&server)).then_some((fingerprint, server))
    }
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
        let mut servers = read_servers(path);
        for (fingerprint, server) in self.0 {
            if servers.len() < MAX_SERVERS || servers.contains_key(&fingerprint) {
                servers.insert(fingerprint, server);
            }
        }
        cache_folder::replace_file(path, written(&servers).as_bytes())
    }
}

fn read_servers(path: &Path) -> HashMap<String, KnownServer> {
    let small = fs::metadata(path).is_ok_and(|metadata| metadata.len() <= MAX_FILE);
    let text = if small {
        fs::read_to_string(path).unwrap_or_default()
    } else {
        String::new()
    };
    let mut lines = text.lines();
    match lines.next() {
        Some(HEADER) => lines.filter_map(parsed).take(MAX_SERVERS).collect(),
        _ => HashMap::new(),
    }
}

/// One line: fingerprint, identification, first key exchange, first host-key algorithm, pipelining.
fn parsed(line: &str) -> Option<(String, KnownServer)> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [
        fingerprint,
        identification,
        first_kex,
        first_host_key,
        pipelining,
        ..,
    ] = fields.as_slice()
    else {
        return None;
    };
    let profile = ServerProfile {
        identification: identification.to_string(),
        first_kex: first_kex.to_string(),
        first_host_key: first_host_key.to_string(),
    };
    Some((
        fingerprint.to_string(),
        KnownServer {
            profile,
            pipelining: *pipelining == "yes",
        },
    ))
}

fn written(servers: &HashMap<String, KnownServer>) -> String {
    let mut text = format!("{HEADER}\n");
    for (
        fingerprint,
        KnownServer {
            profile,
            pipelining,
        },
    ) in servers
    {
        let fields = [
            fingerprint.as_str(),
            &profile.identification,
            &profile.first_kex,
            &profile.first_host_key,
            if *pipelining { "yes" } else { "no" },
        ];
        // Identification strings and names have no control characters: they were checked when they came.
        text.push_str(&fields.join("\t"));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

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
        }
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
            Some(&server("mlkem768x25519-sha256"))
        );
        assert_eq!(both.server("SHA256:b"), Some(&server("curve25519-sha256")));
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
        fs::write(&path, "sshoal-servers 2\nSHA256:a\tx\ty\tz\tyes\n").unwrap();
        assert!(ServerCache::read(Some(&path)).is_empty());
        fs::write(
            &path,
            format!("{HEADER}\nSHA256:a\ttorn\nSHA256:b\ti\tk\th\tno\n"),
        )
        .unwrap();
        let cache = ServerCache::read(Some(&path));
        assert_eq!(cache.server("SHA256:a"), None);
        assert_eq!(
            cache.server("SHA256:b").map(|server| server.pipelining),
            Some(false)
        );
    }

    #[test]
    fn nothing_learned_writes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("servers");
        Learned::default().save(&path).unwrap();
        assert!(!path.exists());
    }
}
