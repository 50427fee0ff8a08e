//! After the login: PAM's session, and the shell.

use std::time::Duration;

use super::{Cause, Payer, Resource, of_openssh};
use crate::cost::Cost;
use crate::evidence::{Phase, Tier};
use crate::fix::{Fix, Place};
use crate::reckoning::LEAST;
use crate::signs::{Answer, Case, Test, known, needed, proof, shape};
use crate::words;

/// The time-out of a call over D-Bus is 25 s; sshd goes on without the session then.
const LOGIND_TIMEOUT: Duration = Duration::from_secs(20);
/// A logind that is well answers sooner; and less is the module's, as any other's.
const LOGIND_MS: u64 = 50;

/// What a module of the session stack takes before it is to blame.
const SESSION_MODULES: Duration = Duration::from_millis(5);
/// Modules that have causes of their own: the cause, what the module took, and the module. What that cause does not take is told of the
/// module as of any other.
const APART: [(&str, &str, &str); 3] = [
    ("pam-motd", "trace.pam_motd.time", "pam_motd.so"),
    ("pam-systemd", "trace.pam_systemd.time", "pam_systemd.so"),
    ("pam-lastlog", "trace.pam_lastlog.time", "pam_lastlog.so"),
];

/// What a shell's start may take beyond that of a bare one.
const SHELL_MS: u64 = 10;

/// How long the scripts of update-motd.d take: of a login itself, or else as the user runs them.
const MOTD_TIMES: &[&str] = &["trace.motd.time", "host.motd_scripts.time"];

/// What runs before the command: by itself, or else with the command.
const RC_TIMES: &[&str] = &["trace.before_command.time", "host.second_exec.time"];

/// What the user's shell takes more than a bare one: by itself, or else as both were timed.
const SHELL: Cost = Cost::Bounded(
    &["trace.shell.time"],
    &Cost::Difference("host.shell.time", "host.bare_exec.time"),
);

