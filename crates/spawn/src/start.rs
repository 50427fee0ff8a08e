//! From a command to a child: opens what must be opened, writes the plan, chooses the way.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;

use rustix::io::Errno;

use crate::child::Child;
use crate::command::{Command, ErrorStream, Method, Variables};
use crate::error::{AtStep, Failure, Step};
use crate::kernel::{self, Environment, Memory, Started};
use crate::portable;
use crate::search;
use crate::stdio::Stream;
use crate::steps::Plan;
use crate::strings::StringArray;
use crate::wiring::{Move, Wiring};

/// The number of the standard output.
const STDOUT: RawFd = 1;

/// Starts the command.
pub(crate) fn start(command: &Command) -> Result<Child, Failure> {
    command.refused.map_or(Ok(()), Err).at(Step::Arguments)?;
    let own_variables = command.variables.as_ref().map(complete);
    let strings = own_variables
        .as_ref()
        .map(variable_strings)
        .transpose()
        .at(Step::Arguments)?;
    let path = match &own_variables {
        Some(variables) => variables.get(OsStr::new("PATH")).cloned(),
        None if command.program.as_encoded_bytes().contains(&b'/') => None,
        None => env::var_os("PATH"),
    };
    let candidates = search::candidates(&command.program, path.as_deref()).at(Step::Exec)?;

    let stdin = command.stdin.open(Step::Stdin, true)?;
    let stdout = command.stdout.open(Step::Stdout, false)?;
    let stderr = match &command.stderr {
        ErrorStream::Own(stdio) => stdio.open(Step::Stderr, false)?,
        ErrorStream::IntoStdout => Stream::same_as(stdout.source.unwrap_or(STDOUT)),
    };

    let identity = &command.identity;
    // Groups of root's that the user does not have are not to be left to it.
    let drops_groups = identity.user.is_some() && rustix::process::geteuid().is_root();
    let groups = identity.groups.as_deref().or(drops_groups.then_some(&[]));
    let plan = Plan {
        candidates: &candidates,
        arguments: command.arguments.pointers(),
        environment: strings.as_ref().map_or(Environment::Callers, |strings| {
            Environment::Own(strings.pointers())
        }),
        default_signals: command.default_signals,
        ignored_signals: command.ignored_signals,
        mask: command.mask,
        mask_before_exec: Cell::default(),
        placement: command.placement,
        close_others: command.close_others,
        withheld: command.withheld,
        wiring: wiring(command, [&stdin, &stdout, &stderr])?,
        limits: &command.limits,
        umask: command.umask,
        groups,
        group: identity.group,
        user: identity.user,
        directory: command.directory.as_deref(),
        pidfd: command.pidfd,
    };
    let started = make(&plan, command.method)?;
    Ok(Child::new(started, stdin.ours, stdout.ours, stderr.ours))
}

/// Makes the process in the way that was asked for.
fn make(plan: &Plan, method: Method) -> Result<Started, Failure> {
    let copies = method == Method::Fork || plan.changes_identity();
    let memory = if copies {
        Memory::Copied
    } else {
        Memory::Shared
    };
    match method {
        Method::PosixSpawn => portable::start(plan),
        Method::Clone | Method::Fork => kernel::start(plan, memory),
        Method::Automatic => match kernel::start(plan, memory) {
            Err(Failure {
                step: Step::Clone,
                errno: Errno::NOSYS | Errno::PERM | Errno::INVAL,
            }) => portable::start(plan),
            outcome => outcome,
        },
    }
}

/// Standard streams, and after them the descriptors that were given by number, which may replace them.
fn wiring(command: &Command, streams: [&Stream; 3]) -> Result<Wiring, Failure> {
    let is_given = |number| {
        command
            .descriptors
            .iter()
            .any(|(given, _)| *given == number)
    };
    let standard = (0..).zip(streams);
    let mut moves: Vec<Move> = standard
        .filter(|(target, _)| !is_given(*target))
        .filter_map(|(target, stream)| stream.source.map(|source| Move { source, target }))
        .collect();
    moves.extend(command.descriptors.iter().map(|(target, descriptor)| Move {
        source: descriptor.as_raw_fd(),
        target: *target,
    }));
    Wiring::new(moves, kernel::duplicate_above).at(Step::Park)
}

/// The program's variables: its caller's with the changes made.
fn complete(variables: &Variables) -> BTreeMap<OsString, OsString> {
    let mut complete: BTreeMap<OsString, OsString> = match variables.clear {
        true => BTreeMap::new(),
        false => env::vars_os().collect(),
    };
    for (name, value) in &variables.changes {
        match value {
            Some(value) => complete.insert(name.clone(), value.clone()),
            None => complete.remove(name),
        };
    }
    complete
}

/// `NAME=value`, each.
fn variable_strings(variables: &BTreeMap<OsString, OsString>) -> Result<StringArray, Errno> {
    let mut strings = StringArray::default();
    for (name, value) in variables {
        strings.push(&[name.as_bytes(), b"=", value.as_bytes()])?;
    }
    Ok(strings)
}
