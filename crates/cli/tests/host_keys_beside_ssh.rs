//! The same host keys, known in the same ways, shown to ssh and to `sshoal run` by the same sshd: both accept, or both
//! refuse.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sshoal_testbed::sshd::key_files::{KeyType, generate};
use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::Shoal;
use tempfile::TempDir;

/// The name of the hosts below, which all listen on its address.
const NAME: &str = "localhost";

/// How the host's certificate is made.
#[derive(Clone, Copy)]
struct Signed {
    principal: &'static str,
    validity: &'static str,
}

const GOOD: Signed = Signed {
    principal: NAME,
    validity: "always:forever",
};

/// A host whose key is HOST, and two keys more: OTHER and the authority CA.
struct Host {
    shoal: Shoal<RealSshd>,
    dir: TempDir,
    port: u16,
}

impl Host {
    fn new(certificate: Option<Signed>) -> Host {
        let dir = tempfile::tempdir().unwrap();
        for name in ["HOST", "OTHER", "CA"] {
            generate(&dir.path().join(name), KeyType::Ed25519, "").unwrap();
        }
        let key = dir.path().join("HOST");
        let mut spec = SshdSpec::new(1).line(format!("HostKey {}", key.display()));
        // The first host is at 127.0.0.1.
        spec.base = [127, 0, 0, 0].into();
        if let Some(signed) = certificate {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-h", "-I", "host", "-n", signed.principal]);
            keygen.args(["-V", signed.validity, "-s"]);
            keygen
                .arg(dir.path().join("CA"))
                .arg(key.with_extension("pub"));
            assert!(keygen.status().unwrap().success());
            spec = spec.line(format!("HostCertificate {}-cert.pub", key.display()));
        }
        let shoal = Shoal::real(&spec);
        let port = shoal.hosts.addresses()[0].port();
        Host { shoal, dir, port }
    }

    /// Type and key of one of the keys.
    fn public(&self, name: &str) -> String {
        let text = fs::read_to_string(self.dir.path().join(name).with_extension("pub")).unwrap();
        text.split(' ').take(2).collect::<Vec<_>>().join(" ")
    }

    /// A known_hosts file, in which NAME and ADDRESS, HOST, OTHER and CA are filled in.
    fn known_hosts(&self, template: &str) -> PathBuf {
        let mut text = template
            .replace("NAME", &format!("[{NAME}]:{}", self.port))
            .replace("ADDRESS", &format!("[127.0.0.1]:{}", self.port));
        for key in ["HOST", "OTHER", "CA"] {
            text = text.replace(&format!(" {key}\n"), &format!(" {}\n", self.public(key)));
        }
        let path = self.dir.path().join("known_hosts");
        fs::write(&path, text).unwrap();
        path
    }

    fn options(&self, known_hosts: &Path) -> Vec<String> {
        vec![
            "-o".to_owned(),
            format!("UserKnownHostsFile={}", known_hosts.display()),
            "-o".to_owned(),
            format!("Port={}", self.port),
        ]
    }

    fn is_accepted_by_ssh(&self, known_hosts: &Path) -> bool {
        let mut ssh = self.shoal.user.command("ssh");
        ssh.args(["-F", &self.shoal.file("ssh_config")])
            .args(self.options(known_hosts))
            .args([NAME, "true"]);
        let output = ssh.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let is_refused = said.contains("Host key verification failed");
        assert_ne!(output.status.success(), is_refused, "{said}");
        !is_refused
    }

    /// The kind of failure of `sshoal run`, if it refuses.
    fn refused_by_us(&self, known_hosts: &Path) -> Option<String> {
        let options = self.options(known_hosts);
        let mut arguments: Vec<&str> = options.iter().map(String::as_str).collect();
        arguments.extend(["--json", "true"]);
        let record = self
            .shoal
            .run_on(NAME, &arguments)
            .records()
            .hosts
            .remove(0);
        (!record.is_ok()).then(|| record.failure().to_owned())
    }

    #[track_caller]
    fn check(&self, template: &str, refused: Option<&str>) {
        let known_hosts = self.known_hosts(template);
        let is_accepted = self.is_accepted_by_ssh(&known_hosts);
        assert_eq!(is_accepted, refused.is_none(), "ssh: {template}");
        let ours = self.refused_by_us(&known_hosts);
        assert_eq!(ours.as_deref(), refused, "sshoal: {template}");
    }
}

const UNKNOWN: Option<&str> = Some("host-key-unknown");
const CHANGED: Option<&str> = Some("host-key-changed");
const REVOKED: Option<&str> = Some("host-key-revoked");

#[test]
fn keys_are_known_unknown_changed_and_revoked_as_for_ssh() {
    let host = Host::new(None);
    host.check("NAME HOST\n", None);
    host.check("", UNKNOWN);
    host.check("NAME OTHER\n", CHANGED);
    host.check("NAME OTHER\nNAME HOST\n", None);
    host.check("NAME HOST\n@revoked NAME HOST\n", REVOKED);
    host.check("NAME HOST\n@revoked * HOST\n", REVOKED);
    host.check("NAME HOST\n@revoked * OTHER\n", None);
    // Known for its address alone; by its bare name; at another port.
    host.check("ADDRESS HOST\n", UNKNOWN);
    host.check("127.0.0.1 HOST\n", UNKNOWN);
    host.check(&format!("{NAME} HOST\n"), None);
    host.check(&format!("{NAME} OTHER\n"), UNKNOWN);
    host.check(&format!("[{NAME}]:1 HOST\n"), UNKNOWN);
    host.check("@cert-authority NAME HOST\n", UNKNOWN);
}

#[test]
fn two_ports_of_one_name_are_two_hosts_as_for_ssh() {
    let (one, other) = (Host::new(None), Host::new(None));
    let line = |port_of: &Host, key_of: &Host| {
        format!("[{NAME}]:{} {}\n", port_of.port, key_of.public("HOST"))
    };
    let right = line(&one, &one) + &line(&other, &other);
    let swapped = line(&one, &other) + &line(&other, &one);
    for host in [&one, &other] {
        host.check(&right, None);
        host.check(&swapped, CHANGED);
    }
    other.check(&line(&one, &one), UNKNOWN);
}

#[test]
fn certificates_are_accepted_and_refused_as_by_ssh() {
    let good = Host::new(Some(GOOD));
    // As OpenSSH looks for them: an authority of the bare name counts at every port.
    good.check("@cert-authority NAME CA\n", None);
    good.check(&format!("@cert-authority {NAME} CA\n"), None);
    good.check("@cert-authority * CA\n", None);
    good.check("@cert-authority elsewhere CA\n", UNKNOWN);
    good.check("@cert-authority NAME OTHER\n", UNKNOWN);
    good.check("NAME CA\n", CHANGED);
    good.check("@cert-authority NAME CA\n@revoked * CA\n", REVOKED);
    good.check("@cert-authority NAME CA\n@revoked * HOST\n", REVOKED);
    good.check("@cert-authority NAME CA\nNAME OTHER\n", None);

    let elsewhere = Signed {
        principal: "elsewhere",
        ..GOOD
    };
    let expired = Signed {
        validity: "20000101:20010101",
        ..GOOD
    };
    for fault in [elsewhere, expired] {
        let host = Host::new(Some(fault));
        host.check("@cert-authority NAME CA\n", UNKNOWN);
        // Its plain key may be known all the same, or be another one.
        host.check("@cert-authority NAME CA\nNAME HOST\n", None);
        host.check("@cert-authority NAME CA\nNAME OTHER\n", CHANGED);
    }
}
