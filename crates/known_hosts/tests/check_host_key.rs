//! Against ssh itself: which host keys it accepts, shown by an sshd that it starts as its
//! `ProxyCommand`. Nothing listens on any port, and nobody is logged in: a host key is accepted
//! if ssh gets as far as being denied.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sshoal_known_hosts::{Certificate, HostName, KnownHosts, Presented, Query, Verdict};
use tempfile::TempDir;

const SSHD: &str = "/usr/sbin/sshd";

/// A host key, another one, one of another type, an authority, and one that nobody trusts.
const KEYS: [(&str, &str); 5] = [
    ("HOST", "ed25519"),
    ("OTHER", "ed25519"),
    ("ECDSA", "ecdsa"),
    ("CA", "ed25519"),
    ("STRANGER", "ed25519"),
];

struct Oracle {
    directory: TempDir,
}

/// A known_hosts file in which the names of keys stand for them, and the host it is asked about.
struct Case {
    known_hosts: &'static str,
    name: &'static str,
    port: u16,
    /// `HostKeyAlias`
    alias: Option<&'static str>,
    certificate: Option<Signed>,
    /// What ssh does; sshoal does the same, unless `stricter`.
    accepted: bool,
    stricter: bool,
}

/// How a host's certificate was made.
#[derive(Clone, Copy)]
struct Signed {
    by: &'static str,
    principals: &'static [&'static str],
    expired: bool,
}

