//! One record of the kernel's: an event that is known, with what of it is of use.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::format::Format;

/// `common_flags`: the record is of an interrupt that came in between (TRACE_FLAG_HARDIRQ, TRACE_FLAG_NMI).
const HARD_INTERRUPT: u8 = 0x08 | 0x40;
/// Or of what was put off until after one (TRACE_FLAG_SOFTIRQ).
const SOFT_INTERRUPT: u8 = 0x10;
/// Of probes in programs the kernel does not tell; what runs there is a thread.
const NOT_TOLD: u8 = 0xff;
/// `clone_flags`: a thread, no process (clone(2)).
const CLONE_THREAD: u64 = 0x0001_0000;
/// The states in which a thread does not run (`prev_state`; include/linux/sched.h): asleep, and asleep until it is woken.
const ASLEEP: u64 = 0x01;
const DEEPLY_ASLEEP: u64 = 0x02;
const ENDED: u64 = 0x10 | 0x20;
const ANY_STATE: u64 = 0xff;
const AF_INET6: u64 = 10;
/// Arguments of a program that are probed.
pub(crate) const MAX_ARGUMENTS: usize = 8;

/// What happened, when, and who was at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Nanoseconds of the host's monotonic clock.
    pub at: u64,
    /// The thread on the processor.
    pub thread: u32,
    /// Whether that thread did it, or was merely in the way of an interrupt.
    pub by: Waking,
    /// What.
    pub what: What,
}

/// In whose name something was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waking {
    /// By the thread itself.
    Thread,
    /// By an interrupt: a timer, a disk.
    Interrupt,
    /// By what follows one: packets.
    SoftInterrupt,
}

/// What happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A thread or process will be born; told just before [`What::Fork`].
    Task {
        /// Its number.
        thread: u32,
        /// Whether it shares its process with who made it.
        is_thread: bool,
        /// Its name.
        name: String,
    },
    /// One is born.
    Fork {
        /// Whose child it is.
        parent: u32,
        /// Its number.
        child: u32,
    },
    /// A program is run in place of the one before.
    Exec {
        /// Its path.
        file: String,
        /// The number that the thread had before.
        before: u32,
    },
    /// The thread ends.
    Exit,
    /// One thread leaves the processor to another.
    Switch {
        /// Who leaves.
        from: u32,
        /// In which state.
        state: Left,
        /// The name of that.
        from_name: String,
        /// Who comes.
        to: u32,
        /// The name of that.
        to_name: String,
    },
    /// A thread is woken.
    Waking {
        /// Which.
        woken: u32,
    },
    /// A TCP connection changes its state.
    Socket(Peer),
    /// A request goes to a disk.
    BlockIo {
        /// How much it is about.
        octets: u64,
    },
    /// The C library is told to open a file.
    Path {
        /// Its path, as the program has it.
        path: String,
    },
    /// A file is about to be opened.
    Open,
    /// It was, or not.
    Opened {
        /// Whether there was none, or it was not allowed.
        failed: bool,
    },
    /// The C library is told to run a program.
    Arguments {
        /// The first of its arguments.
        words: Vec<String>,
    },
    /// A probed function begins.
    Enter {
        /// Which.
        probe: usize,
        /// What it is asked for.
        about: Option<String>,
    },
    /// It returns.
    Leave(usize),
}

/// In which state a thread leaves the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// It would go on.
    Runnable,
    /// It waits for something.
    Asleep,
    /// It waits for something that comes without fail: a disk, a lock of the kernel's, a child of vfork(2).
    DeeplyAsleep,
    /// It is stopped or traced.
    Stopped,
    /// It is no more.
    Ended,
}

/// A TCP connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Whether a connection is being made from here.
    pub is_connecting: bool,
    /// Our port.
    pub local_port: u16,
    /// The other's.
    pub port: u16,
    /// The other's address.
    pub address: IpAddr,
}

impl Record {
    /// Reads one by its event's format; `None` if it is of no use.
    pub(crate) fn read(at: u64, octets: &[u8], format: &Format) -> Option<Record> {
        let thread = format.pid(octets, "common_pid")?;
        let flags = *format.octets(octets, "common_flags")?.first()?;
        let by = match flags {
            NOT_TOLD => Waking::Thread,
            _ if flags & HARD_INTERRUPT != 0 => Waking::Interrupt,
            _ if flags & SOFT_INTERRUPT != 0 => Waking::SoftInterrupt,
            _ => Waking::Thread,
        };
        let pid = |name| format.pid(octets, name);
        let text = |name| format.text(octets, name);
        let event = format.name.rsplit('/').next()?;
        let what = match event {
            "task_newtask" => What::Task {
                thread: pid("pid")?,
                is_thread: format.number(octets, "clone_flags")? & CLONE_THREAD != 0,
                name: text("comm")?,
            },
            "sched_process_fork" => What::Fork {
                parent: pid("parent_pid")?,
                child: pid("child_pid")?,
            },
            "sched_process_exec" => What::Exec {
                file: text("filename")?,
                before: pid("old_pid")?,
            },
            "sched_process_exit" => What::Exit,
            "sched_switch" => What::Switch {
                from: pid("prev_pid")?,
                state: left(format.number(octets, "prev_state")?),
                from_name: text("prev_comm")?,
                to: pid("next_pid")?,
                to_name: text("next_comm")?,
            },
            "sched_waking" => What::Waking { woken: pid("pid")? },
            "inet_sock_set_state" => What::Socket(socket(octets, format)?),
            "block_rq_issue" => What::BlockIo {
                octets: format.number(octets, "bytes")?,
            },
            "sys_enter_openat" => What::Open,
            "sys_exit_openat" => What::Opened {
                failed: format.number(octets, "ret")? as i64 <= -1,
            },
            probe => match probe.split_at_checked(1)? {
                ("b", number) => What::Enter {
                    probe: number.parse().ok()?,
                    about: text("f"),
                },
                ("r", number) => What::Leave(number.parse().ok()?),
                ("o", _) => What::Path { path: text("f")? },
                ("x", _) => What::Arguments {
                    words: (0..MAX_ARGUMENTS)
                        .map_while(|at| format.text(octets, &format!("a{at}")))
                        .collect(),
                },
                _ => return None,
            },
        };
        let record = Record {
            at,
            thread,
            by,
            what,
        };
        Some(record)
    }
}

fn left(state: u64) -> Left {
    match state & ANY_STATE {
        0 => Left::Runnable,
        state if state & ENDED != 0 => Left::Ended,
        state if state & DEEPLY_ASLEEP != 0 => Left::DeeplyAsleep,
        state if state & ASLEEP != 0 => Left::Asleep,
        _ => Left::Stopped,
    }
}

fn socket(octets: &[u8], format: &Format) -> Option<Peer> {
    /// include/net/tcp_states.h
    const TCP_SYN_SENT: u64 = 2;
    let number = |name| format.number(octets, name);
    let address = match number("family")? {
        AF_INET6 => {
            let address: [u8; 16] = format.octets(octets, "daddr_v6")?.try_into().ok()?;
            IpAddr::V6(Ipv6Addr::from(address)).to_canonical()
        }
        _ => {
            let address: [u8; 4] = format.octets(octets, "daddr")?.try_into().ok()?;
            IpAddr::V4(Ipv4Addr::from(address))
        }
    };
    Some(Peer {
        is_connecting: number("newstate")? == TCP_SYN_SENT,
        local_port: u16::try_from(number("sport")?).ok()?,
        port: u16::try_from(number("dport")?).ok()?,
        address,
    })
}
