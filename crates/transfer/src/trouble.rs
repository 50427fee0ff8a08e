//! Why one file, link or folder was not transferred.

use crate::owners::{AccountKind, Owner};
use crate::sftp::{FilesystemStatus, Status, StatusCode};

/// Why one file, link or folder was not transferred. What was there before is as it was, but for [`Trouble::LeftAside`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// This machine's side.
    #[error("{doing} here: {error}")]
    Local {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        error: String,
    },
    /// The host's side.
    #[error("{doing} on the host: {why}")]
    Remote {
        /// What was being done.
        doing: &'static str,
        /// What the server said, or what was found out.
        why: Remote,
    },
    /// Its size or times (here that of its last change, too) are not what they were when it was opened.
    #[error("it changed while it was read")]
    Changed,
    /// It could not be put in place, and what was there, put aside for that moment, could not be put back either.
    #[error(
        "putting it in place on the host failed, and so did putting back what was there: it is {name:?} now"
    )]
    LeftAside {
        /// The path that it has on the host now.
        name: String,
    },
    /// What it is to be in could not be made, or not be read.
    #[error("its folder is not there")]
    NoFolder,
    /// A folder stands where something else is to be.
    #[error("a folder is there, and is not replaced by something else")]
    FolderInTheWay,
    /// Something else stands where a folder is to be.
    #[error("it is to be a folder, and something else is there")]
    NoFolderThere,
    /// A folder, and `-r` was not given.
    #[error("it is a folder; add -r to copy it with all that is in it")]
    Folder,
    /// A device, a socket or a named pipe.
    #[error("it is neither a file nor a folder nor a symbolic link")]
    Special,
    /// A device where a file is to be.
    #[error("a device is there, and is not replaced by a file")]
    DeviceInTheWay,
    /// Nothing is there, and what is made in /dev would be a file, in memory.
    #[error("there is no such device, and files are not made in /dev")]
    NoDevice,
    /// A block device, and `--yes` was not given.
    #[error("it is a block device, and writing it destroys what it holds")]
    DeviceNotConfirmed,
    /// A block device, and `--verify` was given.
    #[error("it is a block device, which is not read back and so not verified")]
    DeviceNotVerified,
    /// Nothing tells how large a block device is.
    #[error(
        "it is a block device, and nothing on the host tells how large it is (/sys/class/block)"
    )]
    DeviceUnknown,
    /// A block device that has less room than is to be written.
    #[error("the block device has {size} octets, and {image} are to be written")]
    DeviceTooSmall {
        /// What is to be written, octets.
        image: u64,
        /// What the device has, octets.
        size: u64,
    },
    /// A block device that is mounted, swapped to, or held by something else.
    #[error("the block device is in use: {0}")]
    DeviceInUse(String),
    /// A block device that cannot be written.
    #[error("the block device is read-only")]
    DeviceReadOnly,
    /// The path of a block device names another one than the kernel's name for it.
    #[error("it is another block device than the one that the kernel has under this name")]
    DeviceOther,
    /// Writing a block device has begun and not ended.
    #[error(
        "the block device is half-written, with at least {at} octets from its beginning: {why}"
    )]
    DeviceHalfWritten {
        /// How far it is certainly written, octets from its beginning.
        at: u64,
        /// What happened.
        why: String,
    },
    /// A block device, and its owner was to be set.
    #[error("it is a block device, whose owner is not changed")]
    DeviceOwner,
    /// The server does not set its owner.
    #[error("giving it to {owner} on the host: {why}")]
    Owner {
        /// Whom it was to belong to.
        owner: Owner,
        /// What the server said.
        why: Remote,
    },
    /// Owners are to be kept, and this machine's user may not: files are in place, and belong to him. Told once.
    #[error(
        "it belongs to {owner} there, and only root gives files away here: what is not yours there belongs to you here"
    )]
    NotRoot {
        /// Whom it was to belong to.
        owner: Owner,
    },
    /// The host does not know a user or a group that the user has named.
    #[error("the host has no {} {name:?}: {why}", kind.name())]
    NoAccount {
        /// Which of both.
        kind: AccountKind,
        /// Its name.
        name: String,
        /// What was looked at.
        why: &'static str,
    },
    /// What it is a hard link to has not been transferred.
    #[error("the file that it is another name of was not transferred")]
    NoOriginal,
    /// The server gave a name that could stand for something elsewhere.
    #[error("the server lists a name that is none: {0:?}")]
    BadName(String),
    /// The server gave a name that no file system here takes.
    #[error(
        "it has a name of {len} octets, and no more than {} are possible: {beginning:?}",
        crate::MAX_NAME
    )]
    LongName {
        /// How long it is.
        len: usize,
        /// How it begins.
        beginning: String,
    },
    /// A folder whose path is so long that the server leaves out names in it.
    #[error(
        "its path is so long that the server does not tell names in it that are longer than {} octets together with it",
        crate::path::MAX_PATH
    )]
    LongFolder,
    /// The server gave a name twice.
    #[error("the server lists the name {0:?} twice; only the first is fetched")]
    Twice(String),
    /// A limit of this program's.
    #[error("there are more than {limit} {what}; copy it in parts")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The path is longer than any system takes.
    #[error("its path is longer than {} octets", crate::MAX_PATH)]
    TooLong,
    /// Something has failed, and so nothing is deleted.
    #[error("nothing was deleted, for something has failed before that")]
    NothingDeleted,
    /// Not all names are in a folder that were put into it: what is not one of them may be.
    #[error(
        "names that were copied into it are missing there: somebody else changes it, or names are written in another way there"
    )]
    NamesMissing,
    /// What goes through it may be in a folder in which it is surplus.
    #[error("a link stands for the folder, and nothing is deleted where things go through links")]
    LinkInTheWay,
    /// All of a host but what was sent would go.
    #[error("the target is the root folder of the host, in which nothing is deleted")]
    WholeHost,
    /// The account could not log in any more.
    #[error("it holds the keys that let the account in, and would be deleted")]
    OwnKeys,
    /// Another source has its place already.
    #[error(
        "it would be in the same place here as {first:?}, which is fetched, too; fetch it by itself, into another folder"
    )]
    SameName {
        /// That one, on the host.
        first: String,
    },
    /// The pattern finds nothing.
    #[error("nothing on the host has a name like this")]
    NoMatch,
    /// The hashes of both ends differ.
    #[error("verifying: what has arrived is not what was sent (its SHA-256 differs)")]
    Differs,
    /// A hash of the host's is needed, and there is none.
    #[error("{flag} needs hashes of the host's files: {why}")]
    NoHashes {
        /// What needs it.
        flag: &'static str,
        /// Why there is none.
        why: &'static str,
    },
    /// The host hashes files, but not this one.
    #[error("verifying: the host's hashing program cannot read it")]
    Unhashed,
    /// The user, or a deadline.
    #[error("interrupted before it was whole")]
    Interrupted,
    /// So many more have failed than were told one by one.
    #[error("and {0} more that failed")]
    More(u64),
}

