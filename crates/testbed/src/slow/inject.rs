//! What each kind puts on a host, and the change that takes it away again.

use std::time::Duration;

use super::SlowError;
use super::change::Change;
use super::injection::Injection;
use super::kind::Kind;
use super::plan::{Content, HOME, Owner, PAM, Plan, RUNS, SSHD_CONFIG};
use super::resolver::Answer;

/// Programs of the account stack and of the session stack, called as someone would have called them.
const ACCESS_CHECK: &str = "/etc/security/access-check";
const SESSION_AUDIT: &str = "/etc/security/session-audit";
const SESSION_CLEANUP: &str = "/etc/security/session-cleanup";
const KEYS_COMMAND: &str = "/etc/ssh/authorized-keys-command";
const FORCED_COMMAND: &str = "/etc/ssh/forced-command";
const LOGIN_SHELL: &str = "/etc/ssh/login-shell";
const SSHRC: &str = "/etc/ssh/sshrc";
const BTMP: &str = "/var/log/btmp";
/// sizeof(struct utmp) of utmp(5), the same on 32 and 64 bits.
const UTMP_OCTETS: u64 = 384;

/// The keys that are nobody's, before the account's own.
fn foreign_key(number: u64) -> String {
    // The head of an ed25519 key's blob with its length, then 42 characters of its 32 octets: any will do (RFC 8709).
    format!("AAAAC3NzaC1lZDI1NTE5AAAAIA{number:042}")
}

/// Adds an injection to a host. `key` is the account's line of authorized_keys.
pub(super) fn add(plan: &mut Plan, injection: Injection, key: &str) -> Result<(), SlowError> {
    let Injection { kind, amount } = injection;
    let wait = waiting(kind, amount);
    match kind {
        Kind::PamAccount => pam_account(plan, &wait),
        Kind::PamSession => pam_session(plan, &wait),
        Kind::CloseSession => pam_close(plan, &wait),
        Kind::Motd => motd(plan, "50-status", &wait),
        Kind::MotdProcesses => motd(plan, "60-landscape", &many_processes(kind, amount)),
        Kind::Lastlog => lastlog(plan, amount),
        Kind::UseDns => use_dns(plan, Answer::After(Duration::from_millis(amount))),
        Kind::UseDnsDead => use_dns(plan, Answer::Never { seconds: amount }),
        Kind::FastDns => {
            plan.resolver(Answer::After(Duration::ZERO))?;
            plan.config("UseDNS yes".into())
        }
        Kind::Libwrap => libwrap(plan, Answer::After(Duration::from_millis(amount))),
        Kind::LibwrapDead => libwrap(plan, Answer::Never { seconds: amount }),
        Kind::NameService => {
            plan.name_service(amount);
            Ok(())
        }
        Kind::KeysCommand => keys_command(plan, &wait, key),
        Kind::ManyKeys => many_keys(plan, amount, key),
        Kind::Bashrc => bashrc(plan, &wait),
        Kind::InteractiveProfile => interactive_profile(plan, &wait),
        Kind::Zshenv => zshenv(plan, &wait),
        Kind::LoginShell => login_shell(plan, &wait),
        Kind::ForcedCommand => forced_command(plan, &wait),
        Kind::Sshrc => sshrc(plan, &wait),
        Kind::UserRc => user_rc(plan, &wait),
        Kind::CpuQuota => {
            plan.quota = Some(amount);
            plan.fix.push(Change::LiftQuota);
            Ok(())
        }
        Kind::RsaHostKey => rsa_host_key(plan),
        Kind::KexGroup18 => {
            let line = "KexAlgorithms diffie-hellman-group18-sha512";
            plan.fix.push(without(SSHD_CONFIG, line));
            plan.config(line.into())
        }
        Kind::KexSntrup761 => {
            // Not undone: what is left in this OpenSSH would be weaker.
            plan.config("KexAlgorithms sntrup761x25519-sha512@openssh.com".into())
        }
        Kind::MaxStartups => max_startups(plan, amount),
        Kind::KnownHosts => {
            plan.known_hosts = amount;
            Ok(())
        }
    }
}

/// Lines of shell that write down that they run, then wait.
fn waiting(kind: Kind, milliseconds: u64) -> String {
    let name = kind.row().name;
    let (seconds, rest) = (milliseconds / 1000, milliseconds % 1000);
    format!("echo {name} >>{RUNS}\nsleep {seconds}.{rest:03}\n")
}

/// Half of the processes execute a program, the other half are forks that never do, as in a real motd.
fn many_processes(kind: Kind, processes: u64) -> String {
    let name = kind.row().name;
    format!(
        "echo {name} >>{RUNS}\ni=0\nwhile [ $i -lt {processes} ]; do\n    \
         if [ $((i % 2)) -eq 0 ]; then /bin/true; else (:); fi\n    i=$((i + 1))\ndone\n"
    )
}

