//! One run's journal while the run is on.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};
use sshoal_fleet::HostId;
use sshoal_journal::run::{
    Boot, FileIdentity, Left, Plan, PlannedHost, RunId, RunReader, RunRecord, VERSION, put_hosts,
    put_output, put_sent,
};
use sshoal_proto::Stream;

use super::boot::boot_id;
use super::endings::{ending_of, noted_verdict};
use super::folder;
use super::read::KnownRun;
use super::sync::{Synced, Syncing};
use crate::observer::Notice;
use crate::signals::Interruption;

/// Octets written before the file is given to others that wait for it.
const PIECE: usize = 256 * 1024;
/// How long a lock is waited for that somebody only looks at, and how often.
const LOCK_GLANCE: Duration = Duration::from_millis(5);
const LOCK_GLANCES: usize = 40;
/// Identifiers that may be taken before there is none to be had.
const MAX_TAKEN: usize = 100;
/// SIGINT, in a journal.
const INTERRUPTED: u32 = 2;

/// What a journal survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The end of this process, whatever kills it.
    Write,
    /// The end of this machine as well: nothing leaves, and no result is shown, that is not on the disk.
    Sync,
}

/// A run that begins.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// What is to be done; the time is filled in.
    pub plan: Plan,
    /// The command line.
    pub arguments: Vec<Vec<u8>>,
    /// The files that it reads.
    pub files: Vec<FileIdentity>,
    /// What of its input can be read once only, and why.
    pub once: Option<String>,
    /// Its hosts, in the order in which they start.
    pub hosts: Vec<PlannedHost>,
    /// Whether nothing more is to be begun where the journal cannot be written.
    pub is_needed: bool,
}

/// A run's journal that is being written.
pub struct RunJournal {
    id: RunId,
    path: PathBuf,
    /// What the journal calls the hosts, if not as the fleet does.
    numbers: Option<Vec<u32>>,
    keeps_output: bool,
    /// Whether the run ends where a record cannot be written: with [`Durability::Sync`], where commands are found by it that outlive
    /// the run, and where it is gone on with, since the journal then knows what must not be sent again.
    is_needed: bool,
    /// Whether it is of an earlier version, which lacks some records.
    is_old: bool,
    /// Which hosts' commands are noted as sent.
    sent: Vec<AtomicBool>,
    /// How many of the run's hosts have not come to an end of their own.
    left: AtomicUsize,
    file: Mutex<Records>,
    /// Set when it is lost and nobody has been told.
    lost: Mutex<Option<String>>,
    syncing: Option<Syncing>,
}

/// Where records go.
struct Records {
    file: File,
    /// Why one could not be written. There are no further ones then: behind a part of that one they would not be found.
    broken: Option<String>,
    /// Whether there is nothing left of them.
    is_gone: bool,
}

impl Records {
    fn new(file: File) -> Mutex<Records> {
        Mutex::new(Records {
            file,
            broken: None,
            is_gone: false,
        })
    }

    fn check(&self) -> io::Result<()> {
        match &self.broken {
            None => Ok(()),
            Some(why) => Err(io::Error::other(why.clone())),
        }
    }

    fn append(&mut self, octets: &[u8], path: &Path) -> io::Result<()> {
        self.check()?;
        self.file.write_all(octets).map_err(|error| {
            let why = format!("{}: {error}", path.display());
            self.broken = Some(why.clone());
            io::Error::new(error.kind(), why)
        })
    }
}

impl RunJournal {
    /// Makes the journal of a run that begins.
    ///
    /// # Errors
    ///
    /// It cannot be made or written.
    pub fn create(folder: &Path, new: NewRun, durability: Durability) -> io::Result<RunJournal> {
        folder::make(folder)?;
        let now = since_1970();
        let (id, file) = created(folder, now)?;
        let path = folder::run_path(folder, id);
        let hosts = new.hosts.len();
        let keeps_output = new.plan.keeps_output;
        let journal = RunJournal {
            id,
            path,
            numbers: None,
            keeps_output,
            is_needed: new.is_needed || durability == Durability::Sync,
            is_old: false,
            sent: unsent(hosts),
            left: AtomicUsize::new(hosts),
            syncing: syncing(&file, durability)?,
            file: Records::new(file),
            lost: Mutex::default(),
        };
        if let Err(error) = journal.begin(new, now) {
            // Half a plan is of no use to anybody.
            let _ = fs::remove_file(&journal.path);
            return Err(error);
        }
        if durability == Durability::Sync {
            File::open(folder)?.sync_all()?;
        }
        Ok(journal)
    }

