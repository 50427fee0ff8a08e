//! What has arrived is hashed on the host before it is put in place, and held against what was read here (`--verify`).

use super::Upload;
use super::files::Stage;
use crate::Trouble;
use crate::hashing::{FileHash, HashKey, HostHash, Verify};

/// Why files are not verified where commands see no part of any file.
const SEES_OTHERS: &str = "commands on the host do not see what its SFTP shows";

/// Both ends' hashes of one file.
#[derive(Debug, Default)]
pub(super) struct Hashes {
    /// Of what was read here.
    pub(super) here: Option<FileHash>,
    /// Of its part.
    host: Option<HostHash>,
    is_asked: bool,
    /// Whether they have been found equal.
    pub(super) are_equal: bool,
}

impl Hashes {
    /// Whether the host is to hash the part, and has not said that it has.
    pub(super) fn is_awaited(&self) -> bool {
        self.is_asked && self.host.is_none()
    }
}

impl Upload {
    /// Whether files are hashed, as far as is known.
    pub(super) fn verifies(&self) -> bool {
        self.plan.hashing.verifies != Verify::Never && self.hashes.why_over().is_none()
    }

    /// All of a file is written, if it does not end in a hole: the host may begin to hash it.
    pub(super) fn ask_for_hash(&mut self, entry: usize) {
        let is_verified = self.verifies();
        let Some(file) = self.files.get_mut(&entry).filter(|_| is_verified) else {
            return;
        };
        if !std::mem::replace(&mut file.hashes.is_asked, true) {
            let key = HashKey::Arrived(entry as u64);
            let octets = file.octets + file.progress.kept;
            self.hashes.ask(key, &file.part, octets);
        }
    }

    /// A file is settled: it is put in place if it is what was sent.
    pub(super) fn verify_part(&mut self, entry: usize) {
        if self.plan.hashing.verifies == Verify::Never {
            return self.put_in_place(entry);
        }
        self.ask_for_hash(entry);
        let why_over = self.hashes.why_over();
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        file.stage = Stage::Verify;
        if why_over.is_some() {
            file.hashes.host.get_or_insert(HostHash::Gone);
        }
        self.judge(entry);
    }

    pub(super) fn handle_hash_arrived(&mut self, entry: usize, hash: HostHash) {
        if let Some(file) = self.files.get_mut(&entry) {
            file.hashes.host = Some(hash);
            self.judge(entry);
            // Who sends it anew waits for the hash of the part that goes.
            self.go_on(entry);
        }
    }

    fn judge(&mut self, entry: usize) {
        let insists = self.plan.hashing.verifies == Verify::Always;
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        let (Stage::Verify, Some(host)) = (file.stage, file.hashes.host) else {
            return;
        };
        match (host, file.hashes.here) {
            (HostHash::Is(host), Some(here)) if host == here => {
                file.hashes.are_equal = true;
                self.put_in_place(entry);
            }
            (HostHash::Is(_), Some(_)) => self.fail_file(entry, Trouble::Differs),
            (HostHash::Unreadable, _) if insists || self.hashes.has_answered() => {
                self.fail_file(entry, Trouble::Unhashed);
            }
            (HostHash::Unreadable, _) => {
                self.hashes.close(SEES_OTHERS);
                self.goes_unverified(entry);
            }
            (HostHash::Gone, _) | (_, None) if insists => {
                let flag = "--verify=always";
                let why = self.hashes.why_over().unwrap_or_default();
                self.fail_file(entry, Trouble::NoHashes { flag, why });
            }
            (HostHash::Gone, _) | (_, None) => self.goes_unverified(entry),
        }
    }

    fn goes_unverified(&mut self, entry: usize) {
        self.tally.why_unverified = self.hashes.why_over();
        self.put_in_place(entry);
    }
}
