//! What was measured of a host, put together for the rules.

use std::time::Duration;

use sshoal_fleet::{Failure, FailureKind};
use sshoal_net::TimedLogin;
use sshoal_why::{Client, Evidence, Facts, Login, Phase, Span, Tier};

use super::host;
use super::logins::Done;
use super::ours::{self, Apart};
use super::stock;

/// Of the facts about the host those that are about OpenSSH's files, by how their names begin.
const OF_OPENSSH: [&str; 4] = [
    "host.sshd_config.",
    "host.tcp_wrappers",
    "host.sshrc",
    "host.user_rc",
];

/// What is known of one host besides its logins.
pub(super) struct Known {
    /// What the user calls it.
    pub(super) host: String,
    /// What was found out on this machine.
    pub(super) facts: Facts,
    /// Whether anything was to be run on the host.
    pub(super) asks_host: bool,
    /// Why sshoal's own client cannot log in there at all.
    pub(super) foreign: Option<String>,
}

/// One host's evidence, of all its logins in order.
pub(super) fn evidence(known: Known, done: &[&Done]) -> Evidence {
    let taken: Vec<(&Done, Option<Apart>)> = done.iter().map(|done| (*done, apart(done))).collect();
    let apart = || taken.iter().filter_map(|(_, apart)| apart.as_ref());
    let logins = taken.iter().filter_map(|(done, apart)| login(done, apart));
    let mut evidence = Evidence {
        host: known.host,
        address: apart().find_map(|apart| apart.address.clone()),
        identification: done.iter().find_map(|it| it.timed.identification.clone()),
        tier: Tier::Client,
        tier_notes: Vec::new(),
        round_trips: apart().filter_map(|apart| apart.connect).collect(),
        logins: logins.collect(),
        facts: known.facts,
    };
    if let Some(why) = known.foreign {
        let note =
            format!("sshoal's own client cannot log in there ({why}); ssh alone was measured");
        evidence.tier_notes.push(note);
    }
    of_logins(&taken, &mut evidence);
    of_host(&taken, known.asks_host, &mut evidence);
    evidence
}

fn apart(done: &Done) -> Option<Apart> {
    (done.by == Client::Sshoal).then(|| ours::apart(&done.timed))
}

/// A login that was begun.
fn login(done: &Done, apart: &Option<Apart>) -> Option<Login> {
    let spans: Vec<Span> = match apart {
        Some(apart) => apart.spans.clone(),
        None => stock::spans(&done.timed),
    };
    let failure = done.failure.as_ref().map(words);
    (!spans.is_empty()).then_some(Login {
        by: done.by,
        spans,
        failure,
    })
}

fn words(failure: &Failure) -> String {
    format!("{}: {}", failure.kind, failure.detail)
}

/// Facts that the logins tell.
fn of_logins(taken: &[(&Done, Option<Apart>)], evidence: &mut Evidence) {
    let facts = &mut evidence.facts;
    let ours = || {
        taken
            .iter()
            .filter_map(|(done, apart)| Some((*done, apart.as_ref()?)))
    };
    for (name, text) in [
        ("login.kex", ours().find_map(|(done, _)| done.timed.kex)),
        (
            "login.host_key",
            ours().find_map(|(done, _)| done.timed.host_key),
        ),
        (
            "login.method",
            ours().find_map(|(_, apart)| apart.method.as_deref()),
        ),
    ] {
        if let Some(text) = text {
            facts.insert(name, text);
        }
    }
    if let Some((_, apart)) = ours().find(|(_, apart)| apart.method.is_some()) {
        facts.insert("login.key_probes", f64::from(apart.probes));
    }
    let methods = ours().find_map(|(done, _)| done.timed.methods.clone());
    if let Some(methods) = methods {
        facts.insert("login.methods", methods.join(","));
    }
    // Only the way there is this side's; what failed on it is the same each time, or is no cause.
    if let Some((_, apart)) = ours().find(|(_, apart)| !apart.failed_addresses.is_empty()) {
        facts.insert(
            "local.addresses.failed",
            apart.failed_addresses.len() as f64,
        );
        facts.insert("local.addresses.failed.time", lost_connecting(apart));
        if let Some([failed, answered]) = apart.families() {
            facts.insert("local.addresses.failed.family", failed);
            facts.insert("local.addresses.answered.family", answered);
        }
    }
    of_ssh(taken, facts);
    let refused = taken.iter().filter_map(|(done, _)| done.failure.as_ref());
    let mut refused = refused.filter(|failure| failure.kind == FailureKind::Throttled);
    if let Some(failure) = refused.next() {
        facts.insert("login.refused_text", failure.detail.as_str());
    }
}

