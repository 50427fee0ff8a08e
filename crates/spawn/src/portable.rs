//! The way by posix_spawn(3), for where clone is not possible: other architectures, and sandboxes that forbid it.

use std::fs;
use std::os::fd::RawFd;

use rustix::io::Errno;
use rustix::process::{PidfdFlags, pidfd_open};

use crate::error::{AtStep, Failure, Step};
use crate::kernel::{self, Portable, Started};
use crate::search;
use crate::signals::SignalSet;
use crate::steps::{FIRST_OTHER, Placement, Plan};

/// Starts what posix_spawn can start, and says so where it cannot.
pub(crate) fn start(plan: &Plan) -> Result<Started, Failure> {
    let impossible = plan.changes_identity()
        || plan.umask.is_some()
        || plan.directory.is_some()
        || !plan.limits.is_empty()
        || plan.ignored_signals != SignalSet::EMPTY;
    if impossible {
        return Err(Errno::OPNOTSUPP).at(Step::NotPossible);
    }
    let close = match plan.close_others {
        true => others(plan).at(Step::CloseOthers)?,
        false => {
            let is_theirs = |number: &RawFd| !is_given(plan, *number);
            let withheld = plan.withheld.iter().flat_map(|set| set.numbers());
            withheld.filter(is_theirs).collect()
        }
    };
    let wanted = Portable {
        arguments: &plan.arguments,
        environment: &plan.environment,
        moves: plan.wiring.moves(),
        close: &close,
        session: plan.placement == Placement::Session,
        group: match plan.placement {
            Placement::Group(group) => Some(group),
            Placement::Callers | Placement::Session => None,
        },
        mask: plan.mask,
        defaults: plan.default_signals,
    };
    let attempt = search::each(plan.candidates, |path| kernel::posix_spawn(path, &wanted));
    let pid = attempt.at(Step::PosixSpawn)?;
    Ok(Started {
        pid,
        // Where the kernel has none (before 5.3), the child is waited for by its number.
        pidfd: plan
            .pidfd
            .then(|| pidfd_open(pid, PidfdFlags::empty()).ok())
            .flatten(),
    })
}

/// The descriptors that are open now and that the program is not to have. One that another thread opens after this,
/// and not close-on-exec, is not among them: only a call inside the child could do better.
fn others(plan: &Plan) -> std::io::Result<Vec<RawFd>> {
    let mut others = Vec::new();
    for entry in fs::read_dir("/proc/self/fd")? {
        let number = entry?
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        others.extend(number.filter(|number| *number >= FIRST_OTHER && !is_given(plan, *number)));
    }
    Ok(others)
}

fn is_given(plan: &Plan, number: RawFd) -> bool {
    plan.wiring
        .moves()
        .iter()
        .any(|given| given.target == number)
}
