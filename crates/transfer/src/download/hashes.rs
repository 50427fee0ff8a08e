//! Hashes of both ends: what is here already is the same if they are equal (`--checksum`), and what has been fetched is put in
//! place only then (`--verify`).

use super::files::Stage;
use super::{Download, DownloadNeed, LocalFile, Stage as Phase};
use crate::Trouble;
use crate::hashing::{FileHash, HashKey, HostHash, Verify};
use crate::owners::Owners;

/// Why files are not verified where commands see none of them.
const SEES_OTHERS: &str = "commands on the host do not see what its SFTP shows";

/// Both ends' hashes of one file.
#[derive(Debug, Default)]
pub(super) struct Hashes {
    here: Option<FileHash>,
    host: Option<HostHash>,
}

impl Download {
    /// The session with the host's hashing program.
    pub fn hashes(&mut self) -> &mut crate::HostHashes {
        &mut self.hashes
    }

    /// Takes note of what became of the session.
    pub fn handle_hashes(&mut self) {
        self.advance();
    }

    /// Whether it may begin: a host that cannot hash gives nothing where hashes must be had.
    pub(super) fn has_hashes(&mut self) -> bool {
        let Some(flag) = self.plan.hashing.insists() else {
            return true;
        };
        if self.interrupted {
            self.end();
        } else if let Some(why) = self.hashes.why_over() {
            let plan = self.plan.clone();
            for source in &plan.sources {
                self.failed(source.clone(), Trouble::NoHashes { flag, why });
            }
            self.end();
        }
        self.stage == Phase::Sources && self.hashes.is_ready()
    }

    pub(super) fn take_hashes(&mut self) {
        while let Some((key, hash)) = self.hashes.poll_answer() {
            let (HashKey::There(number) | HashKey::Arrived(number)) = key;
            let file = LocalFile(number);
            let Some(it) = self.files.get_mut(&file) else {
                continue;
            };
            it.hashes.host = Some(hash);
            match it.stage {
                Stage::Compare => self.conclude(file),
                Stage::Verify => self.judge(file),
                _ => {}
            }
        }
    }

    /// What is here already, if it has the size of what is to come.
    pub(super) fn handle_compared(
        &mut self,
        file: LocalFile,
        here: Result<Option<FileHash>, String>,
    ) {
        let it = self.files.get_mut(&file);
        let Some(it) = it.filter(|it| it.stage == Stage::Compare) else {
            return;
        };
        match here {
            Ok(None) => self.begin_here(file),
            Ok(Some(hash)) => {
                it.hashes.here = Some(hash);
                let octets = it.item.attributes.size.unwrap_or(0);
                let key = HashKey::There(file.0);
                self.hashes.ask(key, &it.item.remote, octets);
            }
            Err(error) => {
                let doing = "reading";
                self.fail_file(file, Trouble::Local { doing, error });
            }
        }
    }

    fn conclude(&mut self, file: LocalFile) {
        let preserve = self.plan.preserve;
        let keeps = preserve || self.plan.owners != Owners::Makers;
        let Some(it) = self.files.get_mut(&file) else {
            return;
        };
        let hashes = std::mem::take(&mut it.hashes);
        match (hashes.here, hashes.host) {
            (Some(here), Some(HostHash::Is(host))) if here == host && keeps => {
                it.stage = Stage::Touch;
                let attributes = it.item.attributes;
                let (path, remote) = (it.item.local.clone(), it.item.remote.clone());
                let need = DownloadNeed::Touch {
                    file,
                    path,
                    owner: self.owner_here(&remote, &attributes),
                    mode: attributes.permissions().filter(|_| preserve),
                    times: attributes.times.filter(|_| preserve),
                };
                self.needs.push_back(need);
            }
            (Some(here), Some(HostHash::Is(host))) if here == host => self.is_unchanged(file),
            (_, Some(HostHash::Gone)) => {
                let flag = "--checksum";
                let why = self.hashes.why_over().unwrap_or_default();
                self.fail_file(file, Trouble::NoHashes { flag, why });
            }
            // What cannot be read there is told of when it is fetched.
            _ => self.begin_here(file),
        }
    }

    /// An unchanged file has its mode and times, or not.
    pub(super) fn handle_touched(&mut self, file: LocalFile, touched: Result<(), String>) {
        let it = self.files.get(&file);
        if it.is_none_or(|it| it.stage != Stage::Touch) {
            return;
        }
        match touched {
            Ok(()) => self.is_unchanged(file),
            Err(error) => {
                let doing = "setting owner, mode and times";
                self.fail_file(file, Trouble::Local { doing, error });
            }
        }
    }

    /// All of a file is here: it is put in place if both ends' hashes are equal.
    pub(super) fn verify(&mut self, file: LocalFile) {
        let is_over = self.hashes.why_over().is_some();
        let never = self.plan.hashing.verifies == Verify::Never;
        let Some(it) = self.files.get_mut(&file) else {
            return;
        };
        // What has no size, as files of /proc, is another thing whenever it is read.
        if never || it.opened.size.unwrap_or(0) == 0 {
            return self.finish_here(file);
        }
        it.stage = Stage::Verify;
        if is_over {
            it.hashes.host = Some(HostHash::Gone);
            return self.judge(file);
        }
        let size = it.octets;
        let key = HashKey::Arrived(file.0);
        self.hashes.ask(key, &it.item.remote, size);
        self.needs.push_back(DownloadNeed::Hash { file, size });
        self.close_remote(file);
    }

    pub(super) fn handle_hashed(&mut self, file: LocalFile, here: Result<FileHash, String>) {
        let it = self.files.get_mut(&file);
        let Some(it) = it.filter(|it| it.stage == Stage::Verify) else {
            return;
        };
        match here {
            Ok(hash) => {
                it.hashes.here = Some(hash);
                self.judge(file);
            }
            Err(error) => {
                let doing = "reading what has arrived";
                self.fail_file(file, Trouble::Local { doing, error });
            }
        }
    }

    fn judge(&mut self, file: LocalFile) {
        let insists = self.plan.hashing.verifies == Verify::Always;
        let Some(it) = self.files.get(&file) else {
            return;
        };
        match (it.hashes.host, it.hashes.here) {
            (Some(HostHash::Is(host)), Some(here)) if host == here => {
                self.tally.verified += 1;
                self.finish_here(file);
            }
            (Some(HostHash::Is(_)), Some(_)) => self.fail_file(file, Trouble::Differs),
            (Some(HostHash::Unreadable), _) if insists || self.hashes.has_answered() => {
                self.fail_file(file, Trouble::Unhashed);
            }
            (Some(HostHash::Unreadable), _) => {
                self.hashes.close(SEES_OTHERS);
                self.goes_unverified(file);
            }
            (Some(HostHash::Gone), _) if insists => {
                let flag = "--verify=always";
                let why = self.hashes.why_over().unwrap_or_default();
                self.fail_file(file, Trouble::NoHashes { flag, why });
            }
            (Some(HostHash::Gone), _) => self.goes_unverified(file),
            (None, _) | (Some(HostHash::Is(_)), None) => {}
        }
    }

    fn goes_unverified(&mut self, file: LocalFile) {
        self.tally.why_unverified = self.hashes.why_over();
        self.finish_here(file);
    }
}
