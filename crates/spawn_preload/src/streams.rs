//! The streams that popen has opened, and what a fork does to the memory of them.
//!
//! A child of popen's is not to have the streams that are open already, though they are not close-on-exec. So a stream is
//! marked as withheld before its descriptor becomes inheritable, and until it is no longer: then starts need no lock.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::mem;
use std::os::fd::RawFd;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use spawn::DescriptorSet;

use crate::start::Started;

/// An open stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) started: Started,
    pub(crate) descriptor: RawFd,
    /// Other children get it, unless they are popen's.
    pub(crate) inheritable: bool,
}

/// By the address of the `FILE`.
type Streams = BTreeMap<usize, Stream>;

static STREAMS: Mutex<Streams> = Mutex::new(BTreeMap::new());
/// How many there are: what fclose asks first.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// The descriptors of the inheritable ones.
pub(crate) static WITHHELD: DescriptorSet = DescriptorSet::new();

thread_local! {
    /// This thread is in one of our functions: a signal handler that forks must not wait for it.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// Held by a thread that forks, in parent and child.
    static HELD: Cell<Option<MutexGuard<'static, Streams>>> = const { Cell::new(None) };
}

fn lock() -> MutexGuard<'static, Streams> {
    STREAMS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a part that locks something, or that is not to panic into C: that would end the program, here.
pub(crate) fn inside<T>(part: impl FnOnce() -> T) -> T {
    let was = INSIDE.replace(true);
    let panics = EndsAll;
    let answer = part();
    mem::forget(panics);
    INSIDE.set(was);
    answer
}

struct EndsAll;

impl Drop for EndsAll {
    fn drop(&mut self) {
        process::abort();
    }
}

/// Whether this thread is in such a part: in a signal handler, then.
pub(crate) fn is_inside() -> bool {
    INSIDE.get()
}

/// Remembers a stream. `open_up` makes its descriptor inheritable; one that has no place in the set stays as it is.
pub(crate) fn insert(address: usize, stream: Stream, open_up: impl FnOnce(RawFd)) {
    if stream.inheritable && WITHHELD.insert(stream.descriptor) {
        open_up(stream.descriptor);
    }
    let mut open = lock();
    open.insert(address, stream);
    COUNT.store(open.len(), Ordering::Release);
}

/// Forgets a stream, if it is one of ours. `close_up` makes its descriptor close-on-exec until it is closed.
pub(crate) fn remove(address: usize, close_up: impl FnOnce(RawFd)) -> Option<Stream> {
    if COUNT.load(Ordering::Acquire) == 0 {
        return None;
    }
    let stream = {
        let mut open = lock();
        let stream = open.remove(&address)?;
        COUNT.store(open.len(), Ordering::Release);
        stream
    };
    if stream.inheritable {
        close_up(stream.descriptor);
        WITHHELD.remove(stream.descriptor);
    }
    Some(stream)
}

/// Before a fork: no other thread holds the lock when memory is copied, so that the child can use it.
pub(crate) fn hold() {
    // A thread that is ending has no such place any more.
    let _ = HELD.try_with(|held| held.set(Some(lock())));
}

/// After a fork, in both processes.
pub(crate) fn release() {
    let _ = HELD.try_with(Cell::take);
}