/// Failures of one host that are told one by one; the others are counted.
pub const MAX_TOLD: usize = 1000;

/// Octets of a name of the server's that are shown.
const SHOWN: usize = 200;

/// The beginning of a name of the server's.
pub(crate) fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(&name[..name.len().min(SHOWN)]).into_owned()
}

/// What a server answered, as far as version 3 lets it say so, or as found out besides.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Remote {
    /// No such file or directory.
    #[error("no such file or folder")]
    Missing,
    /// Permission denied.
    #[error("permission denied")]
    Denied,
    /// No space left (statvfs@openssh.com).
    #[error("no space left on the device")]
    Full,
    /// No inodes left (statvfs@openssh.com).
    #[error("the file system has no room for another file (inodes)")]
    NoInodes,
    /// Mounted for reading only (statvfs@openssh.com).
    #[error("the file system is read-only")]
    ReadOnly,
    /// The server cannot do that.
    #[error("the server does not know how: {0}")]
    Unsupported(String),
    /// SSH_FX_FAILURE and whatever else there is, in the server's words.
    #[error("the server says {0:?}")]
    Said(String),
}

/// Octets that a file system may have left when a write of a block finds no room.
const NEARLY_NONE: u64 = 1024 * 1024;

impl Remote {
    pub(crate) fn of(status: &Status) -> Remote {
        match status.code {
            StatusCode::NoSuchFile => Remote::Missing,
            StatusCode::PermissionDenied => Remote::Denied,
            StatusCode::Unsupported => Remote::Unsupported(status.message.clone()),
            StatusCode::Eof if status.message.is_empty() => Remote::Said("end of file".to_owned()),
            StatusCode::Other(code) if status.message.is_empty() => {
                Remote::Said(format!("code {code}"))
            }
            _ if status.message.is_empty() => Remote::Said("failure".to_owned()),
            // strerror(3), which some servers pass on.
            _ if status.message.contains("Read-only file system") => Remote::ReadOnly,
            _ => Remote::Said(status.message.clone()),
        }
    }

    /// With what statvfs says, which version 3 has no code for.
    pub(crate) fn explained(self, filesystem: &FilesystemStatus) -> Remote {
        match self {
            Remote::Said(_) if filesystem.read_only => Remote::ReadOnly,
            Remote::Said(_) if filesystem.available < NEARLY_NONE => Remote::Full,
            Remote::Said(_) if filesystem.files > 0 && filesystem.files_available == 0 => {
                Remote::NoInodes
            }
            other => other,
        }
    }
}

