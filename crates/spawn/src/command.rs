//! What is to be started, and how: the builder.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, Signal};

use crate::child::Child;
use crate::error::SpawnError;
use crate::signals::SignalSet;
use crate::start;
use crate::stdio::Stdio;
use crate::steps::Placement;
use crate::strings::{StringArray, c_string};
use crate::withheld::DescriptorSet;

/// How a process is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// By clone, sharing memory; by a copy of memory where user or groups change; by posix_spawn where clone is not
    /// possible.
    #[default]
    Automatic,
    /// By clone, sharing memory, or not at all. Where user or groups change memory is copied nevertheless.
    Clone,
    /// By a copy of the caller's memory, as fork does it.
    Fork,
    /// By posix_spawn(3), which can change neither user, groups, limits, umask nor directory, nor ignore signals.
    PosixSpawn,
}

/// A program to start: what it is, what it is given, and where it belongs.
///
/// Unless told otherwise, the program
/// - is searched in the PATH that it gets itself, if its name has no slash;
/// - has its caller's variables, directory, standard streams, umask, limits, session and user;
/// - has no other descriptor of its caller's, whether close-on-exec or not;
/// - has an empty signal mask, none of its caller's handlers, and the default disposition for SIGPIPE, which Rust
///   programs ignore. Other signals that the caller ignores it ignores, too.
///
/// A command can be started any number of times.
#[derive(Debug)]
pub struct Command {
    pub(crate) program: OsString,
    pub(crate) arguments: StringArray,
    /// The first error in what was given: reported when the command is started.
    pub(crate) refused: Option<Errno>,
    pub(crate) variables: Option<Variables>,
    pub(crate) stdin: Stdio,
    pub(crate) stdout: Stdio,
    pub(crate) stderr: ErrorStream,
    pub(crate) descriptors: Vec<(RawFd, OwnedFd)>,
    pub(crate) close_others: bool,
    pub(crate) withheld: Option<&'static DescriptorSet>,
    pub(crate) directory: Option<CString>,
    pub(crate) placement: Placement,
    pub(crate) umask: Option<u32>,
    pub(crate) limits: Vec<(u32, [u64; 2])>,
    pub(crate) default_signals: SignalSet,
    pub(crate) ignored_signals: SignalSet,
    pub(crate) mask: Option<SignalSet>,
    pub(crate) identity: Identity,
    pub(crate) method: Method,
    pub(crate) pidfd: bool,
}

/// Most command lines are no longer.
const ROOM_FOR_ARGUMENTS: usize = 256;

/// Where the standard error goes.
#[derive(Debug)]
pub(crate) enum ErrorStream {
    Own(Stdio),
    IntoStdout,
}

/// Differences of the program's variables from its caller's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables {
    pub(crate) clear: bool,
    /// None: removed.
    pub(crate) changes: BTreeMap<OsString, Option<OsString>>,
}

/// Who the program is, where that is not who its caller is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Identity {
    pub(crate) user: Option<u32>,
    pub(crate) group: Option<u32>,
    pub(crate) groups: Option<Vec<u32>>,
}

impl Command {
    /// A program with no arguments but its own name.
    pub fn new(program: impl AsRef<OsStr>) -> Command {
        let mut command = Command {
            program: program.as_ref().to_owned(),
            arguments: StringArray::with_capacity(ROOM_FOR_ARGUMENTS),
            refused: None,
            variables: None,
            stdin: Stdio::inherit(),
            stdout: Stdio::inherit(),
            stderr: ErrorStream::Own(Stdio::inherit()),
            descriptors: Vec::new(),
            close_others: true,
            withheld: None,
            directory: None,
            placement: Placement::Callers,
            umask: None,
            limits: Vec::new(),
            default_signals: SignalSet::EMPTY.with(Signal::PIPE),
            ignored_signals: SignalSet::EMPTY,
            mask: Some(SignalSet::EMPTY),
            identity: Identity::default(),
            method: Method::Automatic,
            pidfd: false,
        };
        command.arg(program);
        command
    }

    /// One argument more.
    pub fn arg(&mut self, argument: impl AsRef<OsStr>) -> &mut Command {
        let added = self.arguments.push(&[argument.as_ref().as_bytes()]);
        self.note(added)
    }

    /// More arguments.
    pub fn args<S: AsRef<OsStr>>(
        &mut self,
        arguments: impl IntoIterator<Item = S>,
    ) -> &mut Command {
        for argument in arguments {
            self.arg(argument);
        }
        self
    }

    /// What the program is told its own name is, in place of the one by which it is found.
    pub fn arg0(&mut self, name: impl AsRef<OsStr>) -> &mut Command {
        let replaced = self.arguments.replace_first(name.as_ref().as_bytes());
        self.note(replaced)
    }