pub(super) const CAUSES: &[Cause] = &[
    Cause {
        id: "pam-motd",
        title: "pam_motd runs the scripts of update-motd.d at each login, even for a command",
        phases: &[Phase::ChannelOpen],
        tier: Tier::NoRoot,
        payer: Payer::Everyone,
        resource: Resource::Programs,
        signs: &[
            needed(Test::By(asks_pam)),
            needed(Test::By(motd)),
            needed(Test::By(motd_is_slow)),
            proof(Test::By(motd_is_slow)),
            shape(Test::Lost(Phase::ChannelOpen)),
        ],
        cost: Cost::BoundedBy(motd_time, &Cost::Excess),
        fix: Fix::commands(
            Place::Host,
            "/etc/pam.d/sshd",
            "session optional pam_motd.so noupdate",
            "session optional pam_motd.so motd=/run/motd.dynamic   (the former line)",
            // Behind the module's name: behind its options there may be a comment, or the line goes on.
            r"edit_pam '/^[^#]*noupdate/!s/^\([[:space:]]*-*session[^#]*pam_motd\.so\)/\1 noupdate/'",
        ),
        source: "pam_motd(8); measured: it runs for commands without a terminal, too",
    },
    Cause {
        id: "pam-systemd",
        title: "logind answers pam_systemd late, or not at all",
        phases: &[Phase::ChannelOpen],
        tier: Tier::NoRoot,
        payer: Payer::Everyone,
        resource: Resource::Programs,
        signs: &[
            needed(Test::By(asks_pam)),
            needed(Test::Any(&[
                Test::Has {
                    fact: "host.pam.systemd",
                    any: &["pam_systemd"],
                },
                Test::Slow {
                    fact: "trace.pam_systemd.time",
                    ms: LOGIND_MS,
                },
            ])),
            known(Test::By(waits_for_logind)),
            proof(Test::Slow {
                fact: "trace.pam_systemd.time",
                ms: LOGIND_MS,
            }),
        ],
        cost: Cost::Bounded(&["trace.pam_systemd.time"], &Cost::Excess),
        // Those who sit at the host may notice.
        fix: Fix::by_hand(
            Place::Host,
            "systemd-logind",
            "systemctl restart systemd-logind",
            "none needed: nothing is configured",
        ),
        source: "D-Bus' time-out of 25 s; \"Failed to create session\" in the journal",
    },
    Cause {
        id: "pam-lastlog",
        title: "pam_lastlog reads all failed logins (showfailed)",
        phases: &[Phase::ChannelOpen],
        tier: Tier::NoRoot,
        payer: Payer::Everyone,
        resource: Resource::Files,
        signs: &[
            needed(Test::By(asks_pam)),
            needed(Test::Has {
                fact: "host.pam.lastlog",
                any: &["showfailed"],
            }),
            proof(Test::Slow {
                fact: "trace.pam_lastlog.time",
                ms: 10,
            }),
            shape(Test::Lost(Phase::ChannelOpen)),
        ],
        cost: Cost::Bounded(&["trace.pam_lastlog.time"], &Cost::Excess),
        fix: Fix::commands(
            Place::Host,
            "/etc/pam.d/sshd",
            "session optional pam_lastlog.so",
            "the former line, with showfailed",
            r"edit_pam 's/^\([[:space:]]*-*session[^#]*pam_lastlog\.so[^#]*\)[[:space:]]showfailed/\1/'",
        ),
        source: "pam_lastlog(8): it reads the whole of /var/log/btmp",
    },
    Cause {
        id: "pam-session",
        title: "a module of PAM's session stack is slow",
        phases: &[Phase::ChannelOpen],
        tier: Tier::Root,
        payer: Payer::Everyone,
        resource: Resource::Programs,
        signs: &[
            needed(Test::Sshd {
                keyword: "UsePAM",
                default: "no",
                is: &["yes"],
            }),
            needed(Test::By(session_is_slow)),
            proof(Test::By(session_is_slow)),
            shape(Test::Lost(Phase::ChannelOpen)),
        ],
        cost: Cost::BoundedBy(session_modules, &Cost::Excess),
        fix: Fix::by_hand(
            Place::Host,
            "/etc/pam.d/sshd (and what it includes)",
            "# session optional MODULE   (the slow line of the session stack, out of use)",
            "the former session line",
        ),
        source: "sshd.c: do_pam_session runs between the login and the first channel",
    },
    Cause {
        id: "audit",
        title: "audit rules or SELinux slow the session down",
        phases: &[Phase::ChannelOpen, Phase::FirstOutput],
        tier: Tier::Root,
        payer: Payer::Everyone,
        resource: Resource::Cpu,
        signs: &[
            shape(Test::Lost(Phase::ChannelOpen)),
            shape(Test::Lost(Phase::FirstOutput)),
        ],
        cost: Cost::Excess,
        fix: Fix::by_hand(
            Place::Host,
            "/etc/audit/rules.d",
            "fewer rules for system calls (auditctl -s tells what is lost and waited for)",
            "the former rules, and augenrules --load",
        ),
        source: "auditctl(8)",
    },
    Cause {
        id: "shell-startup",
        title: "the shell's start-up files are slow, and run for a command, too",
        phases: &[Phase::FirstOutput],
        tier: Tier::NoRoot,
        payer: Payer::Everyone,
        resource: Resource::Programs,
        signs: &[
            needed(Test::By(shell_is_slow)),
            shape(Test::Lost(Phase::FirstOutput)),
        ],
        cost: SHELL,
        fix: Fix::by_hand(
            Place::Host,
            "~/.bashrc (or what host.shell_startup.files names), as its first line",
            "case $- in *i*) ;; *) return ;; esac",
            "that line taken out again",
        ),
        source: "bash(1): a shell started by sshd reads ~/.bashrc; measured: a pyenv init takes 97 to 260 ms",
    },
    Cause {
        id: "login-shell",
        title: "the account's shell is a program that takes its time before the command",
        phases: &[Phase::FirstOutput],
        tier: Tier::NoRoot,
        payer: Payer::Everyone,
        resource: Resource::Programs,
        signs: &[
            needed(Test::By(shell_itself_is_slow)),
            shape(Test::Lost(Phase::FirstOutput)),
        ],
        cost: SHELL,
        fix: Fix::by_hand(
            Place::Host,
            "/etc/passwd, or where the account is",
            "chsh -s /bin/sh USER   (the real shell in place of the program)",
            "chsh -s PROGRAM USER",
        ),
        source: "sshd(8): each command is run by the user's login shell",
    },
    Cause {
        id: "forced-command",
        title: "another program is run in place of the command (ForceCommand, or command= of the key)",
        phases: &[Phase::FirstOutput],
        tier: Tier::NoRoot,
        payer: Payer::Everyone,
        resource: Resource::Programs,
        signs: &[
            needed(Test::Is("host.forced_command")),
            shape(Test::Lost(Phase::FirstOutput)),
        ],
        cost: Cost::Bounded(
            &["trace.command.time", "host.second_exec.time"],
            &Cost::Excess,
        ),
        fix: Fix::by_hand(
            Place::Host,
            "/etc/ssh/sshd_config, or the key's line in authorized_keys",
            "that program made quick, or without ForceCommand and command=",
            "the former line",
        ),
        source: "sshd_config(5), ForceCommand; sshd(8), AUTHORIZED_KEYS FILE FORMAT",
    },
    Cause {
        id: "sshrc",
        title: "/etc/ssh/sshrc runs before each command",
        phases: &[Phase::FirstOutput],
        tier: Tier::NoRoot,
        payer: Payer::Everyone,
        resource: Resource::Programs,
        signs: &[
            needed(Test::Is("host.sshrc")),
            // sshd runs one file of the two, the user's if there is one.
            needed(Test::Not(&Test::By(runs_user_rc))),
            shape(Test::By(of_openssh)),
            shape(Test::Lost(Phase::FirstOutput)),
        ],
        cost: Cost::Bounded(RC_TIMES, &Cost::Excess),
        // sshd stores X11's cookie itself where there is no such file, so an empty one would not do.
        fix: Fix::by_hand(
            Place::Host,
            "/etc/ssh/sshrc",
            "mv /etc/ssh/sshrc /etc/ssh/sshrc.off   (and what it does elsewhere, if it is needed)",
            "mv /etc/ssh/sshrc.off /etc/ssh/sshrc",
        ),
        source: "sshd(8), SSHRC",
    },
    Cause {
        id: "ssh-rc",
        title: "~/.ssh/rc runs before the command",
        phases: &[Phase::FirstOutput],
        tier: Tier::NoRoot,
        payer: Payer::Everyone,
        resource: Resource::Programs,
        signs: &[
            needed(Test::By(runs_user_rc)),
            shape(Test::By(of_openssh)),
            shape(Test::Lost(Phase::FirstOutput)),
        ],
        cost: Cost::Bounded(RC_TIMES, &Cost::Excess),
        fix: Fix::sshd("PermitUserRC no"),
        source: "sshd(8), SSHRC",
    },
];