impl Oracle {
    fn new() -> Oracle {
        let oracle = Oracle {
            directory: tempfile::tempdir().unwrap(),
        };
        for (name, kind) in KEYS {
            run(Command::new("ssh-keygen")
                .args(["-q", "-N", "", "-C", "", "-t", kind, "-f"])
                .arg(oracle.path(name)));
        }
        // Where root starts sshd, it wants this folder, which distributions make at boot.
        let _ = fs::create_dir_all("/run/sshd");
        oracle
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    /// Type and key of a public key file.
    fn public(&self, name: &str) -> String {
        let line = fs::read_to_string(self.path(&format!("{name}.pub"))).unwrap();
        line.trim().to_string()
    }

    fn blob(&self, name: &str) -> Vec<u8> {
        STANDARD
            .decode(self.public(name).split(' ').nth(1).unwrap())
            .unwrap()
    }

    fn known_hosts(&self, template: &str) -> String {
        KEYS.iter().fold(template.to_string(), |text, (name, _)| {
            text.replace(&format!(" {name}"), &format!(" {}", self.public(name)))
        })
    }

    fn sign(&self, signed: Signed) {
        let validity = if signed.expired {
            "19990101:20000101"
        } else {
            "always:forever"
        };
        let mut command = Command::new("ssh-keygen");
        command
            .args(["-q", "-h", "-I", "test", "-V", validity, "-s"])
            .arg(self.path(signed.by));
        if !signed.principals.is_empty() {
            command.args(["-n", &signed.principals.join(",")]);
        }
        run(command.arg(self.path("HOST.pub")));
    }

    /// Whether ssh accepts the host key of an sshd with the key HOST.
    fn accepts(&self, case: &Case, known_hosts: &Path) -> bool {
        let config = self.path("sshd_config");
        let mut text = format!("HostKey {}\nUsePAM no\n", self.path("HOST").display());
        if case.certificate.is_some() {
            text += &format!("HostCertificate {}\n", self.path("HOST-cert.pub").display());
        }
        fs::write(&config, text).unwrap();
        let proxy = format!("ProxyCommand={SSHD} -i -f {}", config.display());
        let files = format!("UserKnownHostsFile={}", known_hosts.display());
        let mut command = Command::new("ssh");
        command.args([
            "-F",
            "none",
            "-p",
            &case.port.to_string(),
            "-l",
            "nobody",
            "-T",
        ]);
        for option in [
            proxy.as_str(),
            &files,
            "GlobalKnownHostsFile=none",
            "StrictHostKeyChecking=yes",
            "PreferredAuthentications=none",
            "KexAlgorithms=curve25519-sha256",
            "BatchMode=yes",
        ] {
            command.args(["-o", option]);
        }
        if let Some(alias) = case.alias {
            command.args(["-o", &format!("HostKeyAlias={alias}")]);
        }
        let output = command
            .arg(case.name)
            .arg("true")
            .output()
            .expect("ssh is installed");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let refused = said.contains("Host key verification failed");
        assert!(
            refused != said.contains("Permission denied"),
            "{}: {said}",
            case.known_hosts
        );
        !refused
    }

    fn verdict(&self, case: &Case, known_hosts: &str) -> Verdict {
        let known = KnownHosts::parse(vec![("known_hosts".into(), known_hosts.into())]);
        let named = HostName::with_port(case.name, case.port);
        let names = [case.alias.map_or(named, HostName::new)];
        let query = Query {
            names: &names,
            now: 1_900_000_000,
        };
        let key = self.blob("HOST");
        let Some(signed) = case.certificate else {
            return known.judge(&query, &Presented::Key(&key));
        };
        let authority = self.blob(signed.by);
        let certificate = Certificate {
            key: &key,
            authority: &authority,
            principals: signed.principals,
            valid_after: 0,
            valid_before: if signed.expired {
                946_684_800
            } else {
                u64::MAX
            },
            refused: None,
        };
        known.judge(&query, &Presented::Certificate(certificate))
    }
}

fn run(command: &mut Command) {
    let status = command
        .status()
        .expect("ssh-keygen is installed (openssh-client)");
    assert!(status.success(), "{command:?}");
}

fn plain(known_hosts: &'static str, name: &'static str, port: u16, accepted: bool) -> Case {
    Case {
        known_hosts,
        name,
        port,
        alias: None,
        certificate: None,
        accepted,
        stricter: false,
    }
}

fn stricter(known_hosts: &'static str) -> Case {
    Case {
        stricter: true,
        ..plain(known_hosts, "h", 22, true)
    }
}

fn aliased(known_hosts: &'static str, alias: &'static str, accepted: bool) -> Case {
    Case {
        alias: Some(alias),
        ..plain(known_hosts, "h", 2222, accepted)
    }
}

fn signed(known_hosts: &'static str, name: &'static str, signed: Signed, accepted: bool) -> Case {
    Case {
        certificate: Some(signed),
        ..plain(known_hosts, name, 22, accepted)
    }
}

fn cases() -> Vec<Case> {
    let good = Signed {
        by: "CA",
        principals: &["h", "other"],
        expired: false,
    };
    let expired = Signed {
        expired: true,
        ..good
    };
    let strange = Signed {
        by: "STRANGER",
        ..good
    };
    vec![
        plain("h HOST\n", "h", 22, true),
        plain("H HOST\n", "h", 22, true),
        plain("h HOST comment\r\n", "h", 22, true),
        plain("", "h", 22, false),
        plain("x HOST\n", "h", 22, false),
        plain("h OTHER\n", "h", 22, false),
        plain("h ECDSA\n", "h", 22, false),
        plain("h OTHER\nh HOST\n", "h", 22, true),
        plain("h* HOST\n", "host", 22, true),
        plain("h*,!host HOST\n", "host", 22, false),
        plain("?,a HOST\n", "h", 22, true),
        // Ports.
        plain("[h]:2222 HOST\n", "h", 2222, true),
        plain("[h]:2222 HOST\n", "h", 22, false),
        plain("h HOST\n", "h", 2222, true),
        plain("[h]:2222 OTHER\nh HOST\n", "h", 2222, false),
        plain("[h]:2222 HOST\nh OTHER\n", "h", 2222, true),
        plain("h OTHER\n", "h", 2222, false),
        // An alias takes no port, and the name does not count beside it.
        aliased("alias HOST\n", "alias", true),
        aliased("alias HOST\n", "ALIAS", true),
        aliased("al* HOST\n", "alias", true),
        aliased("[alias]:2222 HOST\n", "alias", false),
        aliased("[h]:2222 HOST\nh HOST\n", "alias", false),
        aliased("[h]:2222 OTHER\nalias HOST\n", "alias", true),
        aliased("@revoked alias HOST\nalias HOST\n", "alias", false),
        Case {
            certificate: Some(Signed {
                principals: &["alias"],
                ..good
            }),
            ..aliased("@cert-authority alias CA\n", "alias", true)
        },
        Case {
            certificate: Some(good),
            ..aliased("@cert-authority alias CA\n", "alias", false)
        },
        // Revocations.
        plain("@revoked * HOST\nh HOST\n", "h", 22, false),
        plain("h HOST\n@revoked h HOST\n", "h", 22, false),
        plain("h HOST\n@revoked x HOST\n", "h", 22, true),
        plain("h HOST\n@revoked * OTHER\n", "h", 22, true),
        plain("@revoked h HOST\n[h]:2222 HOST\n", "h", 2222, true),
        plain("@cert-authority h HOST\n", "h", 22, false),
        plain("h HOST\n@revoked * ssh-rsa\n", "h", 22, true),
        // Damaged lines.
        plain("h ssh-ed25519 AAAA\nh HOST\n", "h", 22, true),
        plain("h\nbroken\n@what is this\nh HOST\n", "h", 22, true),
        plain("h,HOST\n", "h", 22, false),
        stricter("h HOST\n@Revoked h HOST\n"),
        stricter("h HOST\n@revoked @revoked h HOST\n"),
        stricter("h HOST\n@revoked HOST\n"),
        stricter("h HOST\n@revoked\th HOST\n"),
        stricter("h HOST\n@revoked h ssh-ed25519\n"),
        stricter("h HOST\n@revoked h ssh-ed25519 AAAA\n"),
        // Certificates.
        signed("@cert-authority h CA\n", "h", good, true),
        signed(
            "@cert-authority *.example.com CA\n",
            "a.example.com",
            good,
            false,
        ),
        signed("@cert-authority * CA\n", "x", good, false),
        signed("@cert-authority h CA\n", "h", expired, false),
        signed("@cert-authority h CA\n", "h", strange, false),
        signed("@cert-authority x CA\n", "h", good, false),
        signed("h CA\n", "h", good, false),
        signed("@cert-authority h CA\n@revoked h CA\n", "h", good, false),
        signed("@cert-authority h CA\n@revoked h HOST\n", "h", good, false),
        signed("@cert-authority h CA\nh HOST\n", "h", expired, true),
        signed("@cert-authority h CA\nh OTHER\n", "h", good, true),
        signed("@cert-authority h CA\nh OTHER\n", "h", expired, false),
        signed("h HOST\n", "h", strange, true),
        signed(
            "@cert-authority h STRANGER\n@cert-authority h CA\n",
            "h",
            good,
            true,
        ),
        signed("@cert-authority\th CA\n", "h", good, false),
    ]
}

#[test]
fn keys_are_accepted_as_ssh_accepts_them() {
    let oracle = Oracle::new();
    for case in cases() {
        let known_hosts = oracle.known_hosts(case.known_hosts);
        let file = oracle.path("known_hosts");
        fs::write(&file, &known_hosts).unwrap();
        if let Some(signed) = case.certificate {
            oracle.sign(signed);
        }
        let said = format!(
            "{:?} for {} on port {}",
            case.known_hosts, case.name, case.port
        );
        assert_eq!(oracle.accepts(&case, &file), case.accepted, "ssh: {said}");
        let trusted = matches!(oracle.verdict(&case, &known_hosts), Verdict::Trusted { .. });
        assert_eq!(trusted, case.accepted && !case.stricter, "sshoal: {said}");
    }
}
