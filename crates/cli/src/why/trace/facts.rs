//! What a trace says, as facts for the rules. Their names begin with `trace`; where the trace knows better than the user's own
//! commands, theirs are replaced.

use std::time::Duration;

use sshoal_trace::Traced;
use sshoal_why::Facts;

/// PAM's functions, as they are called in facts.
const STACKS: [(&str, &str); 3] = [
    ("pam_sm_acct_mgmt", "trace.pam_account"),
    ("pam_sm_open_session", "trace.pam_session"),
    ("pam_sm_authenticate", "trace.pam_auth"),
];
/// Modules whose time is another cause's.
const APART: [&str; 3] = ["pam_motd.so", "pam_systemd.so", "pam_lastlog.so"];
/// Connections that are named.
const MAX_NAMED: usize = 5;

/// Adds them.
pub(super) fn learn(traced: &Traced, facts: &mut Facts) {
    facts.insert("trace.by", traced.by.as_str());
    facts.insert("trace.wall.time", time(traced.login.wall()));
    for share in traced.shares() {
        facts.insert(format!("trace.{}.time", share.name), time(share.time));
    }
    facts.insert("trace.processes", traced.processes_until_output() as f64);
    let sum = |of: fn(&sshoal_trace::Process) -> u64| -> f64 {
        traced
            .processes()
            .map(|(_, process)| of(process))
            .sum::<u64>() as f64
    };
    facts.insert("trace.opened", sum(|process| process.opened));
    facts.insert("trace.block.octets", sum(|process| process.block_octets));
    connections(traced, facts);
    for (name, fact) in [
        ("pgmajfault", "trace.major_faults"),
        ("pswpin", "trace.swapped_in"),
    ] {
        if let Some(number) = traced.samples.get(name) {
            facts.insert(fact, *number as f64);
        }
    }
    let asked: u64 = traced.lookups.iter().map(|it| it.to - it.from).sum();
    facts.insert("trace.lookups", traced.lookups.len() as f64);
    if asked > 0 {
        facts.insert("trace.lookups.time", time(asked));
    }
    motd(traced, facts);
    pam(traced, facts);
    if let Some((program, waited)) = traced.outside().into_iter().next() {
        facts.insert(
            "trace.program.longest",
            format!("{program} {:.1} ms", ms(waited)),
        );
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

/// What the login waited for, instead of what the user's own run of the scripts took.
fn motd(traced: &Traced, facts: &mut Facts) {
    let Some(whole) = traced.motd_time() else {
        return;
    };
    facts.insert("trace.motd.time", time(whole));
    facts.insert("host.motd_scripts.time", time(whole));
    if let Some((script, taken)) = traced.motd_scripts().into_iter().next() {
        facts.insert(
            "host.motd_scripts.slowest",
            format!("{script} {:.0} ms", ms(taken)),
        );
    }
}

fn pam(traced: &Traced, facts: &mut Facts) {
    for (function, fact) in STACKS {
        let of_it = || {
            traced
                .calls
                .iter()
                .filter(|call| call.probe.function == function)
        };
        if of_it().next().is_none() {
            continue;
        }
        let rest = of_it().filter(|call| !APART.contains(&call.probe.module.as_str()));
        let mut slowest: Option<(&str, u64)> = None;
        let mut whole = 0;
        for call in rest {
            let taken = call.to - call.from;
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

fn time(nanoseconds: u64) -> Duration {
    Duration::from_nanos(nanoseconds)
}

fn ms(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}
