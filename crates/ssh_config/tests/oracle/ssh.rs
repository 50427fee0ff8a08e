//! The installed ssh, and what it says of itself and of this machine.

use std::path::Path;
use std::process::Command;

use sshoal_ssh_config::Environment;

use crate::{Case, Settings};

/// A variable that is set for ssh and for sshoal alike.
const VARIABLE: (&str, &str) = ("SSHOAL_TEST", "from the environment");

pub(crate) struct Ssh {
    pub(crate) environment: Environment,
    /// What `ssh -G` says without any configuration.
    pub(crate) defaults: Settings,
    /// What `ssh -Q` says of a kind of algorithms.
    pub(crate) known: std::collections::BTreeMap<&'static str, Vec<String>>,
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
            variables: [VARIABLE]
                .map(|(name, value)| (name.into(), value.into()))
                .into(),
        };
        let known = ["cipher", "mac", "kex", "HostKeyAlgorithms", "key-sig"];
        let known = known.map(|kind| {
            (
                kind,
                output("ssh", &["-Q", kind])
                    .lines()
                    .map(String::from)
                    .collect(),
            )
        });
        let mut command = Command::new("ssh");
        command.args(["-F", "none", "-G", "h"]);
        let defaults = ask(command).expect("ssh is installed (openssh-client)");
        Ssh {
            environment,
            defaults,
            known: known.into(),
        }
    }

    /// What ssh makes of a case; `None` if it refuses it.
    pub(crate) fn settings(&self, directory: &Path, case: &Case) -> Option<Settings> {
        let mut command = Command::new("ssh");
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
        command.env(VARIABLE.0, VARIABLE.1).arg(&case.host);
        ask(command)
    }
}

fn ask(mut command: Command) -> Option<Settings> {
    let output = command.output().expect("ssh is installed (openssh-client)");
    let text = String::from_utf8(output.stdout).unwrap();
    if !output.status.success() {
        return None;
    }
    let mut settings = Settings::new();
    for line in text.lines() {
        let (keyword, value) = line.split_once(' ').unwrap_or((line, ""));
        settings
            .entry(keyword.into())
            .or_default()
            .push(value.into());
    }
    assert!(settings.len() > 50, "ssh -G said too little");
    Some(settings)
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    String::from_utf8(output.expect(program).stdout).unwrap()
}