    /// Goes on with a run as it was read. `hosts` are those of its hosts that are performed now, in this order.
    ///
    /// # Errors
    ///
    /// It cannot be written, and is what it was; or the run is on, or was gone on with since it was read.
    pub fn go_on(
        run: &KnownRun,
        hosts: Vec<u32>,
        durability: Durability,
    ) -> io::Result<RunJournal> {
        run.undamaged().map_err(io::Error::other)?;
        let folder = folder::runs_folder().ok_or(io::ErrorKind::NotFound)?;
        let path = folder::run_path(&folder, run.id);
        let file = folder::open(&path, OpenOptions::new().append(true))?;
        lock(&file)?;
        let metadata = file.metadata()?;
        if metadata.nlink() == 0 {
            return Err(io::ErrorKind::NotFound.into());
        }
        if metadata.len() != run.octets {
            return Err(io::Error::other(
                "another sshoal has gone on with the run meanwhile; look at it again with `sshoal runs`",
            ));
        }
        file.set_len(run.valid)?;
        let is_old = run.version < VERSION;
        let mut out = Vec::new();
        began(since_1970(), durability, is_old).put(&mut out);
        if let Err(error) = (&file).write_all(&out) {
            // A part of it may be there.
            file.set_len(run.valid)?;
            let text = format!("{}: {error}; it is as it was", path.display());
            return Err(io::Error::new(error.kind(), text));
        }
        let left = run.state.count(Left::ToRun) + run.state.count(Left::MaybeRan);
        let journal = RunJournal {
            id: run.id,
            path,
            sent: unsent(hosts.len()),
            numbers: Some(hosts),
            keeps_output: run.state.plan.keeps_output,
            is_needed: true,
            is_old,
            left: AtomicUsize::new(left),
            syncing: syncing(&file, durability)?,
            file: Records::new(file),
            lost: Mutex::default(),
        };
        journal.sync_now()?;
        Ok(journal)
    }

    fn begin(&self, new: NewRun, now: Duration) -> io::Result<()> {
        let mut out = RunReader::header();
        let plan = Plan {
            at_ms: milliseconds(now),
            ..new.plan
        };
        RunRecord::Plan(plan).put(&mut out);
        for word in new.arguments {
            RunRecord::Argument(word).put(&mut out);
        }
        for file in new.files {
            RunRecord::File(file).put(&mut out);
        }
        if let Some(why) = new.once {
            RunRecord::Once(why).put(&mut out);
        }
        put_hosts(new.hosts, &mut out);
        RunRecord::Planned.put(&mut out);
        let durability = match self.is_synced() {
            true => Durability::Sync,
            false => Durability::Write,
        };
        began(now, durability, self.is_old).put(&mut out);
        self.append(&out)?;
        // Nothing has run yet: whoever needs the journal can still do without the run.
        match self.take_loss() {
            Some(text) => Err(io::Error::other(text)),
            None => self.sync_now(),
        }
    }

    /// What the run is called.
    pub fn id(&self) -> RunId {
        self.id
    }

    /// Whether what is noted is on the disk before it counts.
    pub(super) fn is_synced(&self) -> bool {
        self.syncing.is_some()
    }

    /// Whether there is something left that the run can be gone on with for: a host whose turn has not come, or whose command may have run.
    pub fn is_anything_left(&self) -> bool {
        let is_usable = self.is_needed || self.records().broken.is_none();
        is_usable && self.left.load(Ordering::Relaxed) > 0
    }

    fn number(&self, host: HostId) -> u32 {
        match &self.numbers {
            None => host.0,
            Some(numbers) => numbers.get(host.0 as usize).copied().unwrap_or(u32::MAX),
        }
    }

    /// Notes that a host's command is about to leave. It may once this returns `None`, or the answer has come.
    pub(super) fn note_sent(&self, host: HostId) -> io::Result<Option<Synced>> {
        let is_noted = &self.sent[host.0 as usize];
        if !is_noted.swap(true, Ordering::Relaxed) {
            let mut out = Vec::with_capacity(32);
            put_sent(self.number(host), &mut out);
            self.append(&out)?;
        }
        // What is noted may not be on the disk yet.
        Ok(self.syncing.as_ref().map(Syncing::ask))
    }

    /// Notes that a host's command is proven not to have run, if it is noted as sent.
    pub(crate) fn note_unsent(&self, host: HostId) {
        if self.sent[host.0 as usize].swap(false, Ordering::Relaxed) {
            let mut out = Vec::new();
            RunRecord::Unsent(self.number(host)).put(&mut out);
            // Where this is lost the command may have run, as far as anybody knows.
            let _ = self.append(&out);
        }
    }

    /// Notes results, and whether commands are gone that had to end, as soon as they are known. Where output is kept it belongs before
    /// them, and all are noted when they are told.
    pub(crate) fn note_at_once(&self, notices: &[Notice]) {
        if !self.keeps_output {
            // What could not be written is noticed before it is told.
            let _ = self.write(notices);
        }
    }

    /// Notes what is about to be told, unless it is. With [`Durability::Sync`] results are on the disk when this returns.
    pub(crate) fn note(&self, notices: &[Notice]) -> io::Result<()> {
        if self.keeps_output {
            self.write(notices)?;
        }
        match notices
            .iter()
            .any(|notice| matches!(notice, Notice::Result(_)))
        {
            true => self.sync_now(),
            false => Ok(()),
        }
    }

