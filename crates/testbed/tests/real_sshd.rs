//! Real servers, as the installed OpenSSH client sees them.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::{BTreeSet, HashSet};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use sshoal_testbed::sshd::account::password_account;
use sshoal_testbed::sshd::key_files::{Certified, KeyType, certify, generate};
use sshoal_testbed::sshd::{Layout, RealSshd, SshdError, SshdSpec};
use support::{DEADLINE, RawClient, askpass, ssh, ssh_command, text};
use tempfile::TempDir;

/// Starts servers at addresses that no other test here uses, and writes the clients' files.
fn start(network: u8, mut spec: SshdSpec) -> (RealSshd, TempDir) {
    spec.base = Ipv4Addr::new(127, 3, network, 0);
    let server = RealSshd::start(&spec).unwrap();
    let dir = tempfile::tempdir().unwrap();
    server.client_files().unwrap().write(dir.path()).unwrap();
    (server, dir)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn separate_servers_have_their_own_keys_and_accept_the_client() {
    let (server, dir) = start(0, SshdSpec::new(3));
    for address in server.addresses() {
        let output = ssh(dir.path(), address, &["echo $SSH_CONNECTION; exit 3"]);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let expected = format!(" {} {}\n", address.ip(), address.port());
        assert!(text(&output.stdout).ends_with(&expected));
    }
    let known_hosts = server.known_hosts().unwrap();
    let keys: BTreeSet<_> = known_hosts.lines().map(|l| l.split(' ').nth(2)).collect();
    assert_eq!(keys.len(), 3);
    assert_eq!(server.logins(), 3);
    assert!(server.log(1).contains("Accepted publickey for"));
}

#[test]
fn twenty_addresses_can_share_servers_and_keys() {
    let spec = SshdSpec {
        layout: Layout::Shared,
        ..SshdSpec::new(20)
    };
    let (server, dir) = start(1, spec);
    let pids: HashSet<_> = (0..20).map(|host| server.pid(host)).collect();
    assert_eq!(pids.len(), 2, "sixteen addresses a process");
    for host in [0, 15, 16, 19] {
        let output = ssh(dir.path(), &server.addresses()[host], &["true"]);
        assert!(output.status.success(), "{output:?}");
    }
    let known_hosts = server.known_hosts().unwrap();
    let keys: BTreeSet<_> = known_hosts.lines().map(|l| l.split(' ').nth(2)).collect();
    assert_eq!(keys.len(), 1);
}

#[test]
fn every_type_of_host_key_is_offered_and_known() {
    let types = [
        KeyType::Rsa2048,
        KeyType::EcdsaNistP256,
        KeyType::EcdsaNistP384,
        KeyType::EcdsaNistP521,
        KeyType::Ed25519,
    ];
    let spec = SshdSpec {
        host_keys: types.to_vec(),
        ..SshdSpec::new(1)
    };
    let (server, dir) = start(2, spec);
    for algorithm in [
        "rsa-sha2-512",
        "ecdsa-sha2-nistp256",
        "ecdsa-sha2-nistp384",
        "ecdsa-sha2-nistp521",
        "ssh-ed25519",
    ] {
        let option = format!("HostKeyAlgorithms={algorithm}");
        let output = ssh(
            dir.path(),
            &server.addresses()[0],
            &["-v", "-o", &option, "true"],
        );
        assert!(output.status.success(), "{output:?}");
        let line = format!("kex: host key algorithm: {algorithm}");
        assert!(text(&output.stderr).contains(&line));
    }
}

#[test]
fn lines_of_configuration_take_the_place_of_the_fixtures_own() {
    let spec = SshdSpec::new(1)
        .line("MaxStartups 1:100:1")
        .line("Ciphers aes256-ctr")
        .line("Match All")
        .line("ForceCommand echo forced");
    let (server, dir) = start(3, spec);
    let address = server.addresses()[0];
    let output = ssh(dir.path(), &address, &["-v", "echo asked"]);
    assert_eq!(text(&output.stdout), "forced\n");
    assert!(text(&output.stderr).contains("cipher: aes256-ctr"));

    // One connection that has not logged in is all that is let in.
    let first = TcpStream::connect(address).unwrap();
    let mut banner = String::new();
    BufReader::new(&first).read_line(&mut banner).unwrap();
    let (refusal, _) = RawClient::connect(address).read_all();
    let refusal = text(&refusal);
    assert!(
        ["Exceeded MaxStartups\r\n", "Not allowed at this time\r\n"].contains(&refusal.as_str()),
        "{refusal}"
    );
}

#[test]
fn a_configuration_that_sshd_refuses_is_reported_with_its_words() {
    let error = RealSshd::start(&SshdSpec::new(1).line("NoSuchKeyword yes")).unwrap_err();
    assert!(matches!(error, SshdError::Ended { .. }));
    assert!(error.to_string().contains("NoSuchKeyword"), "{error}");
}

#[test]
fn a_taken_port_is_reported() {
    let (server, _dir) = start(4, SshdSpec::new(1));
    let error = RealSshd::start(&SshdSpec {
        base: Ipv4Addr::new(127, 3, 4, 0),
        port: server.addresses()[0].port(),
        ..SshdSpec::new(1)
    })
    .unwrap_err();
    assert!(matches!(error, SshdError::PortTaken(_)), "{error}");
}

/// At these levels a server says that it binds, too, and not only that it could not.
#[test]
fn a_server_that_says_much_is_not_taken_for_one_without_a_port() {
    for level in ["DEBUG1", "DEBUG3"] {
        let spec = SshdSpec::new(2).line(format!("LogLevel {level}"));
        RealSshd::start(&spec).unwrap();
    }
}

#[test]
fn dropping_the_servers_ends_their_sessions_and_commands() {
    let (server, dir) = start(5, SshdSpec::new(2));
    let mut sessions: Vec<_> = server
        .addresses()
        .iter()
        .map(|address| {
            ssh_command(dir.path(), address)
                .arg("echo $$; exec sleep 1000")
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    let commands: Vec<u32> = sessions
        .iter_mut()
        .map(|session| {
            let mut line = String::new();
            let stdout = session.stdout.take().unwrap();
            BufReader::new(stdout).read_line(&mut line).unwrap();
            line.trim().parse().unwrap()
        })
        .collect();
    let running = |pid: &u32| Path::new(&format!("/proc/{pid}/cwd")).is_symlink();
    assert!(commands.iter().all(running));

    let address = server.addresses()[0];
    drop(server);
    assert!(TcpStream::connect(address).is_err());
    for mut session in sessions {
        assert_eq!(session.wait().unwrap().code(), Some(255));
    }
    let deadline = Instant::now() + DEADLINE;
    // Whoever adopted a killed command may take a moment to reap it.
    while commands.iter().any(running) {
        assert!(Instant::now() < deadline, "{commands:?} still run");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn keys_of_every_type_and_certificates_are_accepted_once_authorised() {
    let (server, dir) = start(6, SshdSpec::new(1));
    let address = server.addresses()[0];
    let login = |key: &Path, passphrase: &str| {
        ssh_command(dir.path(), &address)
            .env("SSH_ASKPASS", askpass(dir.path(), passphrase))
            .env("SSH_ASKPASS_REQUIRE", "force")
            .args(["-o", "BatchMode=no", "-o", "PasswordAuthentication=no"])
            .args([
                "-F",
                "none",
                "-l",
                server.user(),
                "-p",
                &address.port().to_string(),
            ])
            .args(["-o", "IdentitiesOnly=yes", "-i", key.to_str().unwrap()])
            .arg("-o")
            .arg(format!(
                "UserKnownHostsFile={}",
                dir.path().join("known_hosts").display()
            ))
            .arg("true")
            .output()
            .unwrap()
    };
    for (name, key_type, passphrase) in [
        ("rsa", KeyType::Rsa2048, ""),
        ("ecdsa", KeyType::EcdsaNistP384, ""),
        ("locked", KeyType::Ed25519, "open sesame"),
    ] {
        let key = dir.path().join(name);
        generate(&key, key_type, passphrase).unwrap();
        assert!(
            !login(&key, passphrase).status.success(),
            "not yet authorised"
        );
        let public = std::fs::read_to_string(key.with_extension("pub")).unwrap();
        server.authorize(&public).unwrap();
        let output = login(&key, passphrase);
        assert!(output.status.success(), "{name}: {output:?}");
    }

    let (ca, user) = (dir.path().join("ca"), dir.path().join("user"));
    generate(&ca, KeyType::Ed25519, "").unwrap();
    generate(&user, KeyType::Ed25519, "").unwrap();
    let certified = Certified {
        host: false,
        key_id: "test",
        principals: &[server.user()],
        validity: "always:forever",
    };
    let certificate = certify(&ca, &user, certified).unwrap();
    assert!(certificate.ends_with("user-cert.pub"));
    let authority = std::fs::read_to_string(ca.with_extension("pub")).unwrap();
    server
        .authorize(&format!("cert-authority {authority}"))
        .unwrap();
    assert!(login(&user, "").status.success());
    assert!(server.log(0).contains("ID test"), "{}", server.log(0));
}

#[test]
fn the_password_account_logs_in_with_its_password() {
    if !is_root() {
        // Only root can make the account, and the fixture says so.
        assert!(password_account().is_err());
        return;
    }
    let (server, dir) = start(7, SshdSpec::new(1));
    let account = password_account().unwrap();
    assert_eq!(account, password_account().unwrap(), "kept between runs");
    let login = |password: &str| {
        ssh_command(dir.path(), &server.addresses()[0])
            .env("SSH_ASKPASS", askpass(dir.path(), password))
            .env("SSH_ASKPASS_REQUIRE", "force")
            .args(["-o", "BatchMode=no", "-o", "PubkeyAuthentication=no"])
            .args([
                "-o",
                "NumberOfPasswordPrompts=1",
                "-l",
                &account.name,
                "id -un",
            ])
            .output()
            .unwrap()
    };
    let right = login(&account.password);
    assert_eq!(text(&right.stdout), "sshoal-pass\n", "{right:?}");
    assert!(!login("wrong").status.success());
}
