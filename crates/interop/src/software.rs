//! The servers by name, and the command that starts each.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::process;

use crate::account::{Account, USER};
use crate::keys::{KeyType, Subject, certify};
use crate::process::{Process, Running, find_program, on_a_leash};
use crate::russh_server::RusshServer;

/// SSH servers that we did not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Software {
    /// The installed sshd.
    OpenSsh,
    /// Debian's dropbear-bin.
    Dropbear,
    /// asyncssh, in the virtual environment that `make setup` makes.
    Asyncssh,
    /// golang.org/x/crypto/ssh, in the program that `make setup` builds.
    Go,
    /// russh, in this process.
    Russh,
}

impl Software {
    /// Every server.
    pub const ALL: [Software; 5] = [
        Software::OpenSsh,
        Software::Dropbear,
        Software::Asyncssh,
        Software::Go,
        Software::Russh,
    ];

    /// What has to be installed for it, and from where.
    #[must_use]
    pub fn origin(self) -> &'static str {
        match self {
            Software::OpenSsh => "sshd, from Debian's openssh-server",
            Software::Dropbear => "dropbear and dropbearconvert, from Debian's dropbear-bin",
            Software::Asyncssh => "asyncssh, from PyPI, in target/venv",
            Software::Go => {
                "target/interop/go-ssh-server, built from crates/interop/servers/go with Go"
            }
            Software::Russh => "nothing: russh is built in",
        }
    }

    /// Whether it can be told its algorithms and when to ask for new keys. Host keys can be chosen for all.
    #[must_use]
    pub fn is_configurable(self) -> bool {
        self != Software::Dropbear
    }
}

/// What a server is told. An empty list of algorithms leaves the choice to the software: asyncssh, Go and russh then
/// offer all they have but what they call insecure, OpenSSH and Dropbear their defaults.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// One host key of each of these kinds is made. Dropbear takes at most four.
    pub host_keys: Vec<KeyType>,
    /// The lines of the authorized_keys file. All servers here take user keys of all kinds.
    pub authorized_keys: String,
    /// Key exchanges that it may use.
    pub kex_algorithms: Vec<String>,
    /// Ciphers that it may use.
    pub ciphers: Vec<String>,
    /// MACs that it may use.
    pub macs: Vec<String>,
    /// The server asks for new keys after so many bytes.
    pub rekey_bytes: Option<u64>,
    /// Neither strict key exchange nor EXT_INFO is offered: as servers were before 2024, or are still. For russh only.
    pub plain_kex: bool,
    /// The private key of an authority that certifies each of the host keys for the server's address, and whose
    /// certificates for users log in. For OpenSSH only.
    pub authority: Option<PathBuf>,
}

impl Options {
    pub(crate) fn names_algorithms(&self) -> bool {
        let lists = [&self.kex_algorithms, &self.ciphers, &self.macs];
        lists.iter().any(|list| !list.is_empty()) || self.rekey_bytes.is_some()
    }
}

/// What a server's command line is made of.
pub(crate) struct Command<'a> {
    pub(crate) options: &'a Options,
    pub(crate) dir: &'a Path,
    pub(crate) address: SocketAddrV4,
    pub(crate) host_keys: &'a [PathBuf],
    pub(crate) account: &'a Account,
}

