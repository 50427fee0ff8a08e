//! Host certificates as OpenSSH's client judges them: one that is not relied on leaves its plain key to be known.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use sshoal_testbed::addresses::host_addresses;
use sshoal_testbed::sshd::key_files::{KeyType, generate};
use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::Shoal;
use support::records::HostRecord;
use tempfile::TempDir;

/// A server that shows an ECDSA certificate of an RSA authority, and what it may be trusted by.
struct Certified {
    shoal: Shoal<RealSshd>,
    dir: TempDir,
}

impl Certified {
    /// With a certificate that `ssh-keygen` makes so, beside what all have.
    fn new(arguments: &[&str]) -> Certified {
        let spec = SshdSpec::new(1);
        let address = host_addresses(spec.base, 1).unwrap()[0];
        let dir = tempfile::tempdir().unwrap();
        let (authority, key) = (dir.path().join("authority"), dir.path().join("host"));
        generate(&authority, KeyType::Rsa2048, "").unwrap();
        generate(&key, KeyType::EcdsaNistP256, "").unwrap();
        let certify = Command::new("ssh-keygen")
            .args(["-q", "-I", "host", "-t", "rsa-sha2-256", "-s"])
            .arg(&authority)
            .args(["-n", &address.to_string()])
            .args(arguments)
            .arg(key.with_extension("pub"))
            .status();
        assert!(certify.unwrap().success());
        let spec = spec
            .line(format!("HostKey {}", key.display()))
            .line(format!("HostCertificate {}-cert.pub", key.display()));
        let shoal = Shoal::real(&spec);
        Certified { shoal, dir }
    }

    fn public(&self, name: &str) -> String {
        fs::read_to_string(self.dir.path().join(name).with_extension("pub")).unwrap()
    }

    fn name(&self) -> String {
        let address = self.shoal.hosts.addresses()[0];
        format!("[{}]:{}", address.ip(), address.port())
    }

    fn known_hosts(&self, lines: &[String]) -> PathBuf {
        let path = self.dir.path().join("known_hosts");
        fs::write(&path, lines.concat()).unwrap();
        path
    }

    fn authority_line(&self) -> String {
        format!(
            "@cert-authority {} {}",
            self.name(),
            self.public("authority")
        )
    }

    fn key_line(&self) -> String {
        format!("{} {}", self.name(), self.public("host"))
    }

    fn record(&self, known: &[String], options: &[&str]) -> HostRecord {
        let known = format!("UserKnownHostsFile={}", self.known_hosts(known).display());
        let mut arguments = vec!["-o", &known, "--json"];
        for option in options {
            arguments.extend(["-o", option]);
        }
        arguments.push("true");
        self.shoal.run(&arguments).records().hosts.remove(0)
    }
}

/// Both the certificate and its plain key.
const BOTH: &str = "HostKeyAlgorithms=ecdsa-sha2-nistp256-cert-v01@openssh.com,ecdsa-sha2-nistp256";

#[test]
fn a_certificate_of_a_known_authority_is_enough_unless_its_signature_algorithm_is_not_allowed() {
    let host = Certified::new(&["-h"]);
    let authority = [host.authority_line()];
    for algorithms in ["rsa-sha2-256", "+ssh-rsa", "ssh-ed25519,rsa-sha2-*"] {
        let option = format!("CASignatureAlgorithms={algorithms}");
        let record = host.record(&authority, &[BOTH, &option]);
        assert!(record.is_ok(), "{algorithms}: {record:?}");
    }
    let option = "CASignatureAlgorithms=-rsa-sha2-256";
    let record = host.record(&authority, &[BOTH, option]);
    assert_eq!(record.failure(), "host-key-unknown", "{record:?}");
    let detail = record.detail.unwrap();
    assert!(detail.contains("CASignatureAlgorithms"), "{detail}");
    // Known by itself as well, the key is good.
    let record = host.record(&[host.authority_line(), host.key_line()], &[BOTH, option]);
    assert!(record.is_ok(), "{record:?}");
}

#[test]
fn a_certificate_that_is_none_of_a_host_or_asks_too_much_leaves_its_plain_key() {
    let faults: [(&[&str], &str); 3] = [
        (
            &["-h", "-O", "critical:future@example.com=1"],
            "critical option",
        ),
        (&[], "not a host certificate"),
        (&["-h", "-V", "20200101:20210101"], "expired"),
    ];
    for (arguments, why) in faults {
        let host = Certified::new(arguments);
        let record = host.record(&[host.authority_line()], &[BOTH]);
        assert_eq!(record.failure(), "host-key-unknown", "{record:?}");
        let detail = record.detail.unwrap();
        assert!(detail.contains(why), "{detail}");
        let both = [host.authority_line(), host.key_line()];
        let record = host.record(&both, &[BOTH]);
        assert!(record.is_ok(), "{why}: {record:?}");
        // ssh does the same.
        let known = host.known_hosts(&both);
        let ssh = Command::new("ssh")
            .args(["-F", &host.shoal.file("ssh_config"), "-o", BOTH, "-o"])
            .arg(format!("UserKnownHostsFile={}", known.display()))
            .args([&host.shoal.name(0), "true"])
            .status();
        assert!(ssh.unwrap().success(), "{why}");
    }
}

#[test]
fn a_plain_key_that_host_key_algorithms_leaves_out_is_not_taken_for_its_certificate() {
    let host = Certified::new(&["-h", "-O", "critical:future@example.com=1"]);
    let option = "HostKeyAlgorithms=ecdsa-sha2-nistp256-cert-v01@openssh.com";
    let record = host.record(&[host.authority_line(), host.key_line()], &[option]);
    assert_eq!(record.failure(), "host-key-unknown", "{record:?}");
    let detail = record.detail.unwrap();
    assert!(
        detail.contains("critical option") && detail.contains("HostKeyAlgorithms"),
        "{detail}"
    );
}