/// What ssh's own log says that it did on this side, in the middle of its logins.
fn of_ssh(taken: &[(&Done, Option<Apart>)], facts: &mut Facts) {
    let of_ssh = taken.iter().filter(|(done, _)| done.by == Client::Ssh);
    let judged: Vec<stock::Judging> = of_ssh
        .map(|(done, _)| stock::judging(&done.timed))
        .collect();
    let known_hosts: Vec<Duration> = judged.iter().filter_map(|it| it.known_hosts).collect();
    let dns: Vec<Duration> = judged.iter().filter_map(|it| it.host_key_dns).collect();
    for (name, times) in [
        ("ssh.known_hosts.time", known_hosts),
        ("ssh.host_key_dns.time", dns),
    ] {
        if let Some(time) = middle(&times) {
            facts.insert(name, time);
        }
    }
}

/// What connecting took beside the connection that was made.
fn lost_connecting(apart: &Apart) -> Duration {
    let connect = apart.spans.iter().find(|span| span.phase == Phase::Connect);
    let whole = connect.map_or(Duration::ZERO, |span| span.duration);
    whole.saturating_sub(apart.connect.unwrap_or_default())
}

/// What was found out on the host, after the last login by sshoal.
fn of_host(taken: &[(&Done, Option<Apart>)], asks_host: bool, evidence: &mut Evidence) {
    let mut ours = taken
        .iter()
        .filter_map(|(done, apart)| Some((*done, apart.as_ref()?)));
    let Some((last, apart)) = ours.next_back() else {
        return;
    };
    let timed = &last.timed;
    if let Some(time) = middle(&timed.round_trips) {
        evidence.facts.insert("login.sign_of_life.time", time);
    }
    if evidence.round_trips.is_empty() {
        // Others have made the connection: this is all that is known of the way.
        evidence.round_trips.clone_from(&timed.round_trips);
    }
    if last.failure.is_some() {
        let note = "nobody was logged in, so that nothing could be run on the host";
        return evidence.tier_notes.push(note.to_owned());
    }
    if !asks_host {
        let note = "nothing was run on the host (--no-host)";
        return evidence.tier_notes.push(note.to_owned());
    }
    let first = ours.next().map(|(first, _)| &first.timed);
    let mut told = Facts::default();
    match learn(first, timed, apart, &mut told) {
        Ok(()) => evidence.tier = Tier::NoRoot,
        Err(note) => evidence.tier_notes.push(note),
    }
    let server = evidence.identification.as_deref();
    let is_openssh = server.is_none_or(|server| server.contains("OpenSSH"));
    let is_of_openssh = |name: &str| OF_OPENSSH.iter().any(|begin| name.starts_with(begin));
    // They may lie there of a server that was there before.
    for (name, fact) in told
        .iter()
        .filter(|(name, _)| is_openssh || !is_of_openssh(name))
    {
        evidence.facts.insert(name, fact.clone());
    }
}

/// `first` is the first of several logins.
///
/// # Errors
///
/// Nothing could be found out; why, in words.
fn learn(
    first: Option<&TimedLogin>,
    timed: &TimedLogin,
    apart: &Apart,
    facts: &mut Facts,
) -> Result<(), String> {
    let [seconds @ .., script] = timed.errands.as_slice() else {
        return Err("no further session could be had on the connection".to_owned());
    };
    let at_first = first.and_then(|first| first.errands.first());
    host::learn(at_first, script, facts)?;
    let login: Duration = apart.spans.iter().map(|span| span.duration).sum();
    // The sessions are those of the same processes.
    let sessions: Duration = seconds.iter().map(|errand| errand.took).sum();
    if let Some(waited) = facts.time("host.contention.time") {
        let whole = (login + sessions).as_secs_f64();
        let share = waited.as_secs_f64() / whole.max(f64::MIN_POSITIVE);
        facts.insert("host.contention.share", (share * 100.0).min(100.0));
    }
    // What else happens on the host makes one of them longer: the least is the session's own.
    let firsts = seconds.iter().filter_map(|errand| errand.output.first());
    if let Some(time) = firsts.map(|(time, _)| *time).min() {
        facts.insert("host.second_exec.time", time);
    }
    let first = apart
        .spans
        .iter()
        .find(|span| span.phase == Phase::FirstOutput);
    if let Some(span) = first.filter(|_| apart.has_output) {
        facts.insert("host.shell.time", span.duration);
        // What this session would have taken with a shell that reads nothing.
        let times = facts
            .time(host::SHELL_STARTUP)
            .zip(facts.time(host::SHELL_BARE));
        if let Some((startup, bare)) = times {
            let more = startup.saturating_sub(bare);
            // A shell that reads nothing takes its time, too.
            let without = span.duration.saturating_sub(more).max(bare);
            facts.insert("host.bare_exec.time", without);
        }
    }
    Ok(())
}

fn middle(times: &[Duration]) -> Option<Duration> {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

#[cfg(test)]
#[path = "compose_tests.rs"]
mod tests;
