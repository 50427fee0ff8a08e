//! What a host is made of: its files, which the injections alter, and what stands beside them.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use super::SlowError;
use super::change::Change;
use super::resolver::Answer;

/// The account that logs in, which exists in the host's own /etc only.
pub(super) const ACCOUNT: &str = "sshoal-slow";
/// Its home.
pub(super) const HOME: &str = "/home/sshoal-slow";
/// Where each run of an injected program is written down, a line each.
pub(super) const RUNS: &str = "/run/sshoal-slow/runs";
pub(super) const SSHD_CONFIG: &str = "/etc/ssh/sshd_config";
pub(super) const PAM: &str = "/etc/pam.d/sshd";
pub(super) const HOST_KEY: &str = "/etc/ssh/ssh_host_ed25519_key";
const PASSWD: &str = "/etc/passwd";
const NSSWITCH: &str = "/etc/nsswitch.conf";
const PLAIN_SHELL: &str = "/bin/sh";
const PLAIN_USERS: &str = "passwd:         files";

/// The host's own lines of sshd_config(5): what Debian has, and no penalties or traces on the machine.
const CONFIG: &str = "\
UsePAM yes
KbdInteractiveAuthentication no
PasswordAuthentication no
X11Forwarding yes
PrintMotd no
AcceptEnv LANG LC_*
Subsystem sftp /usr/lib/openssh/sftp-server
PidFile none
LogLevel VERBOSE
";

/// The stacks of PAM as Debian's, without what this machine's own have or lack.
const PAM_AUTH: &str = "auth       required     pam_unix.so\n";
const PAM_ACCOUNT: &str = "\
account    required     pam_nologin.so
account    required     pam_unix.so
";
const PAM_SESSION: &str = "\
session    optional     pam_keyinit.so force revoke
session    required     pam_unix.so
session    optional     pam_motd.so  motd=/run/motd.dynamic
session    optional     pam_motd.so noupdate
session    required     pam_limits.so
session    required     pam_env.so
";

/// Whose a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Root,
    Account,
}

/// What is in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Text(String),
    /// So many zeros, which take no room.
    Hole(u64),
}

/// A file to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlannedFile {
    pub(super) content: Content,
    pub(super) owner: Owner,
    pub(super) mode: u32,
}

/// A host to be.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The account's number.
    uid: u32,
    files: BTreeMap<String, PlannedFile>,
    config: Vec<String>,
    pam_account: String,
    pam_session: String,
    claimed: Vec<&'static str>,
    shell: Option<String>,
    users: Option<String>,
    /// The name server it asks; without one there is a name for the client's address in its /etc/hosts.
    pub(super) resolver: Option<Answer>,
    /// Per cent of a processor.
    pub(super) quota: Option<u64>,
    /// Connections that never log in.
    pub(super) held: u64,
    /// Milliseconds that its name service takes.
    pub(super) name_service: Option<u64>,
    /// Other hosts' lines in the client's known_hosts.
    pub(super) known_hosts: u64,
    /// A public key beside the usual one that the client is to know.
    pub(super) other_host_key: Option<&'static str>,
    /// Its account may become root by sudo, without a password.
    pub(super) sudo: bool,
    /// What would make it well.
    pub(super) fix: Vec<Change>,
}

/// What a host is told when it is made.
pub(super) struct Particulars<'a> {
    pub(super) address: SocketAddrV4,
    pub(super) name_server: Option<Ipv4Addr>,
    pub(super) host_key: String,
    /// A line of authorized_keys.
    pub(super) key: &'a str,
    /// From 9.8 on.
    pub(super) has_penalties: bool,
}

impl Plan {
    /// A host on which nothing is slow.
    pub(super) fn new(uid: u32) -> Plan {
        Plan {
            uid,
            ..Plan::default()
        }
    }

    /// A file that only one injection can have.
    pub(super) fn file(
        &mut self,
        path: &str,
        owner: Owner,
        mode: u32,
        content: Content,
    ) -> Result<(), SlowError> {
        let planned = PlannedFile {
            content,
            owner,
            mode,
        };
        match self.files.insert(path.to_owned(), planned) {
            None => Ok(()),
            Some(_) => Err(SlowError::Conflict(path.to_owned())),
        }
    }

