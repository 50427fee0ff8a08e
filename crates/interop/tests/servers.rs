//! The fixtures themselves, with OpenSSH's client as the judge: what a later test of sshoal relies on holds for every
//! server, whoever wrote it.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use sshoal_interop::{KeyType, Options, Server, Software, StartError, generate_key};
use tempfile::TempDir;

/// Enough for several windows' worth in each direction.
const LENGTH: usize = 8 << 20;

/// A server, and a directory with the files of a client that may log in.
struct Setup {
    server: Server,
    client: TempDir,
}

fn start(software: Software, mut options: Options) -> Setup {
    let client = TempDir::new().unwrap();
    let key = generate_key(client.path(), "user", KeyType::Ed25519).unwrap();
    options.authorized_keys += &fs::read_to_string(key.with_extension("pub")).unwrap();
    let server = Server::start(software, &options).unwrap_or_else(|error| panic!("{error}"));
    let identity = fs::read_to_string(&key).unwrap();
    server.client_files(identity).write(client.path()).unwrap();
    Setup { server, client }
}

impl Setup {
    fn ssh(&self, options: &[&str], command: &str, stdin: &[u8]) -> Output {
        let mut child = Command::new("ssh")
            .arg("-F")
            .arg(self.client.path().join("ssh_config"))
            .args(options)
            .arg(self.server.address().ip().to_string())
            .arg(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pipe = child.stdin.take().unwrap();
        std::thread::scope(|scope| {
            // A command that does not read its input leaves a broken pipe, which is no failure.
            scope.spawn(move || drop(pipe.write_all(stdin)));
            child.wait_with_output().unwrap()
        })
    }

    #[track_caller]
    fn expect(&self, output: &Output, status: i32, stdout: &[u8], stderr: &str) {
        let said = String::from_utf8_lossy(&output.stderr);
        let log = self.server.log();
        assert_eq!(
            output.status.code(),
            Some(status),
            "ssh said: {said}\nthe server said: {log}"
        );
        assert!(
            output.stdout == stdout,
            "{} bytes of output, ssh said: {said}",
            output.stdout.len()
        );
        assert_eq!(said, stderr);
    }
}

fn one_host_key() -> Options {
    Options {
        host_keys: vec![KeyType::Ed25519],
        ..Options::default()
    }
}

/// Bytes that repeat only after 2^32 of them, so that a lost or doubled packet shows.
fn pattern(length: usize) -> Vec<u8> {
    (0u32..).flat_map(u32::to_be_bytes).take(length).collect()
}

fn commands_run(software: Software) {
    let setup = start(software, one_host_key());

    let output = setup.ssh(&[], "echo out; echo err >&2; exit 7", b"");
    setup.expect(&output, 7, b"out\n", "err\n");

    let data = pattern(LENGTH);
    let output = setup.ssh(&[], "cat", &data);
    setup.expect(&output, 0, &data, "");

    let output = setup.ssh(&[], "sha256sum", &data);
    setup.expect(&output, 0, format!("{}  -\n", sha256(&data)).as_bytes(), "");

    let output = setup.ssh(&[], &format!("yes 0123456789abcde | head -c {LENGTH}"), b"");
    setup.expect(&output, 0, &b"0123456789abcde\n".repeat(LENGTH / 16), "");

    // By a signal: ssh itself then exits with 255 and says nothing.
    let output = setup.ssh(&[], "kill -TERM $$", b"");
    assert_eq!(output.status.code(), Some(255), "{output:?}");
}

fn sha256(data: &[u8]) -> String {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("data");
    fs::write(&file, data).unwrap();
    let output = Command::new("sha256sum")
        .stdin(fs::File::open(&file).unwrap())
        .output()
        .unwrap();
    String::from_utf8(output.stdout)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .to_owned()
}

fn every_host_key_is_offered_and_true(software: Software) {
    // Dropbear takes at most four (MAX_HOSTKEYS).
    for host_keys in KeyType::ALL.chunks(3) {
        let options = Options {
            host_keys: host_keys.to_vec(),
            ..Options::default()
        };
        let setup = start(software, options);
        let offered = &setup.server.offers().server_host_key_algorithms;
        for algorithm in host_keys
            .iter()
            .flat_map(|kind| kind.signature_algorithms())
        {
            // Debian 12's Dropbear signs RSA with SHA-256 only.
            if software == Software::Dropbear && *algorithm == "rsa-sha2-512" {
                continue;
            }
            assert!(
                offered.iter().any(|name| name == algorithm),
                "{algorithm} is not among {offered:?}"
            );
            let choice = format!("HostKeyAlgorithms={algorithm}");
            let output = setup.ssh(&["-o", &choice], "true", b"");
            setup.expect(&output, 0, b"", "");
        }
    }
}

fn every_user_key_logs_in(software: Software) {
    let dir = TempDir::new().unwrap();
    let keys = KeyType::ALL.map(|kind| generate_key(dir.path(), kind.name(), kind).unwrap());
    let public = |key: &PathBuf| fs::read_to_string(key.with_extension("pub")).unwrap();
    let options = Options {
        host_keys: vec![KeyType::Ed25519],
        authorized_keys: keys.iter().map(public).collect(),
        ..Options::default()
    };
    let setup = start(software, options);
    for key in keys {
        replace_identity(setup.client.path(), &key);
        let output = setup.ssh(&[], "true", b"");
        setup.expect(&output, 0, b"", "");
    }
}

fn a_strange_key_is_refused(software: Software) {
    let setup = start(software, one_host_key());
    let other = TempDir::new().unwrap();
    let key = generate_key(other.path(), "other", KeyType::Ed25519).unwrap();
    replace_identity(setup.client.path(), &key);
    let output = setup.ssh(&[], "echo no", b"");
    assert_eq!(output.status.code(), Some(255));
    assert_eq!(output.stdout, b"");
}

fn replace_identity(client: &Path, key: &Path) {
    fs::copy(key, client.join("id_ed25519")).unwrap();
}

fn algorithms_and_rekeying_can_be_chosen(software: Software) {
    let names = |name: &str| vec![name.to_owned()];
    let setup = start(
        software,
        Options {
            host_keys: vec![KeyType::Ed25519],
            kex_algorithms: names("ecdh-sha2-nistp384"),
            ciphers: names("aes256-ctr"),
            macs: names("hmac-sha2-512-etm@openssh.com"),
            rekey_bytes: Some(1 << 20),
            ..Options::default()
        },
    );
    let offers = setup.server.offers();
    assert_eq!(offers.kex_algorithms, ["ecdh-sha2-nistp384"]);
    assert_eq!(offers.encryption_algorithms, ["aes256-ctr"]);
    assert_eq!(offers.mac_algorithms, ["hmac-sha2-512-etm@openssh.com"]);
    assert_eq!(offers.server_host_key_algorithms, ["ssh-ed25519"]);

    let data = pattern(LENGTH);
    let output = setup.ssh(&["-v"], "cat", &data);
    assert!(output.stdout == data);
    let log = String::from_utf8_lossy(&output.stderr);
    // ssh -v says so at each key exchange: the first, and at least two more for 8 MiB in each direction.
    let exchanges = log.matches("SSH2_MSG_KEXINIT received").count();
    assert!(exchanges >= 3, "{exchanges} key exchanges:\n{log}");
}

macro_rules! for_each_software {
    ($($module:ident $software:ident: $($test:ident)*;)*) => {
        $(mod $module {
            $(#[test]
            fn $test() {
                super::$test(sshoal_interop::Software::$software);
            })*
        })*
    };
}

for_each_software! {
    openssh OpenSsh: commands_run every_host_key_is_offered_and_true every_user_key_logs_in a_strange_key_is_refused algorithms_and_rekeying_can_be_chosen;
    dropbear Dropbear: commands_run every_host_key_is_offered_and_true every_user_key_logs_in a_strange_key_is_refused;
    asyncssh Asyncssh: commands_run every_host_key_is_offered_and_true every_user_key_logs_in a_strange_key_is_refused algorithms_and_rekeying_can_be_chosen;
    go Go: commands_run every_host_key_is_offered_and_true every_user_key_logs_in a_strange_key_is_refused algorithms_and_rekeying_can_be_chosen;
    russh Russh: commands_run every_host_key_is_offered_and_true every_user_key_logs_in a_strange_key_is_refused algorithms_and_rekeying_can_be_chosen;
}

#[test]
fn dropbear_says_that_it_takes_no_algorithms() {
    let options = Options {
        rekey_bytes: Some(1 << 20),
        ..one_host_key()
    };
    let error = Server::start(Software::Dropbear, &options).unwrap_err();
    assert!(
        matches!(error, StartError::NotConfigurable(Software::Dropbear)),
        "{error}"
    );
}
