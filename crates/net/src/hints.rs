//! Hints to the kernel that no kept crate can give. All of them only save time: where one is refused, nothing is lost. And a
//! question to it that has to be asked before `main`.
//!
//! The only unsafe code of this crate: three system calls, each on a structure of plain integers of its own, and one that is
//! called by the C runtime.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use libc::{
    SCHED_FLAG_RESET_ON_FORK, SCHED_OTHER, SO_RCVLOWAT, SOL_SOCKET, SYS_sched_getattr,
    SYS_sched_setattr, c_int, c_long, c_uint, sched_attr, socklen_t,
};

/// The longest that the kernel gives (kernel/sched/syscalls.c). Whoever wakes goes first only while its deadline is the
/// earlier one, so the last of the kernel's own slices (0.7 ms to 3 ms) within ours is as rude as if we had not asked.
const SLICE: Duration = Duration::from_millis(100);
const THIS_THREAD: c_long = 0;
const NO_FLAGS: c_uint = 0;
const SIZE: c_uint = size_of::<sched_attr>() as c_uint;

/// Asks for a longer time slice for the calling thread, so that everything else on the machine comes first; what it
/// starts has the usual one, and the share of the processor stays what it was.
///
/// A thread that wakes preempts the running one at once if its slice is shorter (kernel/sched/fair.c, PREEMPT_SHORT,
/// Linux 6.12); with equal slices it waits until the running one's is over, up to 4 ms later, and hundreds of logins
/// make that happen all the time (docs/adr/0004).
pub fn lengthen_time_slice() {
    lengthen(THIS_THREAD);
}

/// The same for a process that we have started, of one thread; what it starts has the usual slice.
pub(crate) fn lengthen_time_slice_of(process: u32) {
    lengthen(c_long::from(process));
}

fn lengthen(whose: c_long) {
    let Some(mut attributes) = attributes(whose) else {
        return;
    };
    // Whoever chose another policy had a reason. The niceness stays.
    if attributes.sched_policy != SCHED_OTHER.cast_unsigned() {
        return;
    }
    attributes.sched_flags |= SCHED_FLAG_RESET_ON_FORK as u64;
    attributes.sched_runtime = SLICE.as_nanos() as u64;
    // SAFETY: sched_setattr(2) reads `size` octets of the structure, which outlives the call, and keeps no pointer.
    let status = unsafe { libc::syscall(SYS_sched_setattr, whose, &raw mut attributes, NO_FLAGS) };
    tracing::debug!(accepted = status == 0, "asked for a longer time slice");
}

/// How a thread is scheduled.
fn attributes(whose: c_long) -> Option<sched_attr> {
    let mut attributes = sched_attr {
        size: SIZE,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: sched_getattr(2) writes at most the SIZE octets it is told of, all of them plain integers, to a structure
    // that outlives the call, and keeps no pointer.
    let status = unsafe {
        libc::syscall(
            SYS_sched_getattr,
            whose,
            &raw mut attributes,
            SIZE,
            NO_FLAGS,
        )
    };
    (status == 0).then_some(attributes)
}

/// Has readiness to read told only once `octets` are there, or no more will come (socket(7), SO_RCVLOWAT).
pub(crate) fn set_receive_low_water(socket: &impl AsFd, octets: usize) -> io::Result<()> {
    let octets = c_int::try_from(octets).unwrap_or(c_int::MAX);
    // SAFETY: setsockopt(2) reads one int, which outlives the call, from an open descriptor's caller, and keeps no pointer.
    let status = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            SOL_SOCKET,
            SO_RCVLOWAT,
            (&raw const octets).cast(),
            size_of::<c_int>() as socklen_t,
        )
    };
    match status {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A bit for each standard stream that was closed when the program began.
static CLOSED: AtomicU8 = AtomicU8::new(0);

// SAFETY: the C runtime calls what stands in .init_array once, before `main` and before there is another thread (System V ABI,
// "Initialization and Termination Functions"); what it gives as arguments is not looked at. Nothing of Rust's runtime is used.
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE_CLOSED: extern "C" fn() = note_closed;

extern "C" fn note_closed() {
    for number in 0..=2 {
        // SAFETY: fcntl(2) takes any number, and with F_GETFD no pointer.
        if unsafe { libc::fcntl(number, libc::F_GETFD) } == -1 {
            CLOSED.fetch_or(1 << number, Ordering::Relaxed);
        }
    }
}

/// Whether the standard stream of this number, 0 to 2, was closed when the program began. Later nothing tells: Rust's runtime
/// opens /dev/null in its place, so that no other file gets its number (`sanitize_standard_fds` in library/std), and a
/// /dev/null may be what the user meant.
pub(crate) fn was_closed(number: c_int) -> bool {
    CLOSED.load(Ordering::Relaxed) & (1 << number) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_niceness_stays_and_the_slice_is_not_inherited() {
        std::thread::spawn(|| {
            let before = attributes(THIS_THREAD).map(|attributes| attributes.sched_nice);
            lengthen_time_slice();
            let after = attributes(THIS_THREAD);
            assert_eq!(before, after.map(|attributes| attributes.sched_nice));
            let flags = after.map_or(0, |attributes| attributes.sched_flags);
            assert_ne!(flags & SCHED_FLAG_RESET_ON_FORK as u64, 0);
        })
        .join()
        .expect("the thread has asserted");
    }
}
