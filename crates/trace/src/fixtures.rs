//! What a tracer would send, written as the kernel writes it: for tests.

use std::collections::BTreeMap;

use crate::frames::Frames;
use crate::login::Wanted;
use crate::page::tests::page;
use crate::recording::Recording;
use crate::sums::{Traced, TracedError};

/// The process that is followed.
pub(crate) const LISTENER: u32 = 100;
/// `common_flags` of what interrupts do.
pub(crate) const HARD: u8 = 0x08;
pub(crate) const SOFT: u8 = 0x10;
/// `prev_state`.
pub(crate) const RUNNABLE: u64 = 0;
pub(crate) const ASLEEP: u64 = 1;
pub(crate) const DEEP: u64 = 2;
pub(crate) const ZOMBIE: u64 = 0x20;

/// An event's name and number, and its fields behind the common ones: name and octets.
type Event = (&'static str, u16, &'static [(&'static str, usize)]);

const EVENTS: &[Event] = &[
    (
        "task/task_newtask",
        1,
        &[("pid", 4), ("comm", 16), ("clone_flags", 8)],
    ),
    (
        "sched/sched_process_fork",
        2,
        &[("parent_pid", 4), ("child_pid", 4)],
    ),
    (
        "sched/sched_process_exec",
        3,
        &[("filename", 64), ("pid", 4), ("old_pid", 4)],
    ),
    ("sched/sched_process_exit", 4, &[("pid", 4)]),
    (
        "sched/sched_switch",
        5,
        &[
            ("prev_comm", 16),
            ("prev_pid", 4),
            ("prev_state", 8),
            ("next_comm", 16),
            ("next_pid", 4),
        ],
    ),
    ("sched/sched_waking", 6, &[("pid", 4)]),
    (
        "sock/inet_sock_set_state",
        7,
        &[
            ("oldstate", 4),
            ("newstate", 4),
            ("sport", 2),
            ("dport", 2),
            ("family", 2),
            ("daddr", 4),
            ("daddr_v6", 16),
        ],
    ),
    ("block/block_rq_issue", 8, &[("bytes", 4)]),
    ("syscalls/sys_enter_openat", 9, &[("dfd", 8)]),
    ("sshoal_1/b0", 10, &[("__probe_ip", 8)]),
    ("sshoal_1/r0", 11, &[("__probe_func", 8)]),
    ("sshoal_1/b1", 12, &[("__probe_ip", 8)]),
    ("sshoal_1/r1", 13, &[("__probe_func", 8)]),
    ("syscalls/sys_exit_openat", 14, &[("ret", 8)]),
    ("sshoal_1/o0", 15, &[("f", 64)]),
    ("sshoal_1/x1", 16, &[("f", 64), ("a0", 16), ("a1", 16)]),
];

/// A host that is traced.
#[derive(Default)]
pub(crate) struct Host {
    records: BTreeMap<u16, Vec<(u64, Vec<u8>)>>,
}

impl Host {
    fn record(&mut self, at: u64, pid: u32, flags: u8, event: &str, values: &[&[u8]]) -> &mut Host {
        let (_, id, fields) = EVENTS
            .iter()
            .find(|(name, ..)| name.ends_with(event))
            .expect("an event");
        let mut record = id.to_le_bytes().to_vec();
        record.extend([flags, 0]);
        record.extend(pid.to_le_bytes());
        for ((_, size), value) in fields.iter().zip(values) {
            let mut value = value.to_vec();
            value.resize(*size, 0);
            record.extend(value);
        }
        // Each processor's records are in order; that they come from several must not matter.
        let processor = u16::try_from(pid % 3).expect("less than three");
        self.records
            .entry(processor)
            .or_default()
            .push((at, record));
        self
    }

    pub(crate) fn fork(&mut self, at: u64, parent: u32, child: u32) -> &mut Host {
        self.newtask(at, parent, child, 0);
        let pids = [parent.to_le_bytes(), child.to_le_bytes()];
        self.record(at, parent, 0, "sched_process_fork", &[&pids[0], &pids[1]])
    }

    pub(crate) fn thread(&mut self, at: u64, parent: u32, child: u32) -> &mut Host {
        self.newtask(at, parent, child, 0x10000);
        let pids = [parent.to_le_bytes(), child.to_le_bytes()];
        self.record(at, parent, 0, "sched_process_fork", &[&pids[0], &pids[1]])
    }

    fn newtask(&mut self, at: u64, parent: u32, child: u32, flags: u64) {
        let values: [&[u8]; 3] = [&child.to_le_bytes(), b"sshd", &flags.to_le_bytes()];
        self.record(at, parent, 0, "task_newtask", &values);
    }

    pub(crate) fn exec(&mut self, at: u64, pid: u32, file: &str) -> &mut Host {
        let number = pid.to_le_bytes();
        self.record(
            at,
            pid,
            0,
            "sched_process_exec",
            &[file.as_bytes(), &number, &number],
        )
    }

    pub(crate) fn exit(&mut self, at: u64, pid: u32) -> &mut Host {
        self.record(at, pid, 0, "sched_process_exit", &[&pid.to_le_bytes()])
    }

    pub(crate) fn switch(&mut self, at: u64, from: u32, state: u64, to: u32) -> &mut Host {
        let pids = [from.to_le_bytes(), to.to_le_bytes()];
        let values: [&[u8]; 5] = [b"one", &pids[0], &state.to_le_bytes(), b"other", &pids[1]];
        self.record(at, from, 0, "sched_switch", &values)
    }

    pub(crate) fn wake(&mut self, at: u64, by: u32, flags: u8, woken: u32) -> &mut Host {
        self.record(at, by, flags, "sched_waking", &[&woken.to_le_bytes()])
    }

    pub(crate) fn socket(&mut self, at: u64, pid: u32, state: u32, ports: (u16, u16)) -> &mut Host {
        self.socket_of(at, pid, state, ports, [127, 0, 0, 9])
    }

    /// The same with this address.
    pub(crate) fn socket_of(
        &mut self,
        at: u64,
        pid: u32,
        state: u32,
        ports: (u16, u16),
        address: [u8; 4],
    ) -> &mut Host {
        let (local, remote) = (ports.0.to_le_bytes(), ports.1.to_le_bytes());
        let (new, family) = (state.to_le_bytes(), 2_u16.to_le_bytes());
        let values: [&[u8]; 6] = [&[], &new, &local, &remote, &family, &address];
        self.record(at, pid, 0, "inet_sock_set_state", &values)
    }

    pub(crate) fn block_io(&mut self, at: u64, pid: u32, octets: u32) -> &mut Host {
        self.record(at, pid, 0, "block_rq_issue", &[&octets.to_le_bytes()])
    }

    pub(crate) fn open(&mut self, at: u64, pid: u32) -> &mut Host {
        self.record(at, pid, 0, "sys_enter_openat", &[])
    }

    /// The C library is told to open a file, and the kernel after it.
    pub(crate) fn open_by_name(&mut self, at: u64, pid: u32, path: &str) -> &mut Host {
        self.record(at, pid, 0xff, "sshoal_1/o0", &[path.as_bytes()])
            .open(at, pid)
    }

    /// The kernel has opened it, or not.
    pub(crate) fn opened(&mut self, at: u64, pid: u32, result: i64) -> &mut Host {
        let result = result.to_le_bytes();
        self.record(at, pid, 0, "sys_exit_openat", &[&result])
    }

    /// The C library is told to run a program.
    pub(crate) fn arguments(&mut self, at: u64, pid: u32, words: [&str; 2]) -> &mut Host {
        let words = words.map(str::as_bytes);
        self.record(at, pid, 0xff, "sshoal_1/x1", &[b"", words[0], words[1]])
    }

    pub(crate) fn probe(&mut self, at: u64, pid: u32, begins: bool) -> &mut Host {
        let event = if begins { "sshoal_1/b0" } else { "sshoal_1/r0" };
        // The kernel does not tell more of these.
        self.record(at, pid, 0xff, event, &[])
    }

    /// The C library is asked for a name.
    pub(crate) fn lookup(&mut self, at: u64, pid: u32, begins: bool) -> &mut Host {
        let event = if begins { "sshoal_1/b1" } else { "sshoal_1/r1" };
        self.record(at, pid, 0xff, event, &[])
    }

    /// What its tracer sends.
    pub(crate) fn octets(&self) -> Vec<u8> {
        self.octets_ending("asked")
    }

    /// The same with another reason for its end.
    pub(crate) fn octets_ending(&self, why: &str) -> Vec<u8> {
        let mut octets = b"sshoal-trace 1\n".to_vec();
        let mut send = |letter: u8, content: &[u8]| {
            octets.push(letter);
            octets.extend((content.len() as u32).to_be_bytes());
            octets.extend(content);
        };
        for (name, id, fields) in EVENTS {
            send(b'F', format(name, *id, fields).as_bytes());
        }
        send(
            b'B',
            b"0 pam_slow.so pam_sm_open_session\n1 libc getnameinfo",
        );
        send(b'S', b"pgmajfault 5\nsteal 1\n");
        let armed = format!("time 1\nfollowed {LISTENER}\nby tracefs");
        send(b'A', armed.as_bytes());
        for (processor, records) in &self.records {
            let mut records = records.clone();
            records.sort_by_key(|(at, _)| *at);
            // As many to a page as would fit into the kernel's.
            for part in records.chunks(30) {
                let mut content = processor.to_be_bytes().to_vec();
                content.extend(page(part[0].0, part));
                send(b'P', &content);
            }
        }
        send(b'S', b"pgmajfault 9\nsteal 1\n");
        send(b'N', b"7 systemd-logind\n8 kworker/0:1\n");
        send(b'L', b"0 0 0\n1 2 1\n");
        send(b'E', why.as_bytes());
        octets
    }

    /// All that comes of it.
    pub(crate) fn traced(&self, wanted: Wanted) -> Result<Traced, TracedError> {
        Traced::of(recording(&self.octets()), wanted)
    }
}

/// What a tracer sends that has no tracefs: these lines.
pub(crate) fn told(by: &str, lines: &str) -> Vec<u8> {
    let mut octets = b"sshoal-trace 1\n".to_vec();
    let armed = format!(
        "time 1\nfollowed {LISTENER}\nby {by}\nrefused tracefs this kernel has no tracefs\n"
    );
    for (letter, content) in [
        (b'A', armed.as_str()),
        (b'R', lines),
        (b'L', "0 0 0\n"),
        (b'E', "asked"),
    ] {
        octets.push(letter);
        octets.extend((content.len() as u32).to_be_bytes());
        octets.extend(content.as_bytes());
    }
    octets
}

fn format(name: &str, id: u16, fields: &[(&str, usize)]) -> String {
    let mut text = format!("{name}\nID: {id}\nformat:\n");
    let mut offset = 0;
    let common = [
        ("common_type", 2),
        ("common_flags", 1),
        ("common_preempt_count", 1),
        ("common_pid", 4),
    ];
    for (field, size) in common.iter().chain(fields) {
        text.push_str(&format!(
            "\tfield:int {field};\toffset:{offset};\tsize:{size};\tsigned:0;\n"
        ));
        offset += size;
    }
    text
}

/// A recording of whole octets.
pub(crate) fn recording(octets: &[u8]) -> Recording {
    let mut frames = Frames::default();
    let mut recording = Recording::default();
    frames.handle_input(octets).expect("not too much");
    while let Some(frame) = frames.poll_frame().expect("a frame") {
        recording.take(frame).expect("no refusal");
    }
    recording
}

/// A login that takes a millisecond: the server's process for it, a shell that says something, and the server that passes it on.
/// `between` is done between 110 and 800 µs, while the server's process waits for what 150 does.
pub(crate) fn login(between: impl FnOnce(&mut Host)) -> Host {
    let us = |time: u64| time * 1000;
    let mut host = Host::default();
    host.fork(us(100), LISTENER, 150)
        .switch(us(101), 0, RUNNABLE, 150);
    between(&mut host);
    host.fork(us(810), 150, 190)
        .switch(us(811), 0, RUNNABLE, 190)
        .switch(us(815), 150, ASLEEP, 0)
        .exec(us(820), 190, "/bin/sh")
        .wake(us(900), 190, 0, 150)
        .switch(us(902), 0, RUNNABLE, 150)
        .exit(us(905), 190)
        .switch(us(910), 190, ZOMBIE, 0)
        .switch(us(1000), 150, ASLEEP, 0)
        .socket(us(1100), 150, 4, (22, 40000));
    host
}
