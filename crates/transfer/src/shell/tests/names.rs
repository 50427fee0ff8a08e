//! Folders, links, names and attributes, with shells as hosts have them.

use super::*;

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