    /// A line of sshd_config whose keyword only one injection can set.
    pub(super) fn config(&mut self, line: String) -> Result<(), SlowError> {
        let keyword = keyword(&line).to_owned();
        if self
            .config
            .iter()
            .any(|there| self::keyword(there) == keyword)
        {
            return Err(SlowError::Conflict(keyword));
        }
        self.config.push(line);
        Ok(())
    }

    /// One more line of the account stack.
    pub(super) fn pam_account(&mut self, line: &str) {
        self.pam_account += &format!("{line}\n");
    }

    /// One more line of the session stack.
    pub(super) fn pam_session(&mut self, line: &str) {
        self.pam_session += &format!("{line}\n");
    }

    /// Something else that only one injection can have.
    pub(super) fn claim(&mut self, what: &'static str) -> Result<(), SlowError> {
        if self.claimed.contains(&what) {
            return Err(SlowError::Conflict(what.to_owned()));
        }
        self.claimed.push(what);
        Ok(())
    }

    pub(super) fn shell(&mut self, shell: &str) -> Result<(), SlowError> {
        match self.shell.replace(shell.to_owned()) {
            Some(other) if other != shell => Err(SlowError::Conflict("the account's shell".into())),
            _ => Ok(()),
        }
    }

    pub(super) fn resolver(&mut self, answer: Answer) -> Result<(), SlowError> {
        match self.resolver.replace(answer) {
            Some(_) => Err(SlowError::Conflict("the name server".into())),
            None => Ok(()),
        }
    }

    /// The slow name service before the files, and the change that puts it behind them.
    pub(super) fn name_service(&mut self, milliseconds: u64) {
        let slow = "passwd:         directory files";
        self.name_service = Some(milliseconds);
        self.users = Some(slow.to_owned());
        self.fix.push(Change::Replace {
            file: NSSWITCH.into(),
            line: slow.into(),
            with: "passwd:         files directory".into(),
        });
    }

    /// All the host's files that differ from this machine's.
    pub(super) fn files(&mut self, host: &Particulars<'_>) -> BTreeMap<String, PlannedFile> {
        let text = |mode: u32, text: String| PlannedFile {
            content: Content::Text(text),
            owner: Owner::Root,
            mode,
        };
        let own = |mode: u32, text: String| PlannedFile {
            content: Content::Text(text),
            owner: Owner::Account,
            mode,
        };
        let pam = [
            PAM_AUTH,
            PAM_ACCOUNT,
            &self.pam_account,
            PAM_SESSION,
            &self.pam_session,
        ]
        .concat();
        let users = self.users.as_deref().unwrap_or(PLAIN_USERS);
        let mut files = BTreeMap::from([
            (SSHD_CONFIG.to_owned(), text(0o644, self.sshd_config(host))),
            (HOST_KEY.to_owned(), text(0o600, host.host_key.clone())),
            (PAM.to_owned(), text(0o644, pam)),
            (
                NSSWITCH.to_owned(),
                text(
                    0o644,
                    format!(
                        "{users}\ngroup:          files\nshadow:         files\nhosts:          files dns\n"
                    ),
                ),
            ),
            (
                "/etc/hosts".to_owned(),
                text(0o644, hosts(host.name_server.is_some())),
            ),
            (
                "/etc/resolv.conf".to_owned(),
                text(0o644, self.resolv_conf(host.name_server)),
            ),
            ("/etc/hosts.allow".to_owned(), text(0o644, String::new())),
            ("/etc/hosts.deny".to_owned(), text(0o644, String::new())),
            (
                "/etc/update-motd.d/10-uname".to_owned(),
                text(0o755, "#!/bin/sh\nuname -snrvm\n".into()),
            ),
            (
                format!("{HOME}/.ssh/authorized_keys"),
                own(0o600, format!("{}\n", host.key)),
            ),
            (RUNS.to_owned(), text(0o666, String::new())),
            ("/run/utmp".to_owned(), text(0o664, String::new())),
            ("/var/log/wtmp".to_owned(), text(0o664, String::new())),
            ("/var/log/lastlog".to_owned(), text(0o664, String::new())),
            ("/var/log/btmp".to_owned(), text(0o660, String::new())),
        ]);
        if self.sudo {
            let line = format!("{ACCOUNT} ALL=(ALL) NOPASSWD: ALL\n");
            files.insert("/etc/sudoers.d/sshoal-slow".to_owned(), text(0o440, line));
        }
        files.append(&mut self.files);
        files
    }

