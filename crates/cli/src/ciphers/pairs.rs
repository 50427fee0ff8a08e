//! Which combinations of cipher and MAC there are to measure, and by which client.

use sshoal_crypto::{Cipher, KexAlgorithm, Mac};
use sshoal_net::Protection;
use sshoal_proto::ServerLists;

use super::installed::Installed;
use super::weak;

/// A cipher and the MAC that goes with it, by their names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Pair {
    pub(super) cipher: String,
    /// None with ciphers that authenticate by themselves.
    pub(super) mac: Option<String>,
}

/// Which client carries a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum By {
    /// sshoal's own.
    Native,
    /// The installed ssh.
    Ssh,
}

impl By {
    pub(super) fn name(self) -> &'static str {
        match self {
            By::Native => "native",
            By::Ssh => "ssh",
        }
    }
}

impl Pair {
    /// `aes128-gcm@openssh.com`, `aes128-ctr umac-64-etm@openssh.com`
    pub(super) fn name(&self) -> String {
        match &self.mac {
            None => self.cipher.clone(),
            Some(mac) => format!("{} {mac}", self.cipher),
        }
    }

    /// What this program's own client calls it, if it has both.
    pub(super) fn protection(&self) -> Option<Protection> {
        let cipher = Cipher::by_name(&self.cipher)?;
        let mac = match &self.mac {
            None => None,
            Some(mac) => Some(Mac::by_name(mac)?),
        };
        Some(Protection { cipher, mac })
    }

    /// Why it should not be used.
    pub(super) fn weakness(&self) -> Option<&'static str> {
        let mac = self.mac.as_deref().and_then(weak::mac);
        weak::cipher(&self.cipher).or(mac)
    }

    /// Whether it may be recommended: nothing weak, and authenticated before anything is decrypted.
    pub(super) fn is_recommendable(&self) -> bool {
        let is_checked_first = |mac: &String| mac.contains("-etm@");
        self.weakness().is_none() && self.mac.as_ref().is_none_or(is_checked_first)
    }

    /// The lines of ssh_config that have nothing else negotiated.
    pub(super) fn options(&self) -> Vec<(String, String)> {
        let mut options = vec![("Ciphers".to_owned(), self.cipher.clone())];
        options.extend(self.mac.iter().map(|mac| ("MACs".to_owned(), mac.clone())));
        options
    }
}

/// Whether a cipher authenticates by itself, so that no MAC is negotiated (OpenSSH's cipher.c, CFLAG and authlen).
fn is_aead(cipher: &str) -> bool {
    cipher.contains("-gcm@") || cipher.starts_with("chacha20-poly1305@")
}

/// What is wanted of all that there is; everything if nothing is named.
pub(super) struct Wanted<'a> {
    pub(super) ciphers: &'a [String],
    pub(super) macs: &'a [String],
}

/// All combinations that the server and a client of ours have, in the server's order. ssh carries what native lacks, and
/// what may be recommended: its lines of ssh_config are for ssh itself, too. `native`: whether that can log in at all.
pub(super) fn combinations(
    server: &ServerLists,
    native: bool,
    ssh: Option<&Installed>,
    wanted: &Wanted<'_>,
) -> Vec<(Pair, By)> {
    let is_wanted = |names: &[String], name: &String| names.is_empty() || names.contains(name);
    let ciphers = server.ciphers.iter();
    let ciphers = ciphers.filter(|name| is_wanted(wanted.ciphers, name));
    let mut found = Vec::new();
    for cipher in ciphers {
        let macs: Vec<Option<String>> = match is_aead(cipher) {
            true => vec![None],
            false => server
                .macs
                .iter()
                .filter(|name| is_wanted(wanted.macs, name))
                .cloned()
                .map(Some)
                .collect(),
        };
        for mac in macs {
            let pair = Pair {
                cipher: cipher.clone(),
                mac,
            };
            let is_native = native && pair.protection().is_some();
            if is_native {
                found.push((pair.clone(), By::Native));
            }
            let has_ssh = ssh.is_some_and(|ssh| ssh.has(&pair));
            if has_ssh && (!is_native || pair.is_recommendable()) {
                found.push((pair, By::Ssh));
            }
        }
    }
    found
}

/// The key exchanges that the server and a client of ours have, in the server's order; by whom as with [`combinations`].
pub(super) fn key_exchanges(
    server: &ServerLists,
    native: bool,
    ssh: Option<&Installed>,
) -> Vec<(String, By)> {
    let mut found = Vec::new();
    for name in &server.kex {
        let is_native = native && KexAlgorithm::by_name(name).is_some();
        if is_native {
            found.push((name.clone(), By::Native));
        }
        let has_ssh = ssh.is_some_and(|ssh| ssh.kex.contains(name));
        if has_ssh && (!is_native || weak::key_exchange(name).is_none()) {
            found.push((name.clone(), By::Ssh));
        }
    }
    found
}

/// What a client negotiates that offers these in this order (RFC 4253 section 7.1).
pub(super) fn negotiated(
    server: &ServerLists,
    ciphers: &[String],
    macs: &[String],
) -> Option<Pair> {
    let cipher = ciphers.iter().find(|name| server.ciphers.contains(name))?;
    let mac = match is_aead(cipher) {
        true => None,
        false => Some(macs.iter().find(|name| server.macs.contains(name))?.clone()),
    };
    let cipher = cipher.clone();
    Some(Pair { cipher, mac })
}

#[cfg(test)]
#[path = "pairs_tests.rs"]
mod tests;
