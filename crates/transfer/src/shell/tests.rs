//! A host's shell for tests, as hosts have them: dash, bash, BusyBox'.

#![allow(clippy::unwrap_used)]

mod answers;
mod files;
mod names;

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
