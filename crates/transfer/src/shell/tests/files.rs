//! Contents of files, to shells as hosts have them and from them.

use super::*;

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

/// Neither is what is asked of an open file done to another one that has taken its place, nor is one made where it was.
#[test]
fn what_is_open_is_brought_to_the_disk_and_changed_but_no_other_file() {
    for shell in SHELLS {
        let mut host = Host::start(shell);
        let path = host.home.path().join("part");
        let handle = host.open(b"part", Open::CreateNew, None);
        let all = |host: &mut Host, handle: &Handle| {
            let attributes = Attributes {
                size: Some(5),
                mode: Some(0o640),
                ..Attributes::default()
            };
            let replies = [
                Request::Fsync { handle },
                Request::Fsetstat { handle, attributes },
                Request::Fstat { handle },
            ];
            replies.map(|request| host.ask(request))
        };
        let [synced, set, looked] = all(&mut host, &handle);
        assert!(is_ok(&synced) && is_ok(&set), "{shell}");
        assert!(matches!(looked, Reply::Attributes(it) if it.size == Some(5)));
        fs::remove_file(&path).unwrap();
        for reply in all(&mut host, &handle) {
            assert!(
                matches!(reply, Reply::Status(_)) && !is_ok(&reply),
                "{shell}"
            );
        }
        assert!(!path.exists(), "{shell}");
        // The other one is made before the open one goes: its inode is not the same.
        let handle = host.open(b"part", Open::CreateNew, None);
        fs::write(host.home.path().join("other"), b"another").unwrap();
        fs::rename(host.home.path().join("other"), &path).unwrap();
        let mode = path.metadata().unwrap().mode();
        for reply in all(&mut host, &handle) {
            let Reply::Status(status) = reply else {
                panic!("{shell} {reply:?}")
            };
            assert!(
                status.message.contains("another file"),
                "{shell} {status:?}"
            );
        }
        assert_eq!(fs::read(&path).unwrap(), b"another", "{shell}");
        assert_eq!(path.metadata().unwrap().mode(), mode, "{shell}");
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
