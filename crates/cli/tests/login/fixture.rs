//! Real servers, and `sshoal run` against them with a home of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use sshoal_testbed::sshd::key_files::{Certified, KeyType, certify, generate};
use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use tempfile::TempDir;

/// After so many seconds something hangs that should not. No test's verdict depends on the number.
const DEADLINE: &str = "240";

/// Servers, and a home whose `.ssh` knows them but holds no key.
pub(crate) struct Scene {
    pub(crate) server: RealSshd,
    home: TempDir,
}

impl Scene {
    pub(crate) fn new(spec: &SshdSpec) -> Self {
        let server = RealSshd::start(spec).unwrap();
        let home = TempDir::new().unwrap();
        fs::create_dir(home.path().join(".ssh")).unwrap();
        let scene = Scene { server, home };
        fs::write(
            scene.path(".ssh/known_hosts"),
            scene.server.known_hosts().unwrap(),
        )
        .unwrap();
        scene
    }

    /// One host with these lines for sshd_config.
    pub(crate) fn with(lines: &[&str]) -> Self {
        let spec = lines
            .iter()
            .fold(SshdSpec::new(1), |spec, line| spec.line(*line));
        Scene::new(&spec)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// A new key that no server knows.
    pub(crate) fn key(&self, name: &str, key_type: KeyType, passphrase: &str) -> PathBuf {
        let path = self.path(name);
        generate(&path, key_type, passphrase).unwrap();
        path
    }

    /// A shell script to be run.
    pub(crate) fn script(&self, name: &str, text: &str) -> PathBuf {
        let (path, lines) = (self.path(name), self.path("lines"));
        fs::write(&lines, format!("#!/bin/sh\n{text}\n")).unwrap();
        // By a process of its own: a file that is open for writing here, if only in a fork, could not be executed.
        let mut install = Command::new("install");
        install.args(["-m", "755"]).args([&lines, &path]);
        assert!(install.status().unwrap().success());
        path
    }

    /// Lets a key in, with these options of authorized_keys.
    pub(crate) fn authorize(&self, key: &Path, options: &str) {
        let public = fs::read_to_string(public_path(key)).unwrap();
        let space = if options.is_empty() { "" } else { " " };
        self.server
            .authorize(&format!("{options}{space}{public}"))
            .unwrap();
    }

    /// A new ed25519 key that the servers let in.
    pub(crate) fn authorized(&self, name: &str) -> PathBuf {
        let path = self.key(name, KeyType::Ed25519, "");
        self.authorize(&path, "");
        path
    }

    /// A certificate for a key, beside it.
    pub(crate) fn certify(&self, ca: &Path, key: &Path, principals: &[&str]) -> PathBuf {
        let certified = Certified {
            host: false,
            key_id: "login test",
            principals,
            validity: "always:forever",
        };
        certify(ca, key, certified).unwrap()
    }

    /// `sshoal run` on all hosts, the words of the command last.
    pub(crate) fn run(&self, options: &[&str], command: &str) -> Run {
        let addresses = self.server.addresses().iter();
        let hosts: Vec<String> = addresses.map(ToString::to_string).collect();
        let mut run = Run::new(self.home.path(), &hosts, options, command);
        run.option(&format!("User={}", self.server.user()));
        run
    }

    /// How often the log of the first host says this.
    pub(crate) fn logged(&self, words: &str) -> usize {
        self.log(0).matches(words).count()
    }

    /// The log of a host, with the ends of all its connections: sshd writes it behind the client's back.
    pub(crate) fn log(&self, host: usize) -> String {
        let deadline = Instant::now() + Duration::from_secs(240);
        loop {
            let log = self.server.log(host);
            let count = |starts: &[&str]| {
                let begins = |line: &&str| starts.iter().any(|start| line.starts_with(start));
                log.lines().filter(begins).count()
            };
            let ends = [
                "Disconnected from ",
                "Disconnecting ",
                "Connection closed by ",
            ];
            if count(&ends) >= count(&["Connection from "]) {
                return log;
            }
            assert!(
                Instant::now() < deadline,
                "a connection does not end: {log}"
            );
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// KEY.pub.
pub(crate) fn public_path(key: &Path) -> PathBuf {
    let mut path = key.as_os_str().to_owned();
    path.push(".pub");
    path.into()
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A run to be started.
pub(crate) struct Run {
    words: Vec<String>,
    environment: Vec<(String, std::ffi::OsString)>,
}

impl Run {
    pub(crate) fn new(home: &Path, hosts: &[String], options: &[&str], command: &str) -> Self {
        let mut words = vec!["run".to_owned(), "--json".to_owned()];
        for host in hosts {
            words.extend(["-w".to_owned(), host.clone()]);
        }
        words.extend(options.iter().map(|word| (*word).to_owned()));
        words.push(command.to_owned());
        let mut run = Run {
            words,
            environment: Vec::new(),
        };
        run.set("HOME", home);
        run.set("XDG_CACHE_HOME", home.join("cache"));
        run.set("XDG_STATE_HOME", home.join("state"));
        run.set("PATH", std::env::var_os("PATH").unwrap());
        run
    }

    /// `-o`, before the command.
    pub(crate) fn option(&mut self, option: &str) {
        self.words
            .splice(1..1, ["-o".to_owned(), option.to_owned()]);
    }

    pub(crate) fn set(&mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) {
        self.environment
            .push((name.to_owned(), value.as_ref().to_owned()));
    }

    pub(crate) fn with_agent(mut self, socket: &Path) -> Self {
        self.set("SSH_AUTH_SOCK", socket);
        self
    }

    /// The command, without a terminal.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new("setsid");
        command
            .args(["--wait", "timeout", DEADLINE])
            .arg(env!("CARGO_BIN_EXE_sshoal"))
            .args(&self.words)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn finish(self) -> Ended {
        Ended::of(&self.command().output().unwrap())
    }
}

/// A run that has ended.
pub(crate) struct Ended {
    pub(crate) status: Option<i32>,
    pub(crate) stderr: String,
    hosts: Vec<Value>,
}

impl Ended {
    pub(crate) fn of(output: &Output) -> Self {
        let stdout = String::from_utf8_lossy(&output.stdout);
        let records = stdout
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        Ended {
            status: output.status.code(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            hosts: records.filter(|record| record["type"] == "host").collect(),
        }
    }

    /// All hosts ended well; what each wrote, in the order in which they ended.
    #[track_caller]
    pub(crate) fn all_ok(&self) -> Vec<&str> {
        assert!(!self.hosts.is_empty(), "nothing ran: {}", self.stderr);
        let outputs = self.hosts.iter().map(|host| {
            assert_eq!(host["outcome"], "ok", "{host:#} {}", self.stderr);
            host["stdout"].as_str().unwrap()
        });
        outputs.collect()
    }

    /// The one host failed in this way: its detail and remedy.
    #[track_caller]
    pub(crate) fn failed(&self, kind: &str) -> String {
        let [host] = self.hosts.as_slice() else {
            panic!("one host: {:?} {}", self.hosts, self.stderr);
        };
        assert_eq!(host["failure"], kind, "{host:#} {}", self.stderr);
        format!(
            "{} -> {}",
            host["detail"].as_str().unwrap(),
            host["remedy"].as_str().unwrap()
        )
    }
}