impl Command<'_> {
    /// Starts the server. Returns it, and the name that users log in with.
    pub(crate) fn start(&self, software: Software) -> io::Result<(Box<dyn Running>, String)> {
        let user = USER.to_owned();
        let (words, user) = match software {
            Software::OpenSsh => self.openssh()?,
            Software::Dropbear => (self.dropbear()?, user),
            Software::Asyncssh => (self.asyncssh(), user),
            Software::Go => (self.go(), user),
            Software::Russh => return Ok((Box::new(self.russh()?), user)),
        };
        Ok((Box::new(Process::spawn(self.dir, &words)?), user))
    }

    /// Without root, sshd can only log in the user that runs it, and has no need of an account of ours.
    fn openssh(&self) -> io::Result<(Vec<OsString>, String)> {
        let file = self.dir.join("sshd_config");
        fs::write(&file, self.sshd_config() + &self.certificates()?)?;
        let sshd = find_program("sshd")?;
        let words = vec![
            sshd.into(),
            "-D".into(),
            "-e".into(),
            "-f".into(),
            file.into(),
        ];
        if self.account.is_root() {
            return Ok((on_a_leash(self.account.enter(words)), USER.to_owned()));
        }
        let id = process::Command::new("id").arg("-un").output()?;
        let user = String::from_utf8_lossy(&id.stdout).trim().to_owned();
        Ok((on_a_leash(words), user))
    }

    fn sshd_config(&self) -> String {
        let mut text = format!(
            "ListenAddress {}\n\
             AuthorizedKeysFile {}\n\
             PidFile none\n\
             StrictModes no\n\
             UsePAM no\n\
             PasswordAuthentication no\n\
             KbdInteractiveAuthentication no\n\
             AcceptEnv *\n\
             MaxStartups 1000\n\
             Subsystem sftp internal-sftp\n\
             LogLevel VERBOSE\n",
            self.address,
            self.account.authorized_keys().display(),
        );
        let mut line = |keyword: &str, value: String| {
            // Writing to a String does not fail.
            let _ = writeln!(text, "{keyword} {value}");
        };
        for key in self.host_keys {
            line("HostKey", key.display().to_string());
        }
        let options = self.options;
        for (keyword, names) in [
            ("KexAlgorithms", &options.kex_algorithms),
            ("Ciphers", &options.ciphers),
            ("MACs", &options.macs),
        ] {
            if !names.is_empty() {
                line(keyword, names.join(","));
            }
        }
        if let Some(bytes) = options.rekey_bytes {
            line("RekeyLimit", bytes.to_string());
        }
        text
    }

    /// The lines about certificates. A host certificate names the address, without the port: so does OpenSSH's client.
    fn certificates(&self) -> io::Result<String> {
        let Some(authority) = &self.options.authority else {
            return Ok(String::new());
        };
        let public = authority.with_extension("pub");
        let mut text = format!("TrustedUserCAKeys {}\n", public.display());
        let name = self.address.ip().to_string();
        for key in self.host_keys {
            let certificate = certify(authority, key, Subject::Host(&name), None)?;
            // Writing to a String does not fail.
            let _ = writeln!(text, "HostCertificate {}", certificate.display());
        }
        Ok(text)
    }

    /// Dropbear has a key format of its own, and a converter to it.
    fn dropbear(&self) -> io::Result<Vec<OsString>> {
        let mut words: Vec<OsString> = ["dropbear", "-F", "-E", "-s", "-p"]
            .map(OsString::from)
            .into();
        words.push(self.address.to_string().into());
        words.push("-P".into());
        words.push(self.dir.join("pid").into());
        for key in self.host_keys {
            let converted = key.with_extension("dropbear");
            let output = process::Command::new("dropbearconvert")
                .args(["openssh", "dropbear"])
                .args([key, &converted])
                .output()?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                return Err(io::Error::other(format!("dropbearconvert: {said}")));
            }
            words.push("-r".into());
            words.push(converted.into());
        }
        Ok(on_a_leash(self.account.enter(words)))
    }

    fn asyncssh(&self) -> Vec<OsString> {
        let python = built().join("venv/bin/python");
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/asyncssh_server.py");
        self.with_flags(vec![python.into(), program.into()])
    }

    fn go(&self) -> Vec<OsString> {
        self.with_flags(vec![built().join("interop/go-ssh-server").into()])
    }

    fn russh(&self) -> io::Result<RusshServer> {
        RusshServer::start(
            self.options,
            self.address,
            self.host_keys,
            self.account.authorized_keys(),
        )
    }

    /// The flags that the servers written for these tests share.
    fn with_flags(&self, mut words: Vec<OsString>) -> Vec<OsString> {
        let mut flag = |name: &str, value: OsString| words.extend([name.into(), value]);
        flag("--listen", self.address.to_string().into());
        flag("--authorized-keys", self.account.authorized_keys().into());
        for key in self.host_keys {
            flag("--host-key", key.into());
        }
        let options = self.options;
        for (name, names) in [
            ("--kex", &options.kex_algorithms),
            ("--ciphers", &options.ciphers),
            ("--macs", &options.macs),
        ] {
            if !names.is_empty() {
                flag(name, names.join(",").into());
            }
        }
        if let Some(bytes) = options.rekey_bytes {
            flag("--rekey-bytes", bytes.to_string().into());
        }
        words
    }
}

/// Where `make setup` puts what it builds.
fn built() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target")
}
