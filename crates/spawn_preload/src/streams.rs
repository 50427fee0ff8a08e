//! The streams that popen has opened, and what a fork does to the memory of them.
//!
//! A child of popen's is not to have the streams that are open already, though they are not close-on-exec. So the number
//! of a stream becomes inheritable and known in one step, and no child is made by popen between another's look at the
//! known ones and its birth: starts share a lock that registration has to itself.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

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

static STREAMS: RwLock<Streams> = RwLock::new(BTreeMap::new());
/// How many there are: what fclose asks first.
static COUNT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// This thread is in one of our functions: a signal handler that forks must not wait for it.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// Held by a thread that forks, in parent and child.
    static HELD: Cell<Option<RwLockWriteGuard<'static, Streams>>> = const { Cell::new(None) };
}

fn write() -> RwLockWriteGuard<'static, Streams> {
    STREAMS.write().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a part that locks something.
pub(crate) fn inside<T>(part: impl FnOnce() -> T) -> T {
    let was = INSIDE.replace(true);
    let answer = part();
    INSIDE.set(was);
    answer
}

/// Whether this thread is in such a part: in a signal handler, then.
pub(crate) fn is_inside() -> bool {
    INSIDE.get()
}

/// Starts a child that is to have none of the open streams.
pub(crate) fn start<T>(start: impl FnOnce(Vec<RawFd>) -> T) -> T {
    let open = STREAMS.read().unwrap_or_else(PoisonError::into_inner);
    let inheritable = open.values().filter(|stream| stream.inheritable);
    start(inheritable.map(|stream| stream.descriptor).collect())
}

/// Remembers a stream. `open_up` makes its descriptor inheritable.
pub(crate) fn insert(address: usize, stream: Stream, open_up: impl FnOnce()) {
    let mut open = write();
    if stream.inheritable {
        open_up();
    }
    open.insert(address, stream);
    COUNT.store(open.len(), Ordering::Release);
}

/// Forgets a stream, if it is one of ours. `close_up` makes its descriptor close-on-exec until it is closed.
pub(crate) fn remove(address: usize, close_up: impl FnOnce(RawFd)) -> Option<Stream> {
    if COUNT.load(Ordering::Acquire) == 0 {
        return None;
    }
    let mut open = write();
    let stream = open.remove(&address)?;
    if stream.inheritable {
        close_up(stream.descriptor);
    }
    COUNT.store(open.len(), Ordering::Release);
    Some(stream)
}

/// Before a fork: no other thread holds the lock when memory is copied, so that the child can use it.
pub(crate) fn hold() {
    HELD.set(Some(write()));
}

/// After a fork, in both processes.
pub(crate) fn release() {
    drop(HELD.take());
}