impl Trouble {
    pub(crate) fn remote(doing: &'static str, status: &Status) -> Trouble {
        Trouble::Remote {
            doing,
            why: Remote::of(status),
        }
    }

    /// Whether the server has no such thing.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(
            self,
            Trouble::Remote {
                why: Remote::Missing,
                ..
            }
        )
    }

    /// What the user can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Trouble::Remote { why, .. } => match why {
                Remote::Missing => {
                    "check the path on the host; folders above a target are not made"
                }
                Remote::Denied => {
                    "check the owner and the mode of the folder there, or log in as another user (-l)"
                }
                Remote::Full => "make room on the host, and run it again",
                Remote::NoInodes => {
                    "remove files that are not needed on the host, and run it again"
                }
                Remote::ReadOnly => "choose another target, or mount it there for writing",
                Remote::Unsupported(_) => {
                    "the server's SFTP program is too old or too small for this"
                }
                Remote::Said(_) => {
                    "SFTP names few reasons: look at quotas, attributes (lsattr) and the log on the host"
                }
            },
            Trouble::Local { .. } => {
                "see to the file, or to its disk, on this machine, and run it again"
            }
            Trouble::Changed => "copy it when nobody writes to it, or copy a snapshot",
            Trouble::Folder => "add -r",
            Trouble::FolderInTheWay | Trouble::NoFolderThere => {
                "move what is there out of the way, or choose another target"
            }
            Trouble::NoFolder | Trouble::NoOriginal | Trouble::NothingDeleted => {
                "see to what failed before it, and run it again"
            }
            Trouble::LeftAside { .. } => {
                "give it its name again by hand, and see to what keeps the account from doing so"
            }
            Trouble::LinkInTheWay => {
                "name the folder that it leads to as the target of a copy of its own, or leave it out (--exclude)"
            }
            Trouble::WholeHost => "choose a folder below it",
            Trouble::OwnKeys => "add --exclude .ssh, or choose another target",
            Trouble::NamesMissing => {
                "run it again when nobody else writes there, or delete by hand what is surplus"
            }
            Trouble::Special => "leave it out (--exclude)",
            Trouble::DeviceInTheWay => {
                "choose another target; a block device is written only if it alone is named, and has a single source"
            }
            Trouble::NoDevice => "look there for its name (lsblk), or choose another target",
            Trouble::DeviceNotConfirmed => "add --yes if that is what you want",
            Trouble::DeviceNotVerified => "leave --verify out, and compare it by hand (sha256sum)",
            Trouble::DeviceUnknown => {
                "name it as the kernel does, in /dev; what is never known is not written"
            }
            Trouble::DeviceTooSmall { .. } => "choose a larger device, or make the image smaller",
            Trouble::DeviceInUse(_) => {
                "unmount it (umount), turn its swap off (swapoff), or stop what holds it (lsblk shows that), and run it again"
            }
            Trouble::DeviceReadOnly => {
                "make it writable (blockdev --setrw, or a switch of its own), and run it again"
            }
            Trouble::DeviceOther => "name it as the kernel does, in /dev",
            Trouble::DeviceOwner => "leave --owner and --chown out",
            Trouble::Owner { why, .. } => match why {
                Remote::Denied => {
                    "it needs root there: only root gives files away, and others give theirs to their own groups alone; log in as root (-l root), or leave --owner and --chown out"
                }
                _ => {
                    "the file system there may know no owners, or not these numbers; leave --owner and --chown out"
                }
            },
            Trouble::NotRoot { .. } => "run it as root, or leave --owner out",
            Trouble::NoAccount { .. } => {
                "give its number in place of the name, or make it there first (useradd, groupadd)"
            }
            Trouble::DeviceHalfWritten { .. } => {
                "see to the reason, and run it again: it begins at the beginning"
            }
            Trouble::LongName { .. } => "give it a shorter name there, or leave it out (--exclude)",
            Trouble::BadName(_) | Trouble::Twice(_) => {
                "the server is broken or hostile: nothing was written outside of the target"
            }
            Trouble::TooMany { .. } | Trouble::TooLong | Trouble::LongFolder => {
                "copy parts of the tree by themselves"
            }
            Trouble::NoMatch => "check the pattern; a backslash before * ? or [ takes it literally",
            Trouble::SameName { .. } => "fetch them one after the other, into different folders",
            Trouble::Differs => {
                "run it again; if it happens again, the memory or the disk of one end is at fault: see its kernel's log"
            }
            Trouble::NoHashes { .. } => {
                "install coreutils or BusyBox there and give the account a shell, or do without the flag"
            }
            Trouble::Unhashed => {
                "see whether commands on the host see the files that its SFTP shows; --verify=never does without"
            }
            Trouble::Interrupted => "run it again",
            Trouble::More(_) => "see to what is named, and run it again",
        }
    }
}
