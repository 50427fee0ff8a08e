//! What can be read only once, kept in a file without a name for the hosts that read it at their own pace.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

use rustix::fs::{FallocateFlags, fallocate};

/// Octets read at a time.
const CHUNK: usize = 256 * 1024;
/// Octets that are kept for a single host beyond what it has taken: what it has taken goes.
const KEPT: u64 = 64 * 1024 * 1024;

/// A pipe that is being copied into a file.
#[derive(Debug)]
pub(super) struct Spool {
    file: File,
    state: Mutex<State>,
    changed: Condvar,
    is_for_one: bool,
}

#[derive(Debug, Default)]
struct State {
    /// Octets that have come.
    come: u64,
    /// Octets that the single host has taken.
    taken: u64,
    ended: bool,
    error: Option<String>,
}

impl Spool {
    /// Begins to copy.
    pub(super) fn start(from: File, hosts: usize) -> io::Result<Arc<Spool>> {
        let spool = Arc::new(Spool {
            file: tempfile::tempfile()?,
            state: Mutex::default(),
            changed: Condvar::new(),
            is_for_one: hosts <= 1,
        });
        let copying = spool.clone();
        thread::Builder::new()
            .name("stdin".to_owned())
            .spawn(move || copying.copy(from))?;
        Ok(spool)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        match self.state.lock() {
            Ok(state) => state,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    fn copy(&self, mut from: File) {
        let mut chunk = vec![0; CHUNK];
        loop {
            let mut state = self.lock();
            while self.is_for_one && state.come.saturating_sub(state.taken) > KEPT {
                state = match self.changed.wait(state) {
                    Ok(state) => state,
                    Err(poisoned) => poisoned.into_inner(),
                };
            }
            let at = state.come;
            drop(state);
            let copied = match from.read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(octets) => self
                    .file
                    .write_all_at(&chunk[..octets], at)
                    .map(|()| octets),
                Err(error) => Err(error),
            };
            let mut state = self.lock();
            match copied {
                Ok(octets) => {
                    state.come += octets as u64;
                    state.ended = octets == 0;
                }
                Err(error) => state.error = Some(error.to_string()),
            }
            let is_over = state.ended || state.error.is_some();
            drop(state);
            self.changed.notify_all();
            if is_over {
                return;
            }
        }
    }

    /// So many octets from there; fewer only at the end. Waits for them.
    pub(super) fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>, String> {
        let mut state = self.lock();
        while state.come < offset + len as u64 && !state.ended && state.error.is_none() {
            state = match self.changed.wait(state) {
                Ok(state) => state,
                Err(poisoned) => poisoned.into_inner(),
            };
        }
        if let Some(error) = &state.error {
            return Err(error.clone());
        }
        let there = state.come.saturating_sub(offset);
        drop(state);
        let len = usize::try_from(there).unwrap_or(len).min(len);
        let mut data = vec![0; len];
        self.file
            .read_exact_at(&mut data, offset)
            .map_err(|error| error.to_string())?;
        if self.is_for_one {
            let mut state = self.lock();
            state.taken = state.taken.max(offset);
            self.changed.notify_all();
            drop(state);
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
        let reading = thread::spawn(move || ahead.read(1_000_000, 100_000).unwrap().len());
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
}