/// Whether sshd may have PAM open its sessions: its files may lie there for another server, or for none.
fn asks_pam(case: &Case) -> Answer {
    if let other @ Answer::No(_) = of_openssh(case) {
        return other;
    }
    let keyword = Test::Sshd {
        keyword: "UsePAM",
        default: "no",
        is: &["yes"],
    };
    match keyword.answer(case) {
        Answer::Unknown(words) => Answer::Yes(words),
        known => known,
    }
}

/// Whether sshd runs ~/.ssh/rc.
fn runs_user_rc(case: &Case) -> Answer {
    let forbidden = Test::Sshd {
        keyword: "PermitUserRC",
        default: "yes",
        is: &["no"],
    };
    match forbidden.answer(case) {
        Answer::Yes(words) => Answer::No(words),
        _ => Test::Is("host.user_rc").answer(case),
    }
}

/// Whether a login was traced with all programs that it ran, and none was a script of update-motd.d.
fn has_run_no_motd(case: &Case) -> bool {
    let by = case.evidence.facts.text("trace.by");
    let tells_all = by.is_some_and(|by| ["tracefs", "proc-connector"].contains(&by));
    tells_all && case.number("trace.lost") == Some(0.0) && case.time(MOTD_TIMES[0]).is_none()
}

/// How long the scripts of update-motd.d take, if that is known.
pub(crate) fn motd_time(case: &Case) -> Option<Duration> {
    if has_run_no_motd(case) {
        return Some(Duration::ZERO);
    }
    // One that was ended after a while takes a login longer than that.
    let times = match case.evidence.facts.yes("host.motd_scripts.cut_short") {
        Some(true) => &MOTD_TIMES[..1],
        _ => MOTD_TIMES,
    };
    times.iter().find_map(|fact| case.time(fact))
}

fn motd_is_slow(case: &Case) -> Answer {
    if has_run_no_motd(case) {
        return Answer::No("the traced login has run no script of update-motd.d".to_owned());
    }
    let slow = Test::FirstSlow {
        facts: MOTD_TIMES,
        ms: 10,
    };
    slow.answer(case)
}