fn without(file: &str, line: &str) -> Change {
    Change::CommentOut {
        file: file.into(),
        line: line.into(),
    }
}

fn script(plan: &mut Plan, path: &str, lines: &str) -> Result<(), SlowError> {
    let text = format!("#!/bin/sh\n{lines}");
    plan.file(path, Owner::Root, 0o755, Content::Text(text))
}

fn home_file(plan: &mut Plan, name: &str, text: String) -> Result<(), SlowError> {
    let path = format!("{HOME}/{name}");
    plan.file(&path, Owner::Account, 0o644, Content::Text(text))
}

fn pam_account(plan: &mut Plan, wait: &str) -> Result<(), SlowError> {
    let line = format!("account    optional     pam_exec.so quiet {ACCESS_CHECK}");
    plan.pam_account(&line);
    plan.fix.push(without(PAM, &line));
    script(plan, ACCESS_CHECK, wait)
}

fn pam_session(plan: &mut Plan, wait: &str) -> Result<(), SlowError> {
    // Without a type it would run once more when the client has gone.
    let line =
        format!("session    optional     pam_exec.so quiet type=open_session {SESSION_AUDIT}");
    plan.pam_session(&line);
    plan.fix.push(without(PAM, &line));
    script(plan, SESSION_AUDIT, wait)
}

fn pam_close(plan: &mut Plan, wait: &str) -> Result<(), SlowError> {
    plan.pam_session(&format!(
        "session    optional     pam_exec.so quiet type=close_session {SESSION_CLEANUP}"
    ));
    script(plan, SESSION_CLEANUP, wait)
}

fn motd(plan: &mut Plan, name: &str, lines: &str) -> Result<(), SlowError> {
    let path = format!("/etc/update-motd.d/{name}");
    plan.fix.push(Change::Mode {
        file: path.clone(),
        mode: 0o644,
    });
    script(plan, &path, lines)
}

fn lastlog(plan: &mut Plan, records: u64) -> Result<(), SlowError> {
    let line = "session    optional     pam_lastlog.so silent";
    let slow = "session    optional     pam_lastlog.so silent showfailed";
    plan.pam_session(slow);
    plan.fix.push(Change::Replace {
        file: PAM.into(),
        line: slow.into(),
        with: line.into(),
    });
    let content = Content::Hole(records * UTMP_OCTETS);
    plan.file(BTMP, Owner::Root, 0o660, content)
}

fn use_dns(plan: &mut Plan, answer: Answer) -> Result<(), SlowError> {
    plan.resolver(answer)?;
    plan.fix.push(Change::Replace {
        file: SSHD_CONFIG.into(),
        line: "UseDNS yes".into(),
        with: "UseDNS no".into(),
    });
    plan.config("UseDNS yes".into())
}

fn libwrap(plan: &mut Plan, answer: Answer) -> Result<(), SlowError> {
    let (file, line) = ("/etc/hosts.deny", "sshd: .example.org");
    plan.resolver(answer)?;
    plan.fix.push(without(file, line));
    let content = Content::Text(format!("{line}\n"));
    plan.file(file, Owner::Root, 0o644, content)
}

fn keys_command(plan: &mut Plan, wait: &str, key: &str) -> Result<(), SlowError> {
    let command = format!("AuthorizedKeysCommand {KEYS_COMMAND}");
    for line in [
        "AuthorizedKeysFile none",
        &command,
        "AuthorizedKeysCommandUser nobody",
    ] {
        plan.fix.push(without(SSHD_CONFIG, line));
        plan.config(line.to_owned())?;
    }
    script(plan, KEYS_COMMAND, &format!("{wait}echo '{key}'\n"))
}

fn many_keys(plan: &mut Plan, lines: u64, key: &str) -> Result<(), SlowError> {
    let path = format!("{HOME}/.ssh/authorized_keys");
    let foreign =
        (0..lines).map(|number| format!("ssh-ed25519 {} user{number}\n", foreign_key(number)));
    let text = foreign.chain([format!("{key}\n")]).collect();
    plan.fix.push(Change::Rewrite {
        file: path.clone(),
        text: format!("{key}\n"),
    });
    plan.file(&path, Owner::Account, 0o600, Content::Text(text))
}

/// What a careful .bashrc begins with.
const BASH_GUARD: &str = "case $- in *i*) ;; *) return ;; esac";

fn bashrc(plan: &mut Plan, wait: &str) -> Result<(), SlowError> {
    plan.shell("/bin/bash")?;
    plan.fix.push(Change::Before {
        file: format!("{HOME}/.bashrc"),
        line: BASH_GUARD.into(),
    });
    home_file(plan, ".bashrc", wait.to_owned())
}

fn interactive_profile(plan: &mut Plan, wait: &str) -> Result<(), SlowError> {
    plan.shell("/bin/bash")?;
    home_file(plan, ".bashrc", format!("{BASH_GUARD}\n{wait}"))?;
    home_file(plan, ".profile", wait.to_owned())
}

