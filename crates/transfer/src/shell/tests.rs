//! With shells as hosts have them: dash, bash, BusyBox'.

#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use tempfile::TempDir;

use super::*;
use crate::sftp::{Client, Extension, Handle, Open, Reply, Request, StatusCode};

/// A host's shell and what is on this side of it.
struct Host {
    child: Child,
    to_host: Option<Sender<Vec<u8>>>,
    from_host: ChildStdout,
    server: ShellServer,
    client: Client<usize>,
    home: TempDir,
    /// Calls that the host was sent of those that are counted.
    calls: usize,
}

/// Their beginnings; what is written has none of them in it.
const CALLS: [&[u8]; 2] = [b"pu '.", b"st ''"];
const SHELLS: [&str; 3] = ["dash", "bash", "busybox"];

impl Host {
    /// A host whose sh is this one; BusyBox' has its programs, too.
    fn start(shell: &str) -> Host {
        Host::with_program(shell, "true", "exit 0")
    }

    /// And one more program, of some lines for a shell.
    fn with_program(shell: &str, name: &str, lines: &str) -> Host {
        let home = tempfile::tempdir().unwrap();
        let bin = home.path().join(".bin");
        fs::create_dir(&bin).unwrap();
        let mut path = bin.clone().into_os_string();
        match shell {
            "busybox" => {
                let mut install = Command::new("/bin/busybox");
                assert!(
                    install
                        .args(["--install", "-s"])
                        .arg(&bin)
                        .status()
                        .unwrap()
                        .success()
                );
            }
            shell => {
                symlink(Path::new("/bin").join(shell), bin.join("sh")).unwrap();
                path.push(":/usr/bin:/bin");
            }
        }
        let _ = fs::remove_file(bin.join(name));
        fs::write(bin.join(name), format!("#!/bin/sh\n{lines}\n")).unwrap();
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = Command::new(bin.join("sh"));
        command.env("PATH", path);
        let mut child = command
            .args(["-c", SHELL_COMMAND])
            .env("HOME", home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let (to_host, octets) = channel::<Vec<u8>>();
        std::thread::spawn(move || {
            octets
                .iter()
                .try_for_each(|octets| stdin.write_all(&octets))
        });
        let mut host = Host {
            from_host: child.stdout.take().unwrap(),
            child,
            to_host: Some(to_host),
            server: ShellServer::new([7; 16]),
            client: Client::new(),
            home,
            calls: 0,
        };
        while !host.client.is_ready() || host.client.pending() > 0 {
            host.turn();
        }
        host
    }

    /// Something comes from the host.
    fn turn(&mut self) {
        self.send();
        let mut buffer = [0; 10_000];
        let len = self.from_host.read(&mut buffer).unwrap();
        assert!(len > 0, "the shell has ended");
        self.server.handle_input(&buffer[..len]).unwrap();
        self.client
            .handle_input(&self.server.take_replies())
            .unwrap();
        self.send();
    }

    fn send(&mut self) {
        let octets = self.client.transmit().collect::<Vec<_>>().concat();
        self.client.transmitted(octets.len());
        self.server.handle_requests(&octets).unwrap();
        self.client
            .handle_input(&self.server.take_replies())
            .unwrap();
        let octets = self.server.transmit().to_vec();
        self.server.transmitted(octets.len());
        self.calls += octets.windows(5).filter(|it| CALLS.contains(it)).count();
        if let Some(to_host) = &self.to_host {
            to_host.send(octets).unwrap();
        }
    }

    fn reply(&mut self) -> (usize, Reply) {
        loop {
            self.send();
            if let Some(reply) = self.client.poll_reply() {
                return reply;
            }
            self.turn();
        }
    }

    fn ask(&mut self, request: Request<'_>) -> Reply {
        self.client.request(request, 0);
        self.reply().1
    }

    fn is_done(&mut self, request: Request<'_>) {
        let reply = self.ask(request);
        assert!(is_ok(&reply), "{request:?}: {reply:?}");
    }

    fn refuses(&mut self, request: Request<'_>) -> (StatusCode, String) {
        match self.ask(request) {
            Reply::Status(status) if status.code != StatusCode::Ok => (status.code, status.message),
            reply => panic!("{request:?}: {reply:?}"),
        }
    }

    fn open(&mut self, path: &[u8], how: Open, mode: Option<u32>) -> Handle {
        let attributes = Attributes {
            mode,
            ..Attributes::default()
        };
        match self.ask(Request::Open {
            path,
            how,
            attributes,
        }) {
            Reply::Handle(handle) => handle,
            reply => panic!("{reply:?}"),
        }
    }

    fn look(&mut self, path: &[u8]) -> Attributes {
        match self.ask(Request::Lstat { path }) {
            Reply::Attributes(attributes) => attributes,
            reply => panic!("{reply:?}"),
        }
    }

    /// All that READDIR tells of a folder.
    fn names(&mut self, path: &[u8]) -> Vec<(Vec<u8>, Attributes)> {
        let Reply::Handle(handle) = self.ask(Request::Opendir { path }) else {
            panic!("not a folder");
        };
        let mut all = Vec::new();
        while let Reply::Names(names) = self.ask(Request::Readdir { handle: &handle }) {
            all.extend(names.into_iter().map(|it| (it.name, it.attributes)));
        }
        self.is_done(Request::Close { handle: &handle });
        all.sort_by(|one, other| one.0.cmp(&other.0));
        all
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.to_host = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_ok(reply: &Reply) -> bool {
    matches!(reply, Reply::Status(status) if status.code == StatusCode::Ok)
}

fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_u32;
    let octets = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    octets.take(len).collect()
}

/// Octets are written as they come, from wherever, and put together for the host.
#[test]
fn files_are_written_and_read() {
    for shell in SHELLS {
        let mut host = Host::start(shell);
        let contents = noise(500_001);
        let handle = host.open(b"part", Open::CreateNew, Some(0o600));
        let begun = host.calls;
        for start in [0, 131_072 * 2 + 1] {
            let all = Arc::new(contents[start..].to_vec());
            let end = if start == 0 {
                131_072 * 2 + 1
            } else {
                contents.len()
            } - start;
            for at in (0..end).step_by(32_768) {
                let range = at..end.min(at + 32_768);
                host.client
                    .write(&handle, (start + at) as u64, (all.clone(), range), 7);
            }
        }
        let asked = host.client.pending();
        for _ in 0..asked {
            assert!(is_ok(&host.reply().1), "{shell:?}");
        }
        assert!(host.calls - begun < 9, "{} calls", host.calls - begun);
        host.is_done(Request::Fsync { handle: &handle });
        host.is_done(Request::Close { handle: &handle });
        let path = host.home.path().join("part");
        assert!(fs::read(&path).unwrap() == contents, "{shell:?}");
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o600);

        let handle = host.open(b"part", Open::Read, None);
        let (start, len) = (12_345_u64, 100_000_u32);
        for number in 0..6 {
            let offset = start + u64::from(number * len);
            let handle = &handle;
            let request = Request::Read {
                handle,
                offset,
                len,
            };
            host.client.request(request, number as usize);
        }
        let mut read = vec![Vec::new(); 6];
        for _ in 0..6 {
            match host.reply() {
                (number, Reply::Data(data)) => read[number] = data.to_vec(),
                (5, Reply::Status(status)) => assert_eq!(status.code, StatusCode::Eof),
                reply => panic!("{reply:?}"),
            }
        }
        assert!(read.concat() == contents[12_345..], "{shell:?}");

        // It becomes shorter.
        let attributes = Attributes {
            size: Some(70_000),
            ..Attributes::default()
        };
        host.is_done(Request::Fsetstat {
            handle: &handle,
            attributes,
        });
        assert_eq!(host.look(b"part").size, Some(70_000));
        assert!(fs::read(&path).unwrap() == contents[..70_000]);
    }
}

#[test]
fn a_file_that_is_there_is_written_from_any_offset() {
    for shell in SHELLS {
        let mut host = Host::start(shell);
        let path = host.home.path().join("file");
        fs::write(&path, noise(200_000)).unwrap();
        let handle = host.open(b"file", Open::Write, None);
        let middle = Arc::new(vec![7; 70_000]);
        host.client.write(&handle, 65_536, (middle, 0..70_000), 0);
        assert!(is_ok(&host.reply().1));
        let mut wanted = noise(200_000);
        wanted[65_536..][..70_000].fill(7);
        assert!(fs::read(&path).unwrap() == wanted, "{shell:?}");
    }
}

/// What cannot be written is taken all the same, and what follows it is understood.
#[test]
fn what_is_not_written_is_not_taken_for_requests() {
    for shell in SHELLS {
        let mut host = Host::start(shell);
        let handle = host.open(b"new", Open::CreateNew, None);
        fs::remove_file(host.home.path().join("new")).unwrap();
        fs::create_dir(host.home.path().join("new")).unwrap();
        let octets = Arc::new(b"md './no' 511\n".repeat(20_000));
        for at in 0..8 {
            let range = at * 32_768..(at + 1) * 32_768;
            host.client
                .write(&handle, at as u64 * 32_768, (octets.clone(), range), at);
        }
        for _ in 0..8 {
            assert!(!is_ok(&host.reply().1), "{shell:?}");
        }
        assert_eq!(host.look(b".").mode.map(|mode| mode >> 12), Some(4));
        assert!(!host.home.path().join("no").exists());
    }
}

#[test]
fn folders_are_listed_whatever_the_names() {
    for shell in SHELLS {
        let mut host = Host::start(shell);
        let folder = host.home.path().join("it's a\nfolder");
        fs::create_dir(&folder).unwrap();
        let odd: [&[u8]; 9] = [
            b"-rf",
            b".hidden",
            b"..two",
            b"*",
            b".[!.]*",
            b"new\nline\n",
            b"\xff\x81\x88",
            b" ",
            b"$(x)`'\"\\",
        ];
        for name in odd {
            fs::write(folder.join(std::ffi::OsStr::from_bytes(name)), name).unwrap();
        }
        symlink("nowhere", folder.join("dangling")).unwrap();
        for number in 0..1203 {
            File::create(folder.join(format!("file {number}"))).unwrap();
        }
        let names = host.names(b"it's a\nfolder");
        assert_eq!(names.len(), odd.len() + 1 + 1203, "{shell:?}");
        for name in odd {
            let found = names.iter().find(|it| it.0 == name).unwrap();
            assert_eq!(found.1.size, Some(name.len() as u64), "{shell:?} {name:?}");
            let path = [&b"it's a\nfolder/"[..], name].concat();
            assert_eq!(host.look(&path), found.1, "{shell:?} {name:?}");
        }
        let link = names.iter().find(|it| it.0 == b"dangling").unwrap();
        assert_eq!(link.1.mode, Some(0o120_777));
        fs::create_dir(host.home.path().join("empty")).unwrap();
        assert_eq!(host.names(b"empty"), []);
        let not = host.refuses(Request::Opendir { path: b"missing" });
        assert_eq!(not.0, StatusCode::NoSuchFile, "{shell:?} {not:?}");
        let not = host.refuses(Request::Opendir {
            path: b"it's a\nfolder/.hidden",
        });
        assert_eq!(not.0, StatusCode::Failure, "{shell:?} {not:?}");
    }
}

#[test]
fn many_paths_are_looked_at_together() {
    for shell in SHELLS {
        let mut host = Host::start(shell);
        for number in (0..100).filter(|number| number % 7 > 0) {
            fs::write(host.home.path().join(number.to_string()), vec![0; number]).unwrap();
        }
        let begun = host.calls;
        for number in 0..100 {
            let path = number.to_string();
            let path = path.as_bytes();
            host.client.request(Request::Lstat { path }, number);
        }
        for _ in 0..100 {
            match host.reply() {
                (number, Reply::Attributes(it)) => assert_eq!(it.size, Some(number as u64)),
                (number, reply) => {
                    assert_eq!(number % 7, 0, "{reply:?}");
                    assert!(
                        matches!(reply, Reply::Status(it) if it.code == StatusCode::NoSuchFile)
                    );
                }
            }
        }
        assert_eq!(host.calls - begun, 2, "{shell:?}");
    }
}

#[test]
fn attributes_are_set() {
    for shell in SHELLS {
        let mut host = Host::start(shell);
        let path = host.home.path().join("file");
        fs::write(&path, b"x").unwrap();
        let attributes = Attributes {
            mode: Some(0o4751),
            times: Some((1_600_000_000, 1_500_000_000)),
            ..Attributes::default()
        };
        host.is_done(Request::Setstat {
            path: b"file",
            attributes,
        });
        let meta = path.metadata().unwrap();
        assert_eq!(
            (meta.mode() & 0o7777, meta.mtime()),
            (0o4751, 1_500_000_000)
        );
        if shell != "busybox" {
            assert_eq!(meta.atime(), 1_600_000_000);
        }
        symlink("file", host.home.path().join("link")).unwrap();
        let attributes = Attributes {
            owner: Some((meta.uid(), meta.gid())),
            times: Some((1_400_000_000, 1_400_000_000)),
            ..Attributes::default()
        };
        host.is_done(Request::Lsetstat {
            path: b"link",
            attributes,
        });
        assert_eq!(
            host.look(b"link").modified(),
            Some(1_400_000_000),
            "{shell:?}"
        );
        assert_eq!(path.metadata().unwrap().mtime(), 1_500_000_000);
        let attributes = Attributes {
            mode: Some(0o600),
            ..Attributes::default()
        };
        let missing = host.refuses(Request::Setstat {
            path: b"missing",
            attributes,
        });
        assert_eq!(missing.0, StatusCode::NoSuchFile, "{shell:?} {missing:?}");
    }
}

#[test]
fn things_are_made_moved_and_removed() {
    for shell in SHELLS {
        let mut host = Host::start(shell);
        let home = host.home.path().to_owned();
        let attributes = Attributes {
            mode: Some(0o750),
            ..Attributes::default()
        };
        let path = b"folder";
        host.is_done(Request::Mkdir { path, attributes });
        assert_eq!(
            home.join("folder").metadata().unwrap().mode() & 0o7777,
            0o750
        );
        let there = host.refuses(Request::Mkdir { path, attributes });
        assert_eq!(
            there,
            (StatusCode::Failure, "File exists".to_owned()),
            "{shell:?}"
        );
        fs::write(home.join("folder/one"), b"1").unwrap();
        fs::write(home.join("two"), b"2").unwrap();
        host.is_done(Request::PosixRename {
            from: b"folder/one",
            to: b"two",
        });
        assert_eq!(fs::read(home.join("two")).unwrap(), b"1");
        // Never into a folder, nor through a link into one.
        let (from, to) = (b"two", b"folder");
        host.refuses(Request::PosixRename { from, to });
        symlink("folder", home.join("link")).unwrap();
        host.is_done(Request::PosixRename {
            from: b"two",
            to: b"link",
        });
        assert_eq!(fs::read_link(home.join("link")).ok(), None, "{shell:?}");
        assert_eq!(fs::read(home.join("link")).unwrap(), b"1");
        host.is_done(Request::Symlink {
            target: b"-- it's\n\n",
            link: b"odd",
        });
        assert_eq!(
            fs::read_link(home.join("odd")).unwrap(),
            Path::new("-- it's\n\n")
        );
        match host.ask(Request::Readlink { path: b"odd" }) {
            Reply::Names(names) => assert_eq!(names[0].name, b"-- it's\n\n", "{shell:?}"),
            reply => panic!("{reply:?}"),
        }
        host.refuses(Request::Readlink { path: b"link" });
        let (target, link) = (b"x", b"link");
        host.refuses(Request::Symlink { target, link });
        let (from, to) = (b"link", b"hard");
        host.is_done(Request::Hardlink { from, to });
        host.refuses(Request::Hardlink { from, to });
        assert_eq!(home.join("hard").metadata().unwrap().nlink(), 2);
        host.refuses(Request::Rename { from, to });
        host.is_done(Request::Rename { from, to: b"moved" });
        host.is_done(Request::Remove { path: b"moved" });
        let missing = host.refuses(Request::Remove { path: b"moved" });
        assert_eq!(missing.0, StatusCode::NoSuchFile, "{shell:?} {missing:?}");
        host.refuses(Request::Remove { path });
        host.is_done(Request::Rmdir { path });
        assert!(!home.join("folder").exists());
        fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
    }
}

#[test]
fn files_are_opened_as_they_should_be() {
    for shell in SHELLS {
        let mut host = Host::start(shell);
        let home = host.home.path().to_owned();
        fs::write(home.join("there"), b"x").unwrap();
        symlink("nowhere", home.join("dangling")).unwrap();
        let fifo = Command::new("mkfifo").arg(home.join("fifo")).status();
        assert!(fifo.unwrap().success());
        let attributes = Attributes::default();
        let open = |path, how| Request::Open {
            path,
            how,
            attributes,
        };
        for (path, how, code) in [
            (&b"there"[..], Open::CreateNew, StatusCode::Failure),
            (b"dangling", Open::CreateNew, StatusCode::Failure),
            (b"missing/x", Open::CreateNew, StatusCode::NoSuchFile),
            (b"missing", Open::Write, StatusCode::NoSuchFile),
            (b"missing", Open::Read, StatusCode::NoSuchFile),
            (b"fifo", Open::Read, StatusCode::Failure),
            (b"fifo", Open::Write, StatusCode::Failure),
            (b"there", Open::Claim, StatusCode::Unsupported),
        ] {
            let not = host.refuses(open(path, how));
            assert_eq!(not.0, code, "{shell:?} {path:?} {how:?} {not:?}");
        }
        assert!(!home.join("nowhere").exists() && !home.join("missing").exists());
        match host.ask(Request::Realpath { path: b"." }) {
            Reply::Names(names) => {
                let home = home.canonicalize().unwrap();
                assert_eq!(names[0].name, home.as_os_str().as_bytes());
            }
            reply => panic!("{reply:?}"),
        }
        match host.ask(Request::Statvfs { path: b"." }) {
            Reply::Filesystem(it) => assert!(it.available > 0, "{shell:?} {it:?}"),
            reply => panic!("{reply:?}"),
        }
        assert!(host.client.has(Extension::PosixRename));
    }
}

fn said(octets: &[u8]) -> Result<ShellServer, ShellError> {
    let mut server = ShellServer::new([7; 16]);
    server.handle_input(octets)?;
    Ok(server)
}

#[test]
fn what_is_no_shell_of_ours_is_told() {
    let motd = said(b"Welcome\nsshoal-shell\n").unwrap();
    assert!(motd.transmit().ends_with(b"echo \"sshoal-lacks$lacks\";\n"));
    for (octets, wanted) in [
        (
            &b"sshoal-shell\nsshoal-lacks stat xargs\n"[..],
            "the host lacks stat, xargs",
        ),
        (b"sshoal-shell\nhello\n", "no answer"),
        (b"sshoal-shell\nsshoal-ready 22\n0\n", "no answer"),
        (&[b'x'; 100_000], "no POSIX shell"),
        (&b"x\n".repeat(50_000), "no POSIX shell"),
    ] {
        let error = said(octets).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

/// A host that answers what it likes.
#[test]
fn answers_that_answer_nothing_are_refused() {
    let look = |path: &[u8]| {
        let mut packet = vec![7, 0, 0, 0, 1];
        packet.put_string(path);
        packet
    };
    let mut list = vec![11, 0, 0, 0, 1];
    list.put_string(b"/");
    let mut link = vec![19, 0, 0, 0, 1];
    link.put_string(b"/");
    for (request, answer) in [
        (look(b"/"), &b"0\n"[..]),
        (look(b"/"), b"41ed 1 2 3 4\n"),
        (look(b"/"), b"v1 2 3 4\n"),
        (look(b"/"), b"41ed 1 2 3 4 5\n0\n"),
        (list.clone(), b"0\nn501\n"),
        (list.clone(), b"0\nn0\n"),
        (list.clone(), b"n1\n"),
        (list, b"0\nn1\nname\0nothing\n"),
        (link, b"d100\n"),
    ] {
        let mut server = said(b"sshoal-shell\nsshoal-ready 0022\n").unwrap();
        let mut octets = Vec::new();
        octets.put_string(&request);
        server.handle_requests(&octets).unwrap();
        let error = server.handle_input(answer).unwrap_err();
        assert!(
            matches!(error, ShellError::NoAnswer(_)),
            "{answer:?}: {error}"
        );
    }
}

/// The end of what a file does not have is made up: none of it may be taken for contents.
#[test]
fn what_a_file_has_not_is_not_made_up() {
    for (counts, wanted) in [
        (
            "0+0 records in 0+0 records out 1+0 records in 1+0 records out 65536 bytes copied 1+0 records in",
            Some(65_636),
        ),
        (
            "1+0 records in 65536 bytes (66 kB) copied 0+1 records in 9 bytes copied, size 1",
            Some(65_545),
        ),
        ("1+0 records in 0+1 records in size 65540", Some(65_540)),
        ("1+0 records in 0+0 records in size", Some(65_536)),
        ("0+1 records in 0+0 records in size 7", Some(7)),
        ("", Some(0)),
        ("0+0 records in 0+0 records in", Some(0)),
        ("1+0 records in 0+1 records in", None),
        ("1+0 records in 0+1 records in size 70000", None),
        ("1+0 records in 0+1 records in 65637 bytes copied", None),
        ("changed", None),
    ] {
        let mut server = said(b"sshoal-shell\nsshoal-ready 0022\n").unwrap();
        let mut octets = Vec::new();
        let mut open = vec![3, 0, 0, 0, 1];
        open.put_string(b"/file");
        open.extend([0, 0, 0, 1, 0, 0, 0, 0]);
        octets.put_string(&open);
        let mut read = vec![5, 0, 0, 0, 2];
        read.put_string(&1_u32.to_be_bytes());
        read.put_u64(0);
        read.put_u32(65_636);
        server.handle_requests(&octets).unwrap();
        server.handle_input(b"=1:2\n").unwrap();
        octets.clear();
        octets.put_string(&read);
        server.handle_requests(&octets).unwrap();
        server.take_replies();
        server.handle_input(b"d65636\n").unwrap();
        server.handle_input(&[b'0'; 65_636]).unwrap();
        assert!(server.take_replies().is_empty());
        server
            .handle_input(format!("t {counts}\n").as_bytes())
            .unwrap();
        let replies = server.take_replies();
        match wanted {
            Some(0) => assert_eq!((replies[4], &replies[9..13]), (101, &[0, 0, 0, 1][..])),
            Some(len) => assert_eq!((replies[4], replies.len()), (103, len + 13), "{counts}"),
            None => assert_eq!((replies[4], &replies[9..13]), (101, &[0, 0, 0, 4][..])),
        }
    }
}

/// A file of /proc has no size, and one that is read has no other's octets.
#[test]
fn what_has_no_size_is_read_and_what_is_another_file_is_not() {
    for shell in SHELLS {
        let mut host = Host::start(shell);
        let handle = host.open(b"/proc/version", Open::Read, None);
        let read = |offset| Request::Read {
            handle: &handle,
            offset,
            len: 32_768,
        };
        let version = fs::read("/proc/version").unwrap();
        match host.ask(read(0)) {
            Reply::Data(data) => assert!(data[..] == version, "{shell}"),
            reply => panic!("{shell} {reply:?}"),
        }
        assert_eq!(
            host.refuses(read(version.len() as u64)).0,
            StatusCode::Eof,
            "{shell}"
        );

        let path = host.home.path().join("file");
        fs::write(&path, noise(100_000)).unwrap();
        let handle = host.open(b"file", Open::Read, None);
        fs::write(host.home.path().join("other"), noise(100_000)).unwrap();
        fs::rename(host.home.path().join("other"), &path).unwrap();
        let not = host.refuses(Request::Read {
            handle: &handle,
            offset: 0,
            len: 10,
        });
        assert!(not.1.contains("another file"), "{shell} {not:?}");
        // What is removed is not made anew.
        let handle = host.open(b"file", Open::Write, None);
        fs::remove_file(&path).unwrap();
        host.client
            .write(&handle, 0, (Arc::new(vec![1; 10]), 0..10), 0);
        assert!(!is_ok(&host.reply().1), "{shell}");
        assert!(!path.exists(), "{shell}");
    }
}

/// dd ends before it has taken all: what is left is not run.
#[test]
fn octets_of_a_file_are_never_lines() {
    // BusyBox' shell has its own programs within itself.
    for shell in ["dash", "bash"] {
        let dd = "test -e \"$HOME/file\" && exit 1; exec /bin/dd \"$@\"";
        let mut host = Host::with_program(shell, "dd", dd);
        let handle = host.open(b"file", Open::CreateNew, None);
        let evil = Arc::new(b"\nmkdir evil\n".repeat(3000));
        let len = evil.len();
        host.client.write(&handle, 0, (evil, 0..len), 0);
        host.send();
        host.to_host = None;
        let mut said = Vec::new();
        host.from_host.read_to_end(&mut said).unwrap();
        assert!(!host.home.path().join("evil").exists(), "{shell}");
        let error = host.server.handle_input(&said).unwrap_err();
        assert_eq!(error, ShellError::NotTaken(len as u64), "{shell}");
    }
}

#[test]
fn names_that_cannot_be_told_are_no_empty_folder() {
    // BusyBox' shell has its own programs within itself.
    for shell in ["dash", "bash"] {
        let mut host = Host::with_program(shell, "xargs", "cat >/dev/null; exit 1");
        fs::write(host.home.path().join("file"), b"x").unwrap();
        let Reply::Handle(handle) = host.ask(Request::Opendir { path: b"." }) else {
            panic!("it can be opened");
        };
        let not = host.refuses(Request::Readdir { handle: &handle });
        assert_eq!(not.0, StatusCode::Failure, "{shell} {not:?}");
    }
}

/// Of two names of a file rename(2) leaves both; a folder's bit for set-group-ID goes.
#[test]
fn other_names_of_a_file_and_set_group_id() {
    for shell in SHELLS {
        let mut host = Host::start(shell);
        let home = host.home.path().to_owned();
        fs::write(home.join("one"), b"x").unwrap();
        fs::hard_link(home.join("one"), home.join("two")).unwrap();
        host.is_done(Request::PosixRename {
            from: b"one",
            to: b"two",
        });
        assert!(home.join("one").exists() && home.join("two").exists());
        fs::create_dir(home.join("folder")).unwrap();
        fs::set_permissions(home.join("folder"), fs::Permissions::from_mode(0o2755)).unwrap();
        let attributes = Attributes {
            mode: Some(0o755),
            ..Attributes::default()
        };
        host.is_done(Request::Setstat {
            path: b"folder",
            attributes,
        });
        let mode = home.join("folder").metadata().unwrap().mode();
        assert_eq!(mode & 0o7777, 0o755, "{shell}");
        // Size and all else in one.
        let attributes = Attributes {
            size: Some(1000),
            mode: Some(0o444),
            times: Some((1_500_000_000, 1_500_000_000)),
            ..Attributes::default()
        };
        let path = b"one";
        host.is_done(Request::Setstat { path, attributes });
        let meta = home.join("one").metadata().unwrap();
        assert_eq!(
            (meta.len(), meta.mode() & 0o777, meta.mtime()),
            (1000, 0o444, 1_500_000_000)
        );
    }
}
