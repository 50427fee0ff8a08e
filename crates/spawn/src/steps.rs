//! What the child does between its birth and its program, in this order. It runs in its parent's memory: it allocates
//! nothing, takes no lock, cannot panic, and calls nothing but the raw system calls of `kernel`.

use std::cell::Cell;
use std::ffi::CStr;
use std::os::fd::RawFd;

use rustix::io::Errno;

use crate::error::{AtStep, Failure, Step};
use crate::kernel::{self, Disposition, Environment};
use crate::search;
use crate::signals::SignalSet;
use crate::strings::{Pointers, StringArray};
use crate::wiring::{Move, Wiring};
use crate::withheld::DescriptorSet;

/// The first descriptor after the standard streams.
pub(crate) const FIRST_OTHER: RawFd = 3;
/// No one can catch or ignore these: SIGKILL and SIGSTOP.
const UNCHANGEABLE: [i32; 2] = [libc::SIGKILL, libc::SIGSTOP];

/// Where among sessions and process groups the program belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// With its caller.
    Callers,
    /// In a session of its own.
    Session,
    /// In this group; 0 is a new one.
    Group(i32),
}

/// Everything about a start, written down before the child is made.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) candidates: &'a StringArray,
    pub(crate) arguments: Pointers<'a>,
    pub(crate) environment: Environment<'a>,
    pub(crate) default_signals: SignalSet,
    pub(crate) ignored_signals: SignalSet,
    /// The program's signal mask; none: the caller's.
    pub(crate) mask: Option<SignalSet>,
    /// What `mask` comes to, once the caller's is known.
    pub(crate) mask_before_exec: Cell<SignalSet>,
    pub(crate) placement: Placement,
    pub(crate) close_others: bool,
    /// Not for the program, even where others are left to it.
    pub(crate) withheld: Option<&'static DescriptorSet>,
    pub(crate) wiring: Wiring,
    /// Resource, soft and hard limit.
    pub(crate) limits: &'a [(u32, [u64; 2])],
    pub(crate) umask: Option<u32>,
    pub(crate) groups: Option<&'a [u32]>,
    pub(crate) group: Option<u32>,
    pub(crate) user: Option<u32>,
    pub(crate) directory: Option<&'a CStr>,
    /// The caller wants a descriptor of the process from its birth on.
    pub(crate) pidfd: bool,
}

impl Plan<'_> {
    /// Whether it changes who the program is: never done while memory is shared.
    pub(crate) fn changes_identity(&self) -> bool {
        self.groups.is_some() || self.group.is_some() || self.user.is_some()
    }
}

/// Takes all steps. On success the program runs; what returns is the step that failed.
pub(crate) fn take(plan: &Plan, handlers_remain: bool) -> Failure {
    match prepare(plan, handlers_remain) {
        Err(failure) => failure,
        Ok(()) => Failure {
            step: Step::Exec,
            errno: execute(plan),
        },
    }
}

fn prepare(plan: &Plan, handlers_remain: bool) -> Result<(), Failure> {
    set_signals(plan, handlers_remain).at(Step::Signals)?;
    match plan.placement {
        Placement::Callers => {}
        Placement::Session => kernel::new_session().at(Step::Session)?,
        Placement::Group(group) => kernel::enter_group(group).at(Step::ProcessGroup)?,
    }
    // Descriptors before limits: a limit on their number would refuse high ones.
    if plan.close_others {
        close_others().at(Step::CloseOthers)?;
    }
    for descriptor in plan.withheld.iter().flat_map(|set| set.numbers()) {
        withhold(descriptor).at(Step::CloseOthers)?;
    }
    for connection in plan.wiring.moves() {
        put_in_place(*connection).at(Step::Descriptors)?;
    }
    // Limits before the user: raising one may need the caller's rights.
    for (resource, values) in plan.limits {
        kernel::set_limit(*resource, values).at(Step::Limit)?;
    }
    if let Some(mask) = plan.umask {
        kernel::set_umask(mask).at(Step::Umask)?;
    }
    // The user last of the three: without its rights the groups could not be changed.
    if let Some(groups) = plan.groups {
        kernel::set_groups(groups).at(Step::Groups)?;
    }
    if let Some(group) = plan.group {
        kernel::set_group(group).at(Step::Group)?;
    }
    if let Some(user) = plan.user {
        kernel::set_user(user).at(Step::User)?;
    }
    // The directory after the user: whether it may be entered is the user's matter.
    if let Some(directory) = plan.directory {
        kernel::change_directory(directory).at(Step::Directory)?;
    }
    kernel::set_signal_mask(plan.mask_before_exec.get()).at(Step::SignalMask)
}