    fn write(&self, notices: &[Notice]) -> io::Result<()> {
        let mut out = Vec::new();
        for notice in notices {
            match notice {
                Notice::Result(result) => {
                    let (host, ending) = (self.number(result.host), ending_of(result));
                    if ending.left() == Left::Nothing {
                        self.left.fetch_sub(1, Ordering::Relaxed);
                    }
                    RunRecord::Result { host, ending }.put(&mut out);
                }
                Notice::Output(output) if self.keeps_output => {
                    let is_stderr = output.stream == Stream::Stderr;
                    put_output(
                        self.number(output.host),
                        is_stderr,
                        &output.octets,
                        &mut out,
                    );
                }
                Notice::Killed(host, verdict) if !self.is_old => {
                    let (host, verdict) = (self.number(*host), noted_verdict(verdict));
                    RunRecord::Killed { host, verdict }.put(&mut out);
                }
                _ => {}
            }
            if out.len() >= PIECE {
                self.append(&std::mem::take(&mut out))?;
            }
        }
        match out.is_empty() {
            true => Ok(()),
            false => self.append(&out),
        }
    }

    /// Notes that all hosts have ended.
    pub(crate) fn note_end(&self, interruption: Interruption) -> io::Result<()> {
        let signal = match (interruption.stopped_by, interruption.interrupts) {
            (Some(signal), _) => signal.cast_unsigned(),
            (None, 0) => 0,
            (None, _) => INTERRUPTED,
        };
        let at_ms = milliseconds(since_1970());
        let mut out = Vec::new();
        RunRecord::Ended { at_ms, signal }.put(&mut out);
        self.append_last(&out)
    }

    /// Notes what this process exits with, which is known when all has been shown. Where that cannot be written it is not known.
    pub fn note_status(&self, status: u8) {
        if !self.is_old {
            let mut out = Vec::new();
            RunRecord::Status(status).put(&mut out);
            let _ = self.append_last(&out);
        }
    }

    /// What the user is to be told of a journal that could not be written, once.
    pub(crate) fn take_loss(&self) -> Option<String> {
        self.lost
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    fn sync_now(&self) -> io::Result<()> {
        if self.is_needed {
            self.records().check()?;
        }
        match &self.syncing {
            Some(syncing) => syncing.ask().wait(),
            None => Ok(()),
        }
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends whole records. What has no place any more is no error where the journal is not needed: then there is none of this run, for one
    /// that lacks what was sent would have it sent again.
    fn append(&self, octets: &[u8]) -> io::Result<()> {
        let mut records = self.records();
        if records.is_gone {
            return Ok(());
        }
        let Err(error) = records.append(octets, &self.path) else {
            return Ok(());
        };
        if self.is_needed {
            return Err(error);
        }
        let emptied = || records.file.set_len(0).is_ok();
        let what = match fs::remove_file(&self.path) {
            Ok(()) => "it was removed",
            Err(_) if emptied() => "it was emptied",
            // Whoever went on with it would have sent again what it lacks.
            Err(_) => return Err(error),
        };
        records.is_gone = true;
        let text = format!(
            "the journal cannot be written: {error}; {what}, and this run cannot be resumed"
        );
        *self.lost.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        Ok(())
    }

    /// Appends whole records that no command hangs on: where they cannot be written the journal stays as it is.
    fn append_last(&self, octets: &[u8]) -> io::Result<()> {
        self.records().append(octets, &self.path)?;
        self.sync_now()
    }
}

/// A new journal under an identifier that nobody has, locked.
fn created(folder: &Path, now: Duration) -> io::Result<(RunId, File)> {
    for _ in 0..MAX_TAKEN {
        let mut chance = [0; 4];
        sshoal_crypto::random(&mut chance);
        let id = RunId::new(now, u32::from_be_bytes(chance));
        let mut options = OpenOptions::new();
        options.append(true).create_new(true).mode(0o600);
        match options.open(folder::run_path(folder, id)) {
            Ok(file) => {
                flock(&file, FlockOperation::LockExclusive)?;
                return Ok((id, file));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Whoever lists runs holds the lock for a moment.
fn lock(file: &File) -> io::Result<()> {
    for _ in 0..LOCK_GLANCES {
        if folder::locked(file)? {
            return Ok(());
        }
        thread::sleep(LOCK_GLANCE);
    }
    Err(io::Error::other(
        "the run is on: another sshoal carries it out",
    ))
}

fn syncing(file: &File, durability: Durability) -> io::Result<Option<Syncing>> {
    match durability {
        Durability::Write => Ok(None),
        Durability::Sync => Syncing::start(file.try_clone()?).map(Some),
    }
}

fn unsent(hosts: usize) -> Vec<AtomicBool> {
    (0..hosts).map(|_| AtomicBool::new(false)).collect()
}

fn began(now: Duration, durability: Durability, is_old: bool) -> RunRecord {
    let is_synced = durability == Durability::Sync;
    let boot = boot_id().map(|id| Boot { id, is_synced });
    RunRecord::Began {
        at_ms: milliseconds(now),
        pid: std::process::id(),
        boot: boot.filter(|_| !is_old),
    }
}

fn since_1970() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
