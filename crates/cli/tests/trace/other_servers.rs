//! Logins to a server of another make: Dropbear.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};

use serde_json::Value;
use sshoal_interop::{KeyType, Options, Server, Software, generate_key};
use sshoal_testbed::slow::Injection;
use tempfile::TempDir;

use crate::logins::{Host, check_sum, processes};
use crate::may_trace;
use crate::refusals::followed_without_root;
use crate::support::program::Running;
use crate::support::{User, wait_until};

/// A Dropbear in a slow host's mounts.
struct Dropbear {
    child: Child,
    config: String,
    _folder: TempDir,
}

impl Dropbear {
    fn start(host: &Host) -> Dropbear {
        let (own, address) = host.client();
        let folder = TempDir::new().unwrap();
        let key = folder.path().join("key");
        let converted = Command::new("dropbearconvert")
            .args(["openssh", "dropbear"])
            .args([&own.join("host_key"), &key])
            .output()
            .unwrap();
        assert!(converted.status.success(), "{converted:?}");
        // The key where the host sees it, and a port that nobody has.
        let there = host.path("/run/dropbear_key");
        fs::copy(&key, there).unwrap();
        let free = TcpListener::bind((*address.ip(), 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let listens = format!("{}:{port}", address.ip());
        let words = [
            "dropbear",
            "-F",
            "-E",
            "-s",
            "-P",
            "/run/dropbear.pid",
            "-p",
        ];
        let rest = [listens.as_str(), "-r", "/run/dropbear_key"];
        let child = host.run(&[&words[..], &rest].concat());
        wait_until("Dropbear listens", || TcpStream::connect(&listens).is_ok());
        let replace = |file: &str| {
            let text = fs::read_to_string(own.join(file)).unwrap();
            let text = text
                .replace(&format!("Port {}", address.port()), &format!("Port {port}"))
                .replace(&format!("]:{}", address.port()), &format!("]:{port}"))
                .replace(
                    &own.join("known_hosts").display().to_string(),
                    &folder.path().join("known_hosts").display().to_string(),
                );
            let path = folder.path().join(file);
            fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        replace("known_hosts");
        Dropbear {
            child,
            config: replace("ssh_config"),
            _folder: folder,
        }
    }
}

impl Drop for Dropbear {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn measured(command: &mut Command) -> Value {
    command.args(["--trace", "--repeat", "1", "--no-ssh", "--json"]);
    let ended = Running::start(command).wait().expect(0);
    let found: Value = serde_json::from_str(&ended.stdout()).unwrap();
    let identification = found["identification"].as_str().unwrap();
    assert!(identification.contains("dropbear"), "{identification}");
    assert!(found["trace"].is_object(), "{}", found["tier_notes"]);
    found
}

#[test]
fn dropbear_is_followed_by_tracefs_where_one_becomes_root() {
    if !may_trace() {
        return;
    }
    let Some(host) = Host::start(&Injection::several("bashrc:50").unwrap()) else {
        return;
    };
    let dropbear = Dropbear::start(&host);
    let mut command = host.why(&["-F", &dropbear.config]);
    let found = measured(&mut command);
    check_sum(&found);
    assert_eq!(
        (&found["tier"], &found["trace"]["by"]),
        (&"root".into(), &"tracefs".into())
    );
    assert_eq!(found["trace"]["matched"], true);
    // Its process, and the user's shell below it.
    let all = processes(&found);
    assert!(
        all[0]["name"].as_str().unwrap().starts_with("dropbear"),
        "{all:#?}"
    );
    assert!(all.len() > 1, "{all:#?}");
}

#[test]
fn dropbear_is_followed_without_tracefs_where_one_does_not() {
    if !may_trace() {
        return;
    }
    let files = TempDir::new().unwrap();
    let key = generate_key(files.path(), "user", KeyType::Ed25519).unwrap();
    let options = Options {
        host_keys: vec![KeyType::Ed25519],
        authorized_keys: fs::read_to_string(key.with_extension("pub")).unwrap(),
        ..Options::default()
    };
    let server = Server::start(Software::Dropbear, &options).unwrap();
    let identity = fs::read_to_string(key).unwrap();
    server.client_files(identity).write(files.path()).unwrap();
    let user = User::new();
    let mut command = user.command(env!("CARGO_BIN_EXE_sshoal"));
    command
        .arg("why")
        .arg("-F")
        .arg(files.path().join("ssh_config"));
    command.arg(server.address().ip().to_string());
    let found = measured(&mut command);
    // There may be a sudo or none; without a password.
    followed_without_root(&found, "");
}