fn set_signals(plan: &Plan, handlers_remain: bool) -> Result<(), Errno> {
    if handlers_remain {
        for signal in changeable(SignalSet::ALL) {
            if kernel::disposition(signal)? == Disposition::Handler {
                kernel::set_default(signal)?;
            }
        }
    }
    for signal in changeable(plan.default_signals) {
        kernel::set_default(signal)?;
    }
    for signal in changeable(plan.ignored_signals) {
        kernel::ignore(signal)?;
    }
    Ok(())
}

fn changeable(set: SignalSet) -> impl Iterator<Item = i32> {
    set.numbers()
        .filter(|signal| !UNCHANGEABLE.contains(signal))
}

fn put_in_place(Move { source, target }: Move) -> Result<(), Errno> {
    if source == target {
        kernel::set_descriptor_flags(target, 0)
    } else {
        kernel::duplicate_onto(source, target)
    }
}

/// Close-on-exec, not closed: it may be what another one is made from.
fn withhold(descriptor: RawFd) -> Result<(), Errno> {
    match kernel::set_descriptor_flags(descriptor, libc::FD_CLOEXEC) {
        Err(Errno::BADF) => Ok(()),
        done => done,
    }
}

/// All but the standard streams become close-on-exec: what the program is to have is put in its place after this.
fn close_others() -> Result<(), Errno> {
    match kernel::close_on_exec_from(FIRST_OTHER) {
        // Before Linux 5.9, before 5.11, and behind a filter that does not know the call.
        Err(Errno::NOSYS | Errno::INVAL | Errno::PERM) => close_listed(),
        done => done,
    }
}

/// The same, one by one, by what /proc/self/fd lists.
fn close_listed() -> Result<(), Errno> {
    let folder = kernel::open_folder(c"/proc/self/fd")?;
    let mut buffer = [0u8; 2048];
    loop {
        let length = kernel::read_folder(folder, &mut buffer)?;
        let mut entries = match buffer.get(..length) {
            Some([]) | None => return Ok(()),
            Some(entries) => entries,
        };
        while let Some((descriptor, rest)) = next_entry(entries) {
            match descriptor {
                Some(number) if number >= FIRST_OTHER => {
                    kernel::set_descriptor_flags(number, libc::FD_CLOEXEC)?;
                }
                _ => {}
            }
            entries = rest;
        }
    }
}

/// The number that the first `linux_dirent64` is named by (none for `.` and `..`), and the entries after it.
fn next_entry(entries: &[u8]) -> Option<(Option<RawFd>, &[u8])> {
    // ino64_t d_ino; off64_t d_off; unsigned short d_reclen; unsigned char d_type; char d_name[];
    const LENGTH_AT: usize = 16;
    const NAME_AT: usize = 19;
    let length = entries.get(LENGTH_AT..LENGTH_AT + 2)?;
    let length = u16::from_ne_bytes(length.try_into().ok()?) as usize;
    let name = entries.get(NAME_AT..length)?;
    Some((number(name), entries.get(length..)?))
}

/// Decimal digits, up to a NUL.
fn number(name: &[u8]) -> Option<RawFd> {
    let mut value: RawFd = 0;
    for byte in name.iter().take_while(|byte| **byte != 0) {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        value = value.checked_mul(10)?.checked_add(RawFd::from(digit))?;
    }
    Some(value)
}

/// Returns only if none of the candidates could be executed.
fn execute(plan: &Plan) -> Errno {
    let attempt = search::each(plan.candidates, |path| {
        Err::<(), Errno>(kernel::execute(path, &plan.arguments, &plan.environment))
    });
    attempt.err().unwrap_or(Errno::IO)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// One entry as the kernel writes it.
    fn entry(name: &str) -> Vec<u8> {
        let length = (19 + name.len() + 1).next_multiple_of(8);
        let mut bytes = vec![0; length];
        bytes[16..18].copy_from_slice(&(length as u16).to_ne_bytes());
        bytes[19..19 + name.len()].copy_from_slice(name.as_bytes());
        bytes
    }

    #[test]
    fn a_listing_of_descriptors_is_read_number_by_number() {
        let bytes: Vec<u8> = [".", "..", "0", "17", "123456"]
            .iter()
            .flat_map(|name| entry(name))
            .collect();
        let mut rest = &bytes[..];
        let mut found = Vec::new();
        while let Some((number, after)) = next_entry(rest) {
            found.push(number);
            rest = after;
        }
        assert_eq!(found, [None, None, Some(0), Some(17), Some(123_456)]);
        assert!(rest.is_empty());
    }

    #[test]
    fn a_torn_listing_ends_without_a_panic() {
        let whole = entry("42");
        for length in 0..whole.len() {
            assert_eq!(next_entry(&whole[..length]), None, "{length}");
        }
        assert_eq!(number(b"99999999999\0"), None);
        assert_eq!(number(b"1a\0"), None);
    }
}
