//! The verdict on a host key, as OpenSSH's `check_host_key` (sshconnect.c) reaches it.
//!
//! What `StrictHostKeyChecking` then makes of the verdict is the caller's business. Differences
//! from OpenSSH, all towards caution:
//!
//! - a key that is revoked under the bare name of a host on another port, or under an address
//!   given for `CheckHostIP`, is [`Verdict::Revoked`]; OpenSSH takes it for a new one;
//! - damaged `@revoked` lines stay in force;
//! - a whole key of a type that is not known here means that the host is known by another key; OpenSSH skips the line.

use crate::host_name::HostName;
use crate::key::KeyFields;
use crate::key_types::revoking;
use crate::known_hosts::{Entry, KnownHosts, LineProblem, Location};
use crate::line::Marker;
use crate::pattern;

/// For whom and when a key is judged.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// The host first; behind it, if `CheckHostIP` is on, the address it was reached at. With
    /// `HostKeyAlias` the first is the alias at [`DEFAULT_PORT`](crate::DEFAULT_PORT).
    pub names: &'a [HostName<'a>],
    /// Now, in seconds since 1970 (UTC), for the validity of certificates.
    pub now: u64,
}

/// Lines from elsewhere that count besides the files': those of a `KnownHostsCommand`.
#[derive(Clone, Copy, Default)]
pub struct Further<'a> {
    /// Lines for the host's name.
    pub of_host: Option<&'a KnownHosts>,
    /// Lines for its address.
    pub of_address: Option<&'a KnownHosts>,
}

/// What the server presented, and proved to possess.
#[derive(Clone, Copy, Debug)]
pub enum Presented<'a> {
    /// A plain key's blob.
    Key(&'a [u8]),
    /// A host certificate.
    Certificate(Certificate<'a>),
}

/// A host certificate (PROTOCOL.certkeys) whose signature by the authority has been verified.
#[derive(Clone, Copy, Debug)]
pub struct Certificate<'a> {
    /// The blob of the plain key that is certified.
    pub key: &'a [u8],
    /// The blob of the authority's key.
    pub authority: &'a [u8],
    /// The host names it is valid for; none means for no host.
    pub principals: &'a [&'a str],
    /// Valid from this second since 1970 on.
    pub valid_after: u64,
    /// Invalid from this second since 1970 on.
    pub valid_before: u64,
    /// Why the caller refuses the certificate, if it does: a critical option, a signature
    /// algorithm not in `CASignatureAlgorithms`. The plain key may still be known.
    pub refused: Option<&'a str>,
}

/// Whether the host is who it says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The key, or the authority that certified it, is known for this host.
    Trusted {
        /// The line that says so.
        by: Location,
        /// Whether that is a `@cert-authority` line.
        authority: bool,
    },
    /// Nothing is known of this host.
    Unknown(Unknown),
    /// Other keys are known for this host, and not this one.
    Changed(Changed),
    /// The key must not be accepted.
    Revoked {
        /// The line that revokes it.
        by: Location,
    },
}

/// Why a key is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    /// Lines for this host that could not be used, because their keys are damaged.
    pub unusable: Vec<LineProblem>,
    /// If an authority for this host is known, why its certificate was not accepted.
    pub certificate: Option<String>,
}

/// What is known instead of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The last line with another key, as OpenSSH reports it.
    pub known: Location,
    /// The name or address, as written, that has another key.
    pub name: String,
    /// The host itself does not contradict, only its address does (`CheckHostIP`). With
    /// `StrictHostKeyChecking no` OpenSSH then warns and goes on with all kinds of
    /// authentication.
    pub by_address: bool,
}

