//! `sshoal get` from a host whose SFTP server is not what it seems: a program of a few lines behind a real sshd.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use sshoal_testbed::sshd::SshdSpec;
use support::copying::{real, sshoal, text};
use support::shared_folder;

/// Lists 20,000 files that nobody may open, a name twice, one that is too long and one that leads elsewhere; has one good file.
const SERVER: &str = r#"#!/usr/bin/env python3
import struct
import sys

def string(octets):
    return struct.pack(">I", len(octets)) + octets

def attributes(mode, size):
    return struct.pack(">IQI", 5, size, mode)

def name(octets):
    return string(octets) + string(b"") + attributes(0o100644, 4)

def status(code):
    return 101, struct.pack(">I", code) + string(b"") + string(b"")

NAMES = [name(b"good"), name(b"good"), name(b"long" * 70), name(b"../evil")]
NAMES += [name(b"closed%d" % number) for number in range(20000)]
told = 0

def answer(kind, body):
    global told
    path = body[4:4 + struct.unpack(">I", body[:4])[0]]
    if kind in (7, 8, 17):
        is_folder = path == b"/hostile"
        return 105, attributes(0o040755 if is_folder else 0o100644, 4)
    if kind == 11:
        return 102, string(b"folder")
    if kind == 12:
        names = NAMES[told:told + 500]
        told += len(names)
        return (104, struct.pack(">I", len(names)) + b"".join(names)) if names else status(1)
    if kind == 3:
        return (102, string(path)) if path.endswith(b"good") else status(3)
    if kind == 5:
        offset = struct.unpack(">Q", body[4 + len(path):12 + len(path)])[0]
        return (103, string(b"good")) if offset == 0 else status(1)
    return status(0 if kind == 4 else 8)

def read(octets):
    got = sys.stdin.buffer.read(octets)
    if len(got) < octets:
        sys.exit(0)
    return got

while True:
    packet = read(struct.unpack(">I", read(4))[0])
    if packet[0] == 1:
        out = struct.pack(">BI", 2, 3)
    else:
        kind, body = answer(packet[0], packet[5:])
        out = bytes([kind]) + packet[1:5] + body
    sys.stdout.buffer.write(string(out))
    sys.stdout.buffer.flush()
"#;

#[test]
fn what_a_hostile_server_makes_fail_is_told_up_to_a_limit_and_the_rest_comes() {
    let programs = shared_folder();
    let server = programs.path().join("server");
    fs::write(&server, SERVER).unwrap();
    fs::set_permissions(&server, Permissions::from_mode(0o755)).unwrap();
    let shoal = real(SshdSpec::new(1).line(format!("Subsystem sftp {}", text(&server))));
    let here = shared_folder();
    let to = here.path().join("here");
    let words = ["get", "-r", "--method", "sftp", "/hostile", text(&to)];
    let ended = sshoal(&shoal, &words).expect(3);
    let host = to.join(shoal.name(0)).join("hostile");
    assert_eq!(fs::read(host.join("good")).unwrap(), b"good");
    assert_eq!(fs::read_dir(&host).unwrap().count(), 1, "parts are left");
    assert_eq!(fs::read_dir(here.path()).unwrap().count(), 1);
    let lines = ended.stderr().lines().count();
    assert!((1000..1100).contains(&lines), "{lines}");
    let ended = ended.says(&[
        "lists the name \"good\" twice",
        "a name of 280 octets",
        "lists a name that is none: \"../evil\"",
        "closed0: opening on the host: permission denied",
        "and 19003 more that failed",
    ]);
    ended.expect_memory_below(100 << 20);
}
