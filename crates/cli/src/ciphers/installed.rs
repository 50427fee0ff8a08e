//! What the installed ssh has, by its own words.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use super::pairs::Pair;

/// The algorithms of an ssh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Installed {
    /// All of them.
    pub(super) ciphers: Vec<String>,
    pub(super) macs: Vec<String>,
    pub(super) kex: Vec<String>,
    /// Those that it offers where nothing is configured, in its order.
    pub(super) default_ciphers: Vec<String>,
    pub(super) default_macs: Vec<String>,
    pub(super) default_kex: Vec<String>,
}

impl Installed {
    /// Asks it; `None` if there is none, or one that does not answer (`-Q` is of 6.3, `-G` of 6.8).
    pub(super) fn ask(program: &OsStr) -> Option<Installed> {
        let defaults = said(program, &["-G", "-F", "none", "localhost"])?;
        let list = |keyword: &str| {
            let lines = defaults.lines();
            let mut values = lines.filter_map(|line| line.strip_prefix(keyword)?.strip_prefix(' '));
            let names = values.next().unwrap_or_default().split(',');
            names.map(str::to_owned).collect()
        };
        Some(Installed {
            ciphers: lines(&said(program, &["-Q", "cipher"])?),
            macs: lines(&said(program, &["-Q", "mac"])?),
            kex: lines(&said(program, &["-Q", "kex"])?),
            default_ciphers: list("ciphers"),
            default_macs: list("macs"),
            default_kex: list("kexalgorithms"),
        })
    }

    /// Whether it has both.
    pub(super) fn has(&self, pair: &Pair) -> bool {
        let has_mac = |mac| self.macs.contains(mac);
        self.ciphers.contains(&pair.cipher) && pair.mac.as_ref().is_none_or(has_mac)
    }
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

fn said(program: &OsStr, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let output = command.output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then_some(text)
}
