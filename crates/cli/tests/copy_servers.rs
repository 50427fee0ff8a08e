//! `sshoal put` and `sshoal get` with other people's SFTP servers: OpenSSH's, the same behind Dropbear, asyncssh's and
//! Go's. What they lack of OpenSSH's extensions must not show.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use sshoal_interop::{KeyType, Options, Server, Software, generate_key};
use support::program::{Ended, Running};
use support::{User, noise, shared_folder};
use tempfile::TempDir;

/// A server, and somebody who may log in.
struct Setup {
    server: Server,
    files: TempDir,
    user: User,
}

impl Setup {
    fn start(software: Software) -> Setup {
        let files = TempDir::new().unwrap();
        let key = generate_key(files.path(), "user", KeyType::Ed25519).unwrap();
        let options = Options {
            host_keys: vec![KeyType::Ed25519],
            authorized_keys: fs::read_to_string(key.with_extension("pub")).unwrap(),
            ..Options::default()
        };
        let server = Server::start(software, &options).unwrap_or_else(|error| panic!("{error}"));
        let identity = fs::read_to_string(key).unwrap();
        server.client_files(identity).write(files.path()).unwrap();
        let user = User::new();
        Setup {
            server,
            files,
            user,
        }
    }

    fn sshoal(&self, words: &[&str]) -> Ended {
        let file = |name: &str| self.files.path().join(name);
        let mut command = self.user.command(env!("CARGO_BIN_EXE_sshoal"));
        command.arg(words[0]).arg("-F").arg(file("ssh_config"));
        command.arg("-f").arg(file("hosts")).args(&words[1..]);
        let ended = Running::start(&mut command).wait();
        if ended.status.code() != Some(0) {
            println!("the server said: {}", self.server.log());
        }
        ended
    }
}

/// Names that have troubled shells, globs and terminals, and one that is no UTF-8.
const NAMES: [&[u8]; 10] = [
    b"plain",
    b"two words",
    b"line\nfeed",
    b"*?[a]",
    b"-rf",
    b"#~$HOME`id`",
    b"quote'\"",
    b"back\\slash",
    "gr\u{fc}n \u{1f41f}".as_bytes(),
    b"no\xffutf8",
];
/// Around a packet, a block and a channel's window; a hole's worth of more.
const SIZES: [usize; 10] = [
    0, 1, 32_767, 32_768, 32_769, 131_072, 261_121, 1_048_577, 2_097_153, 5_000_011,
];

fn tree(folder: &Path) {
    fs::create_dir_all(folder.join("deep/er/empty")).unwrap();
    for (name, size) in NAMES.iter().zip(SIZES) {
        let path = folder.join("deep").join(OsStr::from_bytes(name));
        fs::write(&path, noise(size)).unwrap();
    }
    fs::write(folder.join("program"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(folder.join("program"), Permissions::from_mode(0o755)).unwrap();
    for number in 0..200 {
        fs::write(folder.join(format!("small{number}")), noise(number)).unwrap();
    }
}

/// Everything below a folder by its path: what it is, and its contents.
fn listing(folder: &Path) -> BTreeMap<Vec<u8>, (char, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(path) = folders.pop() {
        for entry in fs::read_dir(&path).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().as_os_str().as_bytes();
            let is_program = || fs::metadata(&path).unwrap().permissions().mode() & 0o100 != 0;
            let what = if path.is_symlink() {
                let to = fs::read_link(&path).unwrap();
                ('l', to.as_os_str().as_bytes().to_vec())
            } else if path.is_dir() {
                ('d', Vec::new())
            } else {
                let kind = if is_program() { 'x' } else { 'f' };
                (kind, fs::read(&path).unwrap())
            };
            found.insert(name.to_vec(), what);
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            }
        }
    }
    found
}

/// What goes there and comes back is the same, octet for octet, also over what is there already.
fn there_and_back(software: Software) {
    let setup = Setup::start(software);
    let (here, there) = (TempDir::new().unwrap(), shared_folder());
    let source = here.path().join("tree");
    tree(&source);
    symlink("deep/plain", source.join("link")).unwrap();
    let expected = listing(&source);
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let target = text(there.path());
    for again in ["first", "again"] {
        setup
            .sshoal(&["put", "-r", "-p", &text(&source), &target])
            .expect(0);
        assert!(
            listing(&there.path().join("tree")) == expected,
            "{software:?}: put {again}"
        );
    }
    let changed = source.join("deep/plain");
    fs::write(&changed, "changed").unwrap();
    setup
        .sshoal(&["put", &text(&changed), &format!("{target}/tree/deep/plain")])
        .expect(0);
    let expected = listing(&source);
    assert!(
        listing(&there.path().join("tree")) == expected,
        "{software:?}: changed"
    );

    let back = here.path().join("back");
    let remote = format!("{target}/tree");
    setup
        .sshoal(&["get", "-r", "-p", &remote, &text(&back)])
        .expect(0);
    let host = back.join(setup.server.address().ip().to_string());
    assert!(listing(&host.join("tree")) == expected, "{software:?}: get");
}

/// A folder whose names come in many answers, of which several are asked for at once.
fn all_names_come(software: Software) {
    let setup = Setup::start(software);
    let (here, there) = (TempDir::new().unwrap(), shared_folder());
    let tree = there.path().join("tree");
    fs::create_dir(&tree).unwrap();
    for number in 0..3000 {
        symlink("nowhere", tree.join(number.to_string())).unwrap();
    }
    fs::write(tree.join("file"), "contents").unwrap();
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let back = here.path().join("back");
    setup
        .sshoal(&["get", "-r", &text(&tree), &text(&back)])
        .expect(0);
    let host = back.join(setup.server.address().ip().to_string());
    assert!(
        listing(&host.join("tree")) == listing(&tree),
        "{software:?}"
    );
}

fn does_all(software: Software) {
    there_and_back(software);
    all_names_come(software);
}

#[test]
fn openssh_internal_sftp() {
    does_all(Software::OpenSsh);
}

#[test]
fn dropbear_with_openssh_sftp_server() {
    does_all(Software::Dropbear);
}

#[test]
fn asyncssh() {
    does_all(Software::Asyncssh);
}

#[test]
fn go_pkg_sftp() {
    does_all(Software::Go);
}