    /// The account's line of passwd(5).
    pub(super) fn passwd_line(&self) -> String {
        passwd_line(self.uid, self.shell.as_deref().unwrap_or(PLAIN_SHELL))
    }

    /// The change that gives the account the plain shell.
    pub(super) fn plain_shell(&self) -> Change {
        Change::Replace {
            file: PASSWD.into(),
            line: self.passwd_line(),
            with: passwd_line(self.uid, PLAIN_SHELL),
        }
    }

    fn sshd_config(&self, host: &Particulars<'_>) -> String {
        let mut text = String::from("# A host of sshoal's test bed.\n");
        let mut say = |line: &str| {
            text += line;
            text.push('\n');
        };
        self.config.iter().for_each(|line| say(line));
        say(&format!("Port {}", host.address.port()));
        say(&format!("ListenAddress {}", host.address.ip()));
        let penalties = host.has_penalties.then_some("PerSourcePenalties no");
        let key = format!("HostKey {HOST_KEY}");
        for own in CONFIG.lines().chain(penalties).chain([key.as_str()]) {
            // Of most keywords sshd takes the first value, of some all: nothing is said twice.
            if !self.config.iter().any(|line| keyword(line) == keyword(own)) {
                say(own);
            }
        }
        text
    }

    fn resolv_conf(&self, name_server: Option<Ipv4Addr>) -> String {
        let Some(address) = name_server else {
            return "# No name server: what is in no file is unknown at once.\nnameserver 127.0.0.1\n".to_owned();
        };
        let options = match self.resolver {
            Some(Answer::Never { seconds }) => format!("options timeout:{seconds} attempts:2\n"),
            _ => String::new(),
        };
        format!("nameserver {address}\n{options}")
    }
}

fn passwd_line(uid: u32, shell: &str) -> String {
    format!("{ACCOUNT}:x:{uid}:{uid}:a slow host's user:{HOME}:{shell}")
}

/// 127.0.0.1, where clients come from, has a name only if no name server is to be asked for one. The machine's own name is
/// there for sudo, which looks it up.
fn hosts(has_name_server: bool) -> String {
    let uname = rustix::system::uname();
    let machine = uname.nodename().to_string_lossy();
    let client = match has_name_server {
        true => "",
        false => "127.0.0.1 localhost\n",
    };
    // No ::1 either: the C library takes its line for one of 127.0.0.1.
    format!("{client}127.0.1.1 {machine}\n")
}

fn keyword(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn particulars() -> Particulars<'static> {
        Particulars {
            address: "127.6.0.1:2222".parse().unwrap(),
            name_server: None,
            host_key: "the key".into(),
            key: "ssh-ed25519 AAAA",
            has_penalties: false,
        }
    }

    #[test]
    fn given_lines_take_the_place_of_the_hosts_own() {
        let mut plan = Plan::default();
        plan.config("HostKey /other".into()).unwrap();
        let config = plan.sshd_config(&particulars());
        assert_eq!(config.matches("HostKey ").count(), 1, "{config}");
        assert!(config.contains("\nPort 2222\nListenAddress 127.6.0.1\n"));
        assert!(!config.contains("PerSourcePenalties"));
    }

    #[test]
    fn what_two_injections_want_is_a_conflict() {
        let mut plan = Plan::default();
        plan.config("UseDNS yes".into()).unwrap();
        let twice = plan.config("UseDNS yes".into()).unwrap_err();
        assert!(matches!(twice, SlowError::Conflict(what) if what == "UseDNS"));
        plan.shell("/bin/bash").unwrap();
        plan.shell("/bin/bash").unwrap();
        assert!(plan.shell("/bin/zsh").is_err());
    }

    #[test]
    fn the_client_has_a_name_only_without_a_name_server() {
        let mut host = particulars();
        let without = Plan::default().files(&host);
        host.name_server = Some(Ipv4Addr::new(127, 53, 0, 9));
        let with = Plan::default().files(&host);
        let has = |files: &BTreeMap<String, PlannedFile>, path: &str, text: &str| matches!(&files[path].content, Content::Text(there) if there.contains(text));
        assert!(has(&without, "/etc/hosts", "127.0.0.1"));
        assert!(!has(&with, "/etc/hosts", "127.0.0.1"));
        assert!(has(&with, "/etc/resolv.conf", "127.53.0.9"));
    }
}