/// What one name's entries say of a key: `HostStatus` (hostfile.h), with the entry.
enum Status<'k> {
    Ok(Entry<'k>),
    New,
    Changed(Entry<'k>),
    Revoked(Entry<'k>),
}

impl KnownHosts {
    /// Judges a presented host key.
    pub fn judge(&self, query: &Query<'_>, presented: &Presented<'_>) -> Verdict {
        self.judge_with(&Further::default(), query, presented)
    }

    /// As [`judge`](Self::judge), with further lines. A host on another port is looked for by its bare name in the files
    /// alone.
    pub fn judge_with(
        &self,
        further: &Further<'_>,
        query: &Query<'_>,
        presented: &Presented<'_>,
    ) -> Verdict {
        let Some((host, addresses)) = query.names.split_first() else {
            return Verdict::Unknown(Unknown::default());
        };
        match presented {
            Presented::Key(blob) => self.judge_key(further, host, addresses, blob),
            Presented::Certificate(certificate) => {
                self.judge_certificate(further, host, query.now, certificate)
            }
        }
    }

    fn judge_key(
        &self,
        further: &Further<'_>,
        host: &HostName<'_>,
        addresses: &[HostName<'_>],
        blob: &[u8],
    ) -> Verdict {
        let matches = entries(self, further.of_host, host);
        let verdict = match status_of_key(&matches, blob) {
            Status::Ok(entry) => Verdict::Trusted {
                by: entry.location(),
                authority: false,
            },
            Status::Revoked(entry) => Verdict::Revoked {
                by: entry.location(),
            },
            Status::Changed(entry) => Verdict::Changed(Changed {
                known: entry.location(),
                name: host.written(),
                by_address: false,
            }),
            Status::New => {
                let bare_addresses: Vec<_> = addresses
                    .iter()
                    .map(|address| HostName::new(address.name))
                    .collect();
                let bare = self.judge_bare_name(host, |bare| {
                    self.judge_key(&Further::default(), bare, &bare_addresses, blob)
                });
                let unknown = || Unknown {
                    unusable: unusable(&matches),
                    certificate: None,
                };
                bare.unwrap_or_else(|| Verdict::Unknown(unknown()))
            }
        };
        match verdict {
            Verdict::Trusted { .. } | Verdict::Unknown(_) => self
                .contradiction(further, addresses, blob)
                .unwrap_or(verdict),
            Verdict::Changed(_) | Verdict::Revoked { .. } => verdict,
        }
    }

    /// The "checking without port identifier" step: a host that is new on its port may be known
    /// by its bare name, and then no more is asked; another key there means nothing.
    fn judge_bare_name(
        &self,
        host: &HostName<'_>,
        judge: impl FnOnce(&HostName<'_>) -> Verdict,
    ) -> Option<Verdict> {
        if host.is_default_port() {
            return None;
        }
        match judge(&HostName::new(host.name)) {
            verdict @ (Verdict::Trusted { .. } | Verdict::Revoked { .. }) => Some(verdict),
            Verdict::Unknown(_) | Verdict::Changed(_) => None,
        }
    }

    fn contradiction(
        &self,
        further: &Further<'_>,
        addresses: &[HostName<'_>],
        blob: &[u8],
    ) -> Option<Verdict> {
        addresses.iter().find_map(|address| {
            match status_of_key(&entries(self, further.of_address, address), blob) {
                Status::Ok(_) | Status::New => None,
                Status::Revoked(entry) => Some(Verdict::Revoked {
                    by: entry.location(),
                }),
                Status::Changed(entry) => Some(Verdict::Changed(Changed {
                    known: entry.location(),
                    name: address.written(),
                    by_address: true,
                })),
            }
        })
    }

    /// A certificate counts if its authority is known and it is valid for this host; otherwise
    /// the plain key in it is judged.
    fn judge_certificate(
        &self,
        further: &Further<'_>,
        host: &HostName<'_>,
        now: u64,
        certificate: &Certificate<'_>,
    ) -> Verdict {
        let matches = entries(self, further.of_host, host);
        let mut refused = None;
        match status_of_certificate(&matches, certificate) {
            Status::Revoked(entry) => {
                return Verdict::Revoked {
                    by: entry.location(),
                };
            }
            Status::Ok(entry) => match fault_of(certificate, host.name, now) {
                None => {
                    return Verdict::Trusted {
                        by: entry.location(),
                        authority: true,
                    };
                }
                Some(why) => refused = Some(why),
            },
            Status::New | Status::Changed(_) => {
                let bare = self.judge_bare_name(host, |bare| {
                    self.judge_certificate(&Further::default(), bare, now, certificate)
                });
                if let Some(verdict) = bare {
                    return verdict;
                }
            }
        }
        match self.judge_key(further, host, &[], certificate.key) {
            Verdict::Unknown(unknown) => Verdict::Unknown(Unknown {
                certificate: refused,
                ..unknown
            }),
            verdict => verdict,
        }
    }
}

/// The lines for a name: the files' first.
fn entries<'k>(
    files: &'k KnownHosts,
    further: Option<&'k KnownHosts>,
    name: &HostName<'_>,
) -> Vec<Entry<'k>> {
    let sources = [Some(files), further].into_iter().flatten();
    sources
        .flat_map(|source| source.lookup(name).iter().collect::<Vec<_>>())
        .collect()
}

/// `check_key_in_hostkeys` (hostfile.c) for a plain key: an equal key is known, or others are, or
/// none; and a revocation beats all.
fn status_of_key<'k>(matches: &[Entry<'k>], blob: &[u8]) -> Status<'k> {
    if let Some(entry) = revoking(matches, blob) {
        return Status::Revoked(entry);
    }
    let presented = KeyFields::parse(blob);
    let mut status = Status::New;
    for entry in matches
        .iter()
        .filter(|entry| entry.marker() == Marker::None)
    {
        let known = entry.key_blob();
        if known.is_none() && !entry.is_foreign() {
            continue;
        }
        let known = known.as_deref().and_then(KeyFields::parse);
        if presented.zip(known).is_some_and(|(a, b)| a.same(&b)) {
            return Status::Ok(*entry);
        }
        status = Status::Changed(*entry);
    }
    status
}

