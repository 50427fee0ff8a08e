//! What a trace says, as facts for the rules. Their names begin with `trace`: where a rule finds one it prefers it to what the user's
//! own commands say. What a login waited for a processor that others had is in no cause's own time.

use std::time::Duration;

use sshoal_trace::{Call, Traced};
use sshoal_why::{Facts, Phase};

use super::Followed;

/// PAM's stacks as they are called in facts, and their functions: sshd has credentials set when it opens the session.
const STACKS: [(&str, &[&str]); 3] = [
    ("trace.pam_account", &["pam_sm_acct_mgmt"]),
    (
        "trace.pam_session",
        &["pam_sm_open_session", "pam_sm_setcred"],
    ),
    ("trace.pam_auth", &["pam_sm_authenticate"]),
];
/// Modules that have causes of their own, and what their time is called.
const APART: [(&str, &str); 3] = [
    ("pam_motd.so", "trace.pam_motd.time"),
    ("pam_systemd.so", "trace.pam_systemd.time"),
    ("pam_lastlog.so", "trace.pam_lastlog.time"),
];
/// What something took by itself: of several logins the least counts.
const OWN: [&str; 13] = [
    "trace.pam_account.time",
    "trace.pam_session.time",
    "trace.pam_auth.time",
    "trace.pam_motd.time",
    "trace.pam_systemd.time",
    "trace.pam_lastlog.time",
    "trace.motd.time",
    "trace.command.time",
    "trace.shell.time",
    "trace.before_command.time",
    "trace.spawned.time",
    "trace.server_lookups.time",
    "trace.keys_command.time",
];
/// Connections, and hosts that were asked for, that are named.
const MAX_NAMED: usize = 5;

/// Adds what a login says, and of what others took by themselves the least.
pub(super) fn learn(followed: &Followed, others: &[Followed], facts: &mut Facts) {
    let before = facts.clone();
    learn_one(&followed.traced, facts);
    for other in others {
        let mut known = before.clone();
        learn_one(&other.traced, &mut known);
        keep_least(facts, &known);
    }
    // What one login waits in a phase says nothing of another one.
    if !others.is_empty() {
        contended(followed, others, facts);
    }
}

/// What each login has waited for a processor in a phase at least.
fn contended(followed: &Followed, others: &[Followed], facts: &mut Facts) {
    let in_phase = |followed: &Followed, phase: Phase| -> u64 {
        let lasted = followed.phases.iter().filter(|(known, _)| *known == phase);
        lasted
            .map(|(_, lasted)| followed.traced.contended(*lasted))
            .sum()
    };
    for phase in Phase::ALL {
        let others = others.iter().map(|other| in_phase(other, phase));
        let least = others.fold(in_phase(followed, phase), u64::min);
        if least > 0 {
            facts.insert(
                format!("trace.phase.{}.contended.time", phase.name()),
                time(least),
            );
        }
    }
}

fn keep_least(facts: &mut Facts, other: &Facts) {
    for name in OWN {
        if let Some((time, other)) = facts.time(name).zip(other.time(name)) {
            facts.insert(name, time.min(other));
        }
    }
}

fn learn_one(traced: &Traced, facts: &mut Facts) {
    let tells = |what: &str| !traced.means.lacks(what);
    facts.insert("trace.by", traced.means.by.as_str());
    facts.insert("trace.wall.time", time(traced.login.wall()));
    facts.insert("trace.lost", traced.lost as f64);
    if tells("time") {
        for share in traced.shares() {
            facts.insert(format!("trace.{}.time", share.name), time(share.time));
            if ["contention", "storage"].contains(&share.name) {
                let part = 100.0 * share.time as f64 / traced.login.wall().max(1) as f64;
                facts.insert(format!("trace.{}.share", share.name), part);
            }
        }
    }
    facts.insert("trace.processes", traced.processes_until_output() as f64);
    let sum = |of: fn(&sshoal_trace::Process) -> u64| -> f64 {
        traced
            .processes()
            .map(|(_, process)| of(process))
            .sum::<u64>() as f64
    };
    if tells("files") {
        facts.insert("trace.opened", sum(|process| process.opened));
        files(traced, facts);
    }
    if tells("disks") {
        facts.insert("trace.block.octets", sum(|process| process.block_octets));
    }
    if tells("connections") {
        connections(traced, facts);
    }
    for (name, fact) in [
        ("pgmajfault", "trace.major_faults"),
        ("pswpin", "trace.swapped_in"),
    ] {
        if let Some(number) = traced.samples.get(name) {
            facts.insert(fact, *number as f64);
        }
    }
    if tells("functions") {
        if tells("name-service") {
            lookups(traced, facts);
        }
        if tells("time") && tells("name-service") {
            facts.insert("trace.server_lookups.time", time(traced.server_lookups()));
        }
    }
    motd(traced, facts);
    pam(traced, facts);
    apart(traced, facts);
    programs(traced, facts);
    let (calls, asked) = traced.users();
    if calls > 0 {
        facts.insert("trace.users", calls as f64);
        facts.insert("trace.users.time", time(asked));
    }
    if let Some((program, waited)) = traced.outside().into_iter().next() {
        facts.insert(
            "trace.program.longest",
            format!("{program} {:.1} ms", ms(waited)),
        );
    }
}

