//! What the three standard streams of a program are connected to.

use std::fs::OpenOptions;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;

use crate::error::{AtStep, Failure, Step};

/// What a standard stream of the program is connected to.
#[derive(Debug)]
pub struct Stdio(Kind);

#[derive(Debug)]
enum Kind {
    Inherit,
    Null,
    Pipe,
    Open(OwnedFd),
    File(PathBuf, OpenOptions),
}

impl Stdio {
    /// The caller's own stream. If the caller has closed it, so it is for the program.
    pub fn inherit() -> Stdio {
        Stdio(Kind::Inherit)
    }

    /// `/dev/null`.
    pub fn null() -> Stdio {
        Stdio(Kind::Null)
    }

    /// A new pipe, whose other end is in the [`Child`](crate::Child).
    pub fn pipe() -> Stdio {
        Stdio(Kind::Pipe)
    }

    /// A file that is opened to be read when the program is started, relative to the caller's working directory.
    pub fn read_file(path: impl Into<PathBuf>) -> Stdio {
        let mut options = OpenOptions::new();
        options.read(true);
        Stdio(Kind::File(path.into(), options))
    }

    /// A file that is made, or emptied if it is there, when the program is started.
    pub fn create_file(path: impl Into<PathBuf>) -> Stdio {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        Stdio(Kind::File(path.into(), options))
    }

    /// A file that is made if it is not there, and written to at its end.
    pub fn append_file(path: impl Into<PathBuf>) -> Stdio {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        Stdio(Kind::File(path.into(), options))
    }

    /// Opens what must be opened. `program_reads` is true for the standard input.
    pub(crate) fn open(&self, step: Step, program_reads: bool) -> Result<Stream, Failure> {
        match &self.0 {
            Kind::Inherit => Ok(Stream::default()),
            Kind::Open(descriptor) => Ok(Stream::same_as(descriptor.as_raw_fd())),
            Kind::Null => {
                let mut options = OpenOptions::new();
                options.read(program_reads).write(!program_reads);
                Ok(Stream::opened(options.open("/dev/null").at(step)?.into()))
            }
            Kind::File(path, options) => Ok(Stream::opened(options.open(path).at(step)?.into())),
            Kind::Pipe => {
                let flags = rustix::pipe::PipeFlags::CLOEXEC;
                let (read, write) = rustix::pipe::pipe_with(flags).at(step)?;
                let (programs, ours) = if program_reads {
                    (read, write)
                } else {
                    (write, read)
                };
                Ok(Stream {
                    ours: Some(ours),
                    ..Stream::opened(programs)
                })
            }
        }
    }
}

impl<T: Into<OwnedFd>> From<T> for Stdio {
    /// A file, a socket, an end of a pipe or any other open descriptor.
    fn from(open: T) -> Stdio {
        Stdio(Kind::Open(open.into()))
    }
}

/// A standard stream on its way into the child.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// The descriptor that becomes the program's stream; none if it has the caller's.
    pub(crate) source: Option<RawFd>,
    /// The same, where it was opened for this start and is closed after it.
    _opened: Option<OwnedFd>,
    /// The caller's end of a pipe.
    pub(crate) ours: Option<OwnedFd>,
}

impl Stream {
    /// A descriptor that somebody else holds open until the start is over.
    pub(crate) fn same_as(descriptor: RawFd) -> Stream {
        Stream {
            source: Some(descriptor),
            ..Stream::default()
        }
    }

    fn opened(descriptor: OwnedFd) -> Stream {
        Stream {
            source: Some(descriptor.as_raw_fd()),
            _opened: Some(descriptor),
            ours: None,
        }
    }
}