/// `check_key_in_hostkeys` (hostfile.c) for a certificate: is its authority known for the host,
/// and is neither of its keys revoked?
fn status_of_certificate<'k>(matches: &[Entry<'k>], certificate: &Certificate<'_>) -> Status<'k> {
    let keys = [certificate.key, certificate.authority];
    if let Some(entry) = keys.iter().find_map(|blob| revoking(matches, blob)) {
        return Status::Revoked(entry);
    }
    let Some(presented) = KeyFields::parse(certificate.authority) else {
        return Status::New;
    };
    let authority = matches.iter().find(|entry| {
        entry.marker() == Marker::CertAuthority
            && entry
                .key_blob()
                .is_some_and(|blob| KeyFields::parse(&blob).is_some_and(|key| key.same(&presented)))
    });
    authority.copied().map_or(Status::New, Status::Ok)
}

/// `sshkey_cert_check_host` (sshkey.c): why the certificate does not vouch for `host` now.
fn fault_of(certificate: &Certificate<'_>, host: &str, now: u64) -> Option<String> {
    if now < certificate.valid_after {
        return Some("the host certificate is not yet valid".into());
    }
    if now >= certificate.valid_before {
        return Some("the host certificate has expired".into());
    }
    if certificate.principals.is_empty() {
        return Some("the host certificate names no host".into());
    }
    let host = host.to_ascii_lowercase();
    // Principals are patterns from OpenSSH 10 on, and compare with case, while host names have
    // been made lowercase before: one with a capital letter matches nothing.
    let named = certificate
        .principals
        .iter()
        .any(|principal| pattern::matches_exact_case(principal.as_bytes(), host.as_bytes()));
    if !named {
        let names = certificate.principals.join(", ");
        return Some(format!(
            "the host certificate is for {names} and not for {host}"
        ));
    }
    certificate.refused.map(String::from)
}

/// The host's lines whose keys are damaged.
fn unusable(matches: &[Entry<'_>]) -> Vec<LineProblem> {
    let damaged = matches
        .iter()
        .filter(|entry| entry.marker() != Marker::Revoked && entry.key_blob().is_none());
    let problem = |entry: &Entry<'_>| {
        let Location { file, line } = entry.location();
        let why = match entry.key_type() {
            Some(key_type) => format!("the key is not a whole {} key", key_type.name()),
            None => "the key cannot be read".into(),
        };
        LineProblem { file, line, why }
    };
    damaged.map(problem).collect()
}

#[cfg(test)]
mod tests;
