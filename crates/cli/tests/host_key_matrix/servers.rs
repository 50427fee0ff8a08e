//! The servers of the table: one with a plain key, the others with a certificate each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sshoal_testbed::sshd::key_files::{KeyType, generate};
use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use tempfile::TempDir;

use crate::support::Shoal;
use crate::table::{Case, Which};

pub(crate) struct Server {
    pub(crate) shoal: Shoal<RealSshd>,
    /// Type and key of its only host key.
    key: String,
    files: TempDir,
}

impl Server {
    /// With the certificate that `ssh-keygen` makes with these arguments, if any.
    fn start(authority: &Path, certificate: Option<&[&str]>) -> Server {
        let files = tempfile::tempdir().unwrap();
        let key = files.path().join("host");
        generate(&key, KeyType::Ed25519, "").unwrap();
        let mut spec = SshdSpec::new(1).line(format!("HostKey {}", key.display()));
        spec.host_keys = Vec::new();
        if let Some(arguments) = certificate {
            keygen(&["-h", "-I", "host", "-z", "7", "-s"], |command| {
                command.arg(authority).args(arguments).arg(public(&key));
            });
            spec = spec.line(format!("HostCertificate {}-cert.pub", key.display()));
        }
        Server {
            shoal: Shoal::real(&spec),
            key: text(&key),
            files,
        }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }
}

/// All servers, and keys that known_hosts lines are made of.
pub(crate) struct Servers {
    plain: Server,
    certified: Server,
    wrong_principal: Server,
    expired: Server,
    future: Server,
    /// Keys by the words that stand for them in the table.
    keys: Vec<(&'static str, String)>,
    files: TempDir,
}

impl Servers {
    pub(crate) fn start() -> Servers {
        let files = tempfile::tempdir().unwrap();
        let path = |name: &str| files.path().join(name);
        let kinds = [
            ("AUTHORITY", KeyType::EcdsaNistP256),
            ("OTHER", KeyType::Ed25519),
            ("ECDSA", KeyType::EcdsaNistP256),
        ];
        for (name, kind) in kinds {
            generate(&path(name), kind, "").unwrap();
        }
        let authority = path("AUTHORITY");
        let start = |arguments: &[&str]| Server::start(&authority, Some(arguments));
        let mine = "127.2.0.1,web1.example.com";
        let servers = Servers {
            plain: Server::start(&authority, None),
            certified: start(&["-n", mine]),
            wrong_principal: start(&["-n", "127.2.0.9,web2.example.com"]),
            expired: start(&["-n", mine, "-V", "20200101:20210101"]),
            future: start(&["-n", mine, "-V", "20980101:20990101"]),
            keys: kinds.map(|(name, _)| (name, text(&path(name)))).into(),
            files,
        };
        servers.make_revocations();
        servers
    }

    pub(crate) fn get(&self, which: Which) -> &Server {
        match which {
            Which::Plain => &self.plain,
            Which::Certified => &self.certified,
            Which::WrongPrincipal => &self.wrong_principal,
            Which::Expired => &self.expired,
            Which::Future => &self.future,
        }
    }

    /// Lists of revoked keys for each server: of its own key, of the authority, of another key; as text and as KRLs.
    fn make_revocations(&self) {
        for server in [&self.plain, &self.certified] {
            let own = public(&server.file("host"));
            let authority = public(&self.files.path().join("AUTHORITY"));
            let other = public(&self.files.path().join("OTHER"));
            for (name, key) in [("own", &own), ("authority", &authority), ("other", &other)] {
                fs::copy(key, server.file(&format!("{name}.list"))).unwrap();
                keygen(&["-k", "-f"], |command| {
                    command.arg(server.file(&format!("{name}.krl"))).arg(key);
                });
            }
            fs::write(server.file("serial"), "serial: 7\n").unwrap();
            keygen(&["-k", "-f"], |command| {
                let krl = server.file("serial.krl");
                command
                    .arg(krl)
                    .arg("-s")
                    .arg(&authority)
                    .arg(server.file("serial"));
            });
        }
    }

    /// Puts names, keys and files in place of the words that stand for them.
    pub(crate) fn filled_in(&self, case: &Case, text: &str) -> String {
        let server = self.get(case.server);
        let address = server.shoal.hosts.addresses()[0];
        let (ip, port) = (address.ip().to_string(), address.port().to_string());
        let mut filled = text
            .replace("HOST", &format!("[{ip}]:{port}"))
            .replace("ADDRESS", &ip)
            .replace("PORT", &port)
            .replace("FILES", server.files.path().to_str().unwrap())
            .replace("KEY", &server.key);
        for (name, key) in &self.keys {
            filled = filled.replace(name, key);
        }
        match case.is_hashed && text == case.known {
            true => hashed(&filled),
            false => filled,
        }
    }
}

fn hashed(lines: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("known_hosts");
    fs::write(&path, lines).unwrap();
    keygen(&["-H", "-f"], |command| {
        command.arg(&path);
    });
    fs::read_to_string(path).unwrap()
}

fn public(key: &Path) -> PathBuf {
    key.with_extension("pub")
}

/// Type and key of a public key file.
fn text(key: &Path) -> String {
    let text = fs::read_to_string(public(key)).unwrap();
    let words: Vec<&str> = text.split_whitespace().take(2).collect();
    words.join(" ")
}

fn keygen(arguments: &[&str], more: impl FnOnce(&mut Command)) {
    let mut command = Command::new("ssh-keygen");
    command.arg("-q").args(arguments);
    more(&mut command);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
}