fn zshenv(plan: &mut Plan, wait: &str) -> Result<(), SlowError> {
    plan.shell("/bin/zsh")?;
    plan.fix.push(Change::Before {
        file: format!("{HOME}/.zshenv"),
        line: "[[ -o interactive ]] || return 0".into(),
    });
    home_file(plan, ".zshenv", wait.to_owned())
}

fn login_shell(plan: &mut Plan, wait: &str) -> Result<(), SlowError> {
    plan.shell(LOGIN_SHELL)?;
    let change = plan.plain_shell();
    plan.fix.push(change);
    script(plan, LOGIN_SHELL, &format!("{wait}exec /bin/sh \"$@\"\n"))
}

fn forced_command(plan: &mut Plan, wait: &str) -> Result<(), SlowError> {
    let line = format!("ForceCommand {FORCED_COMMAND}");
    plan.fix.push(without(SSHD_CONFIG, &line));
    plan.config(line)?;
    let lines = format!("{wait}exec /bin/sh -c \"${{SSH_ORIGINAL_COMMAND:-exec /bin/sh}}\"\n");
    script(plan, FORCED_COMMAND, &lines)
}

/// sshd runs one file of the two, the user's if there is one.
const RC_FILES: &str = "the rc file that sshd runs";

fn sshrc(plan: &mut Plan, wait: &str) -> Result<(), SlowError> {
    plan.claim(RC_FILES)?;
    plan.fix.push(Change::Remove { file: SSHRC.into() });
    plan.file(SSHRC, Owner::Root, 0o644, Content::Text(wait.to_owned()))
}

fn user_rc(plan: &mut Plan, wait: &str) -> Result<(), SlowError> {
    plan.claim(RC_FILES)?;
    plan.fix.push(Change::Before {
        file: SSHD_CONFIG.into(),
        line: "PermitUserRC no".into(),
    });
    home_file(plan, ".ssh/rc", wait.to_owned())
}

fn rsa_host_key(plan: &mut Plan) -> Result<(), SlowError> {
    let path = "/etc/ssh/ssh_host_rsa_key";
    plan.fix.push(Change::Before {
        file: SSHD_CONFIG.into(),
        line: format!("HostKey {}", super::plan::HOST_KEY),
    });
    plan.config(format!("HostKey {path}"))?;
    plan.other_host_key = Some(RSA_PUBLIC_KEY);
    let content = Content::Text(RSA_KEY.into());
    plan.file(path, Owner::Root, 0o600, content)
}

/// A key for this test bed alone, kept since ssh-keygen would look for its primes for half a minute. Nobody's secret.
const RSA_KEY: &str = include_str!("rsa8192_test_key");
const RSA_PUBLIC_KEY: &str = include_str!("rsa8192_test_key.pub");

fn max_startups(plan: &mut Plan, connections: u64) -> Result<(), SlowError> {
    let line = format!("MaxStartups {connections}:100:{connections}");
    plan.held = connections;
    plan.fix.push(Change::Replace {
        file: SSHD_CONFIG.into(),
        line: line.clone(),
        with: "MaxStartups 100:30:500".into(),
    });
    plan.config(line)?;
    // Held for as long as the host is there.
    plan.config("LoginGraceTime 0".into())
}

/// Lines of known_hosts of other hosts.
pub(super) fn foreign_hosts(lines: u64) -> String {
    (0..lines)
        .map(|number| {
            format!(
                "host{number}.example.org ssh-ed25519 {}\n",
                foreign_key(number)
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::slow::kind::{Role, TABLE};

    fn plan(text: &str) -> Result<Plan, SlowError> {
        let mut plan = Plan::new(30_000);
        for injection in Injection::several(text).unwrap() {
            add(&mut plan, injection, "ssh-ed25519 AAAA")?;
        }
        Ok(plan)
    }

    #[test]
    fn every_cause_has_a_fix_but_the_one_that_only_a_newer_openssh_mends_and_no_decoy_has() {
        for row in TABLE {
            let fix = plan(row.name).unwrap().fix;
            let has_none = row.role == Role::Decoy || row.kind == Kind::KexSntrup761;
            assert_eq!(fix.is_empty(), has_none, "{}", row.name);
        }
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for pair in [
            "use-dns+libwrap",
            "sshrc+user-rc",
            "bashrc+zshenv",
            "bashrc+interactive-profile",
            "kex-group18+kex-sntrup761",
            "motd+motd:50",
        ] {
            assert!(matches!(plan(pair), Err(SlowError::Conflict(_))), "{pair}");
        }
        plan("pam-account+pam-session+motd+motd-processes+use-dns+keys-command+bashrc+sshrc")
            .unwrap();
    }

    #[test]
    fn times_are_written_for_sleep() {
        assert!(waiting(Kind::Motd, 20).ends_with("sleep 0.020\n"));
        assert!(waiting(Kind::Motd, 1_700).ends_with("sleep 1.700\n"));
    }
}