fn lookups(traced: &Traced, facts: &mut Facts) {
    let asked: u64 = traced.lookups.iter().map(|it| it.to - it.from).sum();
    facts.insert("trace.lookups", traced.lookups.len() as f64);
    if asked > 0 {
        facts.insert("trace.lookups.time", time(asked));
    }
    let mut names: Vec<&str> = traced
        .lookups
        .iter()
        .filter_map(|call| call.about.as_deref())
        .collect();
    names.sort_unstable();
    names.dedup();
    if !names.is_empty() {
        names.truncate(MAX_NAMED);
        facts.insert("trace.lookups.of", names.join(", "));
    }
}

fn files(traced: &Traced, facts: &mut Facts) {
    let files = traced.files();
    if let Some(longest) = files.first() {
        let words = format!("{} {:.1} ms", longest.path, ms(longest.time));
        facts.insert("trace.opened.longest", words);
    }
    if let Some(most) = files.iter().max_by_key(|file| file.times) {
        let words = format!("{} {} times", most.path, most.times);
        facts.insert("trace.opened.most", words);
    }
}

fn connections(traced: &Traced, facts: &mut Facts) {
    let made: Vec<String> = traced
        .processes()
        .flat_map(|(_, process)| &process.connections)
        .map(|peer| format!("{} port {}", peer.address, peer.port))
        .collect();
    facts.insert("trace.connections", made.len() as f64);
    if !made.is_empty() {
        facts.insert(
            "trace.connections.to",
            made[..made.len().min(MAX_NAMED)].join(", "),
        );
    }
}

/// The scripts of update-motd.d, as the login itself ran them.
fn motd(traced: &Traced, facts: &mut Facts) {
    let Some(whole) = traced.motd_time() else {
        return;
    };
    facts.insert("trace.motd.time", time(whole));
    if let Some((script, taken)) = traced.motd_scripts().into_iter().next() {
        let text = format!("{script} {:.0} ms", ms(taken));
        facts.insert("trace.motd.slowest", text);
    }
}

/// What the server had run: the command, what came before it, and what it asked for keys.
fn programs(traced: &Traced, facts: &mut Facts) {
    facts.insert("trace.command.time", time(traced.command_time()));
    facts.insert("trace.before_command.time", time(traced.before_command()));
    let tells_time = !traced.means.lacks("time");
    if tells_time {
        facts.insert("trace.spawned.time", time(traced.spawned()));
    }
    // What is run in its place is no shell's start.
    if tells_time && facts.yes("host.forced_command") != Some(true) {
        facts.insert("trace.shell.time", time(traced.command_time()));
    }
    let command = facts.text("host.sshd_config.AuthorizedKeysCommand");
    let program = command.and_then(|line| line.split_whitespace().next());
    let is_configured = facts.yes("host.sshd_config.readable") == Some(true);
    let asked = match program {
        Some(program) => Some(traced.runs_of(program)),
        None if is_configured || traced.means.lacks("functions") => None,
        None => Some(traced.asked_for_keys()),
    };
    if let Some((runs @ 1.., taken)) = asked {
        facts.insert("trace.keys_command", runs as f64);
        facts.insert("trace.keys_command.time", time(taken / runs as u64));
    }
}

fn pam(traced: &Traced, facts: &mut Facts) {
    for (fact, functions) in STACKS {
        let of_it = || {
            let calls = traced.calls.iter();
            calls.filter(|call| functions.contains(&call.probe.function.as_str()))
        };
        if of_it().next().is_none() {
            continue;
        }
        let is_apart = |call: &&Call| APART.iter().any(|(module, _)| call.probe.module == *module);
        let rest = of_it().filter(|call| !is_apart(call));
        let mut slowest: Option<(&str, u64)> = None;
        let mut whole = 0;
        for call in rest {
            let taken = traced.own_of_module(call);
            whole += taken;
            if slowest.is_none_or(|(_, most)| taken > most) {
                slowest = Some((&call.probe.module, taken));
            }
        }
        facts.insert(format!("{fact}.time"), time(whole));
        if let Some((module, taken)) = slowest {
            facts.insert(
                format!("{fact}.slowest"),
                format!("{module} {:.1} ms", ms(taken)),
            );
        }
    }
}

fn apart(traced: &Traced, facts: &mut Facts) {
    for (module, fact) in APART {
        let opens = |call: &&Call| {
            call.probe.module == module && call.probe.function == "pam_sm_open_session"
        };
        let calls = traced.calls.iter().filter(opens);
        let taken: u64 = calls.map(|call| traced.own_of_module(call)).sum();
        if taken > 0 {
            facts.insert(fact, time(taken));
        }
    }
}

fn time(nanoseconds: u64) -> Duration {
    Duration::from_nanos(nanoseconds)
}

fn ms(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_logins_the_least_that_something_took_by_itself_counts() {
        let of = |ms: [u64; 2]| {
            let mut facts = Facts::default();
            facts.insert("trace.motd.time", Duration::from_millis(ms[0]));
            facts.insert("trace.contention.time", Duration::from_millis(ms[1]));
            facts
        };
        let mut facts = of([20, 20]);
        facts.insert("trace.shell.time", Duration::from_millis(5));
        keep_least(&mut facts, &of([10, 10]));
        keep_least(&mut facts, &of([30, 30]));
        let time = |name| facts.time(name).map(|time| time.as_millis());
        assert_eq!(time("trace.motd.time"), Some(10));
        assert_eq!(time("trace.contention.time"), Some(20));
        assert_eq!(time("trace.shell.time"), Some(5));
    }
}
