//! What can be read only once, kept in a file without a name for the hosts that read it at their own pace.
//!
//! A thread of its own reads it, and may wait for ever in that: nobody waits for the thread. Hosts are told when there is
//! something for them to read.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

use rustix::fs::{FallocateFlags, fallocate};
use tokio::sync::watch;

use crate::input::{Copied, end, unkept};

/// Octets read at a time.
const CHUNK: usize = 256 * 1024;
/// Octets that are kept for a single host beyond what it has taken: what it has taken goes.
const KEPT: u64 = 64 * 1024 * 1024;

/// A pipe that is being copied into a file.
#[derive(Debug)]
pub(super) struct Spool {
    file: File,
    copied: watch::Sender<Copied>,
    /// Octets that the single host has taken.
    taken: Mutex<u64>,
    has_taken: Condvar,
    is_for_one: bool,
}

impl Spool {
    /// Begins to copy.
    ///
    /// # Errors
    ///
    /// No file can be made to keep it in, or no thread.
    pub(super) fn start(from: File, hosts: usize) -> io::Result<Arc<Spool>> {
        let file =
            tempfile::tempfile().map_err(|error| io::Error::new(error.kind(), unkept(&error)))?;
        Spool::start_in(file, from, hosts)
    }

    fn start_in(file: File, from: File, hosts: usize) -> io::Result<Arc<Spool>> {
        let spool = Arc::new(Spool {
            file,
            copied: watch::Sender::default(),
            taken: Mutex::default(),
            has_taken: Condvar::new(),
            is_for_one: hosts <= 1,
        });
        let copying = spool.clone();
        thread::Builder::new()
            .name("stdin".to_owned())
            .spawn(move || copying.copy(from))?;
        Ok(spool)
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        match self.taken.lock() {
            Ok(taken) => taken,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    fn copy(&self, mut from: File) {
        let mut chunk = vec![0; CHUNK];
        let mut come = 0;
        loop {
            self.wait_for_room(come);
            let octets = match from.read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return end(&self.copied, error.to_string(), false),
                Ok(octets) => octets,
            };
            if let Err(error) = self.file.write_all_at(&chunk[..octets], come) {
                return end(&self.copied, unkept(&error), true);
            }
            come += octets as u64;
            self.copied.send_modify(|copied| {
                copied.octets = come;
                copied.complete = octets == 0;
            });
            if octets == 0 {
                return;
            }
        }
    }

    fn wait_for_room(&self, come: u64) {
        let mut taken = self.lock();
        while self.is_for_one && come.saturating_sub(*taken) > KEPT {
            taken = match self.has_taken.wait(taken) {
                Ok(taken) => taken,
                Err(poisoned) => poisoned.into_inner(),
            };
        }
    }

    /// Until all up to there has come, or no more comes.
    pub(super) fn arrival(&self, to: u64) -> impl Future<Output = ()> + use<> {
        let mut copied = self.copied.subscribe();
        async move {
            let is_there =
                |copied: &Copied| copied.octets >= to || copied.complete || copied.broken.is_some();
            // Without a spool nothing more comes either.
            let _ = copied.wait_for(is_there).await;
        }
    }

    /// Why no host can have all of it, where that is because we cannot keep it.
    pub(super) fn unkept(&self) -> Option<Arc<str>> {
        self.copied.borrow().unkept()
    }

    /// So many octets from there; fewer if they have not come.
    ///
    /// # Errors
    ///
    /// It broke off before its end.
    pub(super) fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>, String> {
        let copied = self.copied.borrow().clone();
        if let Some(broken) = copied.broken {
            return Err(broken.why.to_string());
        }
        let there = copied.octets.saturating_sub(offset);
        let len = usize::try_from(there).unwrap_or(len).min(len);
        let mut data = vec![0; len];
        self.file
            .read_exact_at(&mut data, offset)
            .map_err(|error| error.to_string())?;
        if self.is_for_one {
            let mut taken = self.lock();
            *taken = (*taken).max(offset);
            self.has_taken.notify_all();
            drop(taken);
            // It only saves room: a file system that cannot do it keeps all.
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let _ = fallocate(&self.file, flags, offset, len as u64);
        }
        Ok(data)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Write;
    use std::os::fd::OwnedFd;

    use super::*;

    /// What waits for a spool, here on this thread alone.
    fn wait(arrival: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(arrival);
    }

    /// What a pipe carries, read by so many hosts, the last one long after the others.
    fn carried(hosts: usize, octets: usize) {
        let (reader, mut writer) = io::pipe().unwrap();
        let sent: Vec<u8> = (0..octets).map(|at| (at / 3) as u8).collect();
        let expected = sent.clone();
        let writing = thread::spawn(move || writer.write_all(&sent).unwrap());
        let spool = Spool::start(File::from(OwnedFd::from(reader)), hosts).unwrap();
        for _ in 0..hosts {
            let mut got = Vec::new();
            loop {
                wait(spool.arrival(got.len() as u64 + 100_000));
                let data = spool.read(got.len() as u64, 100_000).unwrap();
                got.extend_from_slice(&data);
                if data.len() < 100_000 {
                    break;
                }
            }
            assert!(got == expected);
        }
        writing.join().unwrap();
    }

    #[test]
    fn a_pipe_arrives_whole_at_every_host() {
        carried(3, 1_234_567);
        carried(2, 0);
    }

    #[test]
    fn who_reads_ahead_of_the_pipe_waits_for_it() {
        let (reader, mut writer) = io::pipe().unwrap();
        let spool = Spool::start(File::from(OwnedFd::from(reader)), 1).unwrap();
        let (ahead, behind) = (spool.clone(), spool);
        let reading = thread::spawn(move || {
            wait(ahead.arrival(1_100_000));
            ahead.read(1_000_000, 100_000).unwrap().len()
        });
        for _ in 0..110 {
            writer.write_all(&[7; 10_000]).unwrap();
        }
        assert_eq!(reading.join().unwrap(), 100_000);
        assert_eq!(behind.read(0, 5).unwrap(), [7; 5]);
    }

    #[test]
    fn a_single_host_s_pipe_is_not_kept() {
        let octets = KEPT as usize + 5_000_000;
        carried(1, octets);
    }

    #[test]
    fn what_cannot_be_kept_is_told_with_its_folder_and_what_to_do() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"text").unwrap();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let spool = Spool::start_in(full, File::from(OwnedFd::from(reader)), 2).unwrap();
        wait(spool.arrival(4));
        let told = spool.unkept().unwrap();
        let folder = std::env::temp_dir();
        for words in ["standard input", &folder.to_string_lossy(), "TMPDIR"] {
            assert!(told.contains(words), "{told}");
        }
        assert_eq!(spool.read(0, 4).unwrap_err(), *told);
    }
}