/// Whether pam_motd runs scripts: a line of it without noupdate.
fn motd(case: &Case) -> Answer {
    let Some(lines) = case.evidence.facts.text("host.pam.motd") else {
        return Answer::Unknown("PAM's lines for sshd are not known".to_owned());
    };
    let runs = |line: &&str| line.contains("pam_motd") && !line.contains("noupdate");
    if let Some(line) = lines.lines().find(runs) {
        let slowest = case.word("trace.motd.slowest");
        let slowest = slowest.or_else(|| case.word("host.motd_scripts.slowest"));
        let slowest = slowest.map_or(String::new(), |slowest| format!("; slowest: {slowest}"));
        Answer::Yes(format!(
            "/etc/pam.d/sshd: {}{slowest}",
            words::foreign(line)
        ))
    } else {
        Answer::No("PAM's lines for sshd run no scripts of update-motd.d".to_owned())
    }
}

/// What modules of the session stack take that no cause of their own explains.
fn session_modules(case: &Case) -> Option<Duration> {
    let others = case.time("trace.pam_session.time")?;
    Some(
        others
            + unexplained_modules(case)
                .map(|(_, time)| time)
                .sum::<Duration>(),
    )
}

fn unexplained_modules(case: &Case) -> impl Iterator<Item = (&'static str, Duration)> {
    APART.iter().filter_map(|(cause, fact, module)| {
        let rest = case.time(fact)?.saturating_sub(case.ledger.taken_by(cause));
        (rest >= LEAST).then_some((*module, rest))
    })
}

fn session_is_slow(case: &Case) -> Answer {
    let Some(time) = session_modules(case) else {
        return crate::signs::unknown("trace.pam_session.time");
    };
    let mut told = format!("trace.pam_session.time: {}", words::time(time));
    let slowest = case.word("trace.pam_session.slowest");
    let apart =
        unexplained_modules(case).map(|(module, time)| format!("{module} {}", words::time(time)));
    for module in slowest.into_iter().chain(apart) {
        told = format!("{told}; {module}");
    }
    if time >= SESSION_MODULES {
        Answer::Yes(told)
    } else {
        Answer::No(told)
    }
}

fn waits_for_logind(case: &Case) -> Answer {
    let asked = Test::Slow {
        fact: "trace.pam_systemd.time",
        ms: LOGIND_MS,
    };
    match asked.answer(case) {
        Answer::Unknown(_) => {}
        known => return known,
    }
    let phase = Phase::ChannelOpen;
    let Some(words) = case.told(phase) else {
        return Answer::Unknown("no channel was opened".to_owned());
    };
    if case.ledger.remaining(phase) >= LOGIND_TIMEOUT {
        Answer::Yes(words)
    } else {
        Answer::No(words)
    }
}

/// A shell with its files against a bare one, on the same connection.
fn shell_is_slow(case: &Case) -> Answer {
    match case.word("host.shell_startup.files") {
        Some(files) if files.is_empty() => shell_takes(case, |words| {
            Answer::No(format!("{words}; it has no start-up files"))
        }),
        Some(files) => shell_takes(case, |words| {
            Answer::Yes(format!("{words}; start-up files: {files}"))
        }),
        None => shell_takes(case, Answer::Yes),
    }
}

/// The same of one that has no files to read.
fn shell_itself_is_slow(case: &Case) -> Answer {
    let shell = case.word("host.shell").unwrap_or_default();
    match case.word("host.shell_startup.files") {
        Some(files) if files.is_empty() => {
            shell_takes(case, |words| Answer::Yes(format!("{words}; it is {shell}")))
        }
        Some(files) => Answer::No(format!("it has start-up files: {files}")),
        None => crate::signs::unknown("host.shell_startup.files"),
    }
}

/// What a shell is that takes longer than a bare one.
fn shell_takes(case: &Case, slow: impl Fn(String) -> Answer) -> Answer {
    let times = case
        .time("host.shell.time")
        .zip(case.time("host.bare_exec.time"));
    let Some((shell, bare)) = times else {
        return Answer::Unknown("the shell was not timed on the host".to_owned());
    };
    let words = format!(
        "the user's shell takes {}, a bare one {}",
        words::time(shell),
        words::time(bare)
    );
    if shell.saturating_sub(bare).as_millis() >= u128::from(SHELL_MS) {
        slow(words)
    } else {
        Answer::No(words)
    }
}
