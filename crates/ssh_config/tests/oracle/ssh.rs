//! The installed ssh, and what it says of itself and of this machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use sshoal_ssh_config::{Environment, Implemented, Names};

use crate::{Case, Settings};

/// Variables that are set for ssh and for sshoal alike, and nothing else.
const VARIABLES: [(&str, &str); 3] = [
    ("SSHOAL_TEST", "from the environment"),
    ("SSHOAL_DEV", "/dev"),
    ("SHELL", "/bin/sh"),
];

/// Lists of algorithms: the keyword, and what `ssh -Q` calls its kind.
const LISTS: [(&str, &str); 7] = [
    ("ciphers", "cipher"),
    ("macs", "mac"),
    ("kexalgorithms", "kex"),
    ("hostkeyalgorithms", "HostKeyAlgorithms"),
    ("casignaturealgorithms", "key-sig"),
    ("hostbasedacceptedalgorithms", "HostKeyAlgorithms"),
    ("pubkeyacceptedalgorithms", "HostKeyAlgorithms"),
];

pub(crate) struct Ssh {
    pub(crate) environment: Environment,
    /// What `ssh -G` says without any configuration.
    pub(crate) defaults: Settings,
    /// For each keyword of `LISTS` its default and all names of its kind.
    lists: BTreeMap<&'static str, (String, String)>,
}

/// What became of `ssh -G`.
pub(crate) struct Answer {
    pub(crate) status: Option<i32>,
    pub(crate) settings: Settings,
    pub(crate) errors: String,
}

impl Ssh {
    pub(crate) fn new() -> Ssh {
        let user = output("id", &["-un"]);
        let passwd = output("getent", &["passwd", user.trim()]);
        let home = passwd.trim().split(':').nth(5).unwrap().to_string();
        let environment = Environment {
            local_user: user.trim().into(),
            home,
            local_host: output("uname", &["-n"]).trim().into(),
            uid: output("id", &["-u"]).trim().parse().unwrap(),
            variables: VARIABLES
                .map(|(name, value)| (name.into(), value.into()))
                .into(),
        };
        let mut command = command(Path::new("/nonexistent"));
        command.args(["-F", "none", "-G", "h"]);
        let defaults = run(command).settings;
        assert!(defaults.len() > 50, "ssh is installed (openssh-client)");
        let lists = LISTS.map(|(keyword, kind)| {
            let default = defaults[keyword][0].clone();
            (keyword, (default, output("ssh", &["-Q", kind])))
        });
        Ssh {
            environment,
            defaults,
            lists: lists.into(),
        }
    }

    /// The algorithms of this ssh, so that its lists can be compared.
    pub(crate) fn with_algorithms<T>(&self, then: impl FnOnce(&Implemented<'_>) -> T) -> T {
        let split = |keyword: &str| -> (Vec<&str>, Vec<&str>) {
            let (default, known) = &self.lists[keyword];
            (default.split(',').collect(), known.lines().collect())
        };
        let lists = LISTS.map(|(keyword, _)| split(keyword));
        let names = |at: usize| Names {
            defaults: &lists[at].0,
            known: &lists[at].1,
        };
        then(&Implemented {
            ciphers: names(0),
            macs: names(1),
            kex: names(2),
            keys: names(3),
            ca_signatures: names(4),
        })
    }

    /// What ssh makes of a case whose files lie in `directory`.
    pub(crate) fn ask(&self, directory: &Path, case: &Case) -> Answer {
        let mut command = command(directory);
        command
            .arg("-G")
            .arg("-F")
            .arg(directory.join(&case.files[0].0));
        for option in &case.options {
            command.args(["-o", option]);
        }
        if let Some(user) = &case.user {
            command.args(["-l", user]);
        }
        if let Some(port) = case.port {
            command.args(["-p", &port.to_string()]);
        }
        command.arg(&case.host).args(&case.command);
        run(command)
    }
}

/// An ssh that knows of nothing but the test.
fn command(home: &Path) -> Command {
    let mut command = Command::new("ssh");
    let path = std::env::var_os("PATH").unwrap();
    command.env_clear().env("PATH", path).env("HOME", home);
    command.envs(VARIABLES);
    command
}

fn run(mut command: Command) -> Answer {
    let output = command.output().expect("ssh is installed (openssh-client)");
    let mut settings = Settings::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let (keyword, value) = line.split_once(' ').unwrap_or((line, ""));
        settings
            .entry(keyword.to_lowercase())
            .or_default()
            .push(value.into());
    }
    Answer {
        status: output.status.code(),
        settings,
        errors: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    String::from_utf8(output.expect(program).stdout).unwrap()
}