    /// Sets a variable of the program's.
    pub fn env(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Command {
        self.change_variable(name.as_ref(), Some(value.as_ref()))
    }

    /// Takes a variable from the program.
    pub fn env_remove(&mut self, name: impl AsRef<OsStr>) -> &mut Command {
        self.change_variable(name.as_ref(), None)
    }

    /// Takes all variables from the program, those set before included.
    pub fn env_clear(&mut self) -> &mut Command {
        self.variables = Some(Variables {
            clear: true,
            changes: BTreeMap::new(),
        });
        self
    }

    /// The standard input.
    pub fn stdin(&mut self, stdin: impl Into<Stdio>) -> &mut Command {
        self.stdin = stdin.into();
        self
    }

    /// The standard output.
    pub fn stdout(&mut self, stdout: impl Into<Stdio>) -> &mut Command {
        self.stdout = stdout.into();
        self
    }

    /// The standard error.
    pub fn stderr(&mut self, stderr: impl Into<Stdio>) -> &mut Command {
        self.stderr = ErrorStream::Own(stderr.into());
        self
    }

    /// The standard error goes where the standard output goes: the shell's `2>&1`.
    pub fn stderr_into_stdout(&mut self) -> &mut Command {
        self.stderr = ErrorStream::IntoStdout;
        self
    }

    /// Gives the program a descriptor, under this number. The last one given for a number is the one it gets, and a
    /// standard stream may be given like this, too.
    pub fn descriptor(&mut self, number: RawFd, descriptor: impl Into<OwnedFd>) -> &mut Command {
        self.descriptors.retain(|(given, _)| *given != number);
        self.descriptors.push((number, descriptor.into()));
        self
    }

    /// Lets the program have all descriptors of its caller's that are not close-on-exec. Code that opens them without
    /// that flag, in any thread, lets this program have them.
    pub fn inherit_descriptors(&mut self, inherit: bool) -> &mut Command {
        self.close_others = !inherit;
        self
    }

    /// Keeps from the program what is in this set when its process is born, where [`Command::inherit_descriptors`] lets it
    /// have others. A number that is not open is no error, and one that is given to the program is the one that was given.
    /// posix_spawn(3), where it must be used, takes what is in the set a little earlier.
    pub fn withhold(&mut self, descriptors: &'static DescriptorSet) -> &mut Command {
        self.withheld = Some(descriptors);
        self
    }

    /// The working directory, relative to the caller's. A program whose name has a slash and is relative is looked for
    /// there.
    pub fn current_dir(&mut self, directory: impl AsRef<Path>) -> &mut Command {
        match c_string(directory.as_ref().as_os_str()) {
            Ok(directory) => {
                self.directory = Some(directory);
                self
            }
            Err(errno) => self.note(Err(errno)),
        }
    }

    /// A session of its own, without a controlling terminal, in which it leads a new process group.
    pub fn new_session(&mut self) -> &mut Command {
        self.placement = Placement::Session;
        self
    }

    /// A process group: 0 is a new one, led by the program.
    pub fn process_group(&mut self, group: u32) -> &mut Command {
        // A number that no process can have is the kernel's to refuse.
        self.placement = Placement::Group(i32::try_from(group).unwrap_or(i32::MAX));
        self
    }

    /// The mask for new files; only its lowest nine bits count.
    pub fn umask(&mut self, mask: u32) -> &mut Command {
        self.umask = Some(mask);
        self
    }

    /// A limit; `None` in it is "unlimited". Later ones of the same resource count.
    pub fn limit(&mut self, resource: Resource, limit: Rlimit) -> &mut Command {
        let values =
            [limit.current, limit.maximum].map(|value| value.unwrap_or(libc::RLIM_INFINITY));
        self.limits.push((resource as u32, values));
        self
    }

    /// The program's signal mask: an empty one unless this is called. `None`: its caller's.
    pub fn signal_mask(&mut self, mask: Option<SignalSet>) -> &mut Command {
        self.mask = mask;
        self
    }

    /// Signals that get their default disposition in the program even if its caller ignores them: SIGPIPE unless this
    /// is called.
    pub fn default_signals(&mut self, signals: SignalSet) -> &mut Command {
        self.default_signals = signals;
        self
    }

    /// Signals that the program begins by ignoring.
    pub fn ignore_signals(&mut self, signals: SignalSet) -> &mut Command {
        self.ignored_signals = signals;
        self
    }

    /// The user, real, effective and saved. Where the caller is root and [`Command::groups`] is not called, the
    /// supplementary groups are dropped. Memory is then copied, not shared: slower, as fork is.
    pub fn user(&mut self, user: u32) -> &mut Command {
        self.identity.user = self.identity_number(user);
        self
    }

    /// The group, real, effective and saved. Memory is then copied.
    pub fn group(&mut self, group: u32) -> &mut Command {
        self.identity.group = self.identity_number(group);
        self
    }

    /// The supplementary groups. Memory is then copied.
    pub fn groups(&mut self, groups: impl Into<Vec<u32>>) -> &mut Command {
        self.identity.groups = Some(groups.into());
        self
    }

    /// How the process is made: [`Method::Automatic`] unless this is called.
    pub fn method(&mut self, method: Method) -> &mut Command {
        self.method = method;
        self
    }

    /// Makes the process's descriptor together with the process, in place of when [`Child::pidfd`] is first called. It
    /// costs about a twentieth of a start, and is needed where the program's end may be noticed by somebody else: where
    /// SIGCHLD is ignored, or other code waits for any child.
    pub fn with_pidfd(&mut self) -> &mut Command {
        self.pidfd = true;
        self
    }

    /// Starts the program. When this returns it has been executed: an error of execve(2), too, is an error here.
    pub fn spawn(&self) -> Result<Child, SpawnError> {
        start::start(self).map_err(|failure| SpawnError::new(&self.program, failure))
    }

    fn change_variable(&mut self, name: &OsStr, value: Option<&OsStr>) -> &mut Command {
        let is_name = !name.is_empty() && !name.as_encoded_bytes().contains(&b'=');
        if !is_name {
            self.refused.get_or_insert(Errno::INVAL);
        }
        let variables = self.variables.get_or_insert_default();
        variables
            .changes
            .insert(name.to_owned(), value.map(OsStr::to_owned));
        self
    }

    /// The highest number is nobody's: setresuid(2) takes it for "as before".
    fn identity_number(&mut self, number: u32) -> Option<u32> {
        if number == u32::MAX {
            self.refused.get_or_insert(Errno::INVAL);
        }
        Some(number)
    }

    /// Remembers the first error.
    fn note(&mut self, done: Result<(), Errno>) -> &mut Command {
        if let Err(errno) = done {
            self.refused.get_or_insert(errno);
        }
        self
    }
}
