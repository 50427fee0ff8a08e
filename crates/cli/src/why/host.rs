//! What a user without rights finds out on the host: a script for sh(1), and what its lines say. The facts' names begin with
//! `host`.
//!
//! Nothing is timed on the host, whose sh has no clock: what is timed begins with one line and ends with another, and the
//! times at which these arrive differ by as much.

use std::collections::HashMap;
use std::time::Duration;

use sshoal_net::{Errand, ErrandDone, ErrandEnd};
use sshoal_why::{Fact, Facts};

use super::logins::Following;
use super::throttling::Throttling;

/// Runs on the host; see there.
const SCRIPT: &str = include_str!("host_script.sh");
/// Most octets of a line that are kept.
const MAX_LINE: usize = 1024;
/// Most lines that are looked at.
const MAX_LINES: usize = 2000;
/// Most octets of a fact in words.
const MAX_TEXT: usize = 4096;
/// Processor time that must have passed for a share of it to say anything, in ticks of all processors.
const LEAST_TICKS: f64 = 10.0;

const NUMBERS: [&str; 7] = [
    "host.pressure.cpu",
    "host.pressure.io",
    "host.pressure.memory",
    "host.load",
    "host.authorized_keys.octets",
    "host.authorized_keys.lines",
    "host.processes.login",
];
const TEXTS: [&str; 7] = [
    "host.shell",
    "host.sshd_config.file",
    "host.shell_startup.files",
    "host.home.filesystem",
    "host.nsswitch.passwd",
    "host.nsswitch.group",
    "host.os",
];
/// Those that have a line each time, or an empty one alone.
const LINES: [&str; 4] = [
    "host.pam.motd",
    "host.pam.lastlog",
    "host.pam.systemd",
    "host.tcp_wrappers",
];
const YES: [&str; 6] = [
    "host.sshd_config.readable",
    "host.libwrap",
    "host.sshrc",
    "host.user_rc",
    "host.listener",
    "host.forced_command",
];
const TIMES: [&str; 8] = [
    "host.id.time",
    "host.getent_passwd.time",
    "host.getent_hosts.time",
    HOME,
    LS,
    "host.motd_scripts.time",
    SHELL_STARTUP,
    SHELL_BARE,
];
/// The user's shell as sshd starts it, and sh without anything; both run nothing.
pub(super) const SHELL_STARTUP: &str = "host.shell.startup.time";
pub(super) const SHELL_BARE: &str = "host.shell.bare.time";
/// How often a control group was throttled before what is measured.
const THROTTLED_BEFORE: &str = "host.throttled.before";
/// What the times of update-motd.d's scripts are called, before the script's name.
const MOTD: &str = "motd ";
/// A look at two folders of the home, and one at two that are there anyhow.
const HOME: &str = "host.home.time";
const LS: &str = "host.ls.time";
/// Keywords of sshd_config that are told of.
const KEYWORDS: [&str; 9] = [
    "UseDNS",
    "UsePAM",
    "AuthorizedKeysCommand",
    "RevokedKeys",
    "MaxStartups",
    "PerSourceMaxStartups",
    "PermitUserRC",
    "X11Forwarding",
    "HostKey",
];

/// How often the login's command is run in sessions of their own.
const SESSIONS: usize = 3;

/// What is to follow the last login: the same command in further sessions, then the script. What is to follow the first of several: what
/// the script compares with later.
pub(super) fn errands() -> Following {
    let again = Errand {
        command: b"echo".to_vec(),
        input: Vec::new(),
    };
    // Whatever the user's shell is, this it understands.
    let script = |command: &[u8]| Errand {
        command: command.to_vec(),
        input: SCRIPT.as_bytes().to_vec(),
    };
    let again = std::iter::repeat_n(again, SESSIONS);
    Following {
        first: vec![script(b"exec /bin/sh -s first")],
        last: again.chain([script(b"exec /bin/sh")]).collect(),
    }
}

/// Takes what the script has said, and before that after the `first` login, if that was another one.
///
/// # Errors
///
/// It did not run; why, in words.
pub(super) fn learn(
    first: Option<&ErrandDone>,
    errand: &ErrandDone,
    facts: &mut Facts,
) -> Result<(), String> {
    let mut answer = Answer::default();
    let first = first.map(lines).unwrap_or_default();
    for (_, line) in first.into_iter().take(MAX_LINES) {
        if let Some(counter) = line.strip_prefix(THROTTLED_BEFORE) {
            answer.throttling.take_before(counter.trim());
        }
    }
    for (at, line) in lines(errand).into_iter().take(MAX_LINES) {
        answer.take(at, &line, facts);
    }
    if !answer.begun {
        return Err(no_answer(errand));
    }
    answer.finish(errand, facts);
    Ok(())
}

/// Whole lines, and when they were whole.
fn lines(errand: &ErrandDone) -> Vec<(Duration, String)> {
    let mut lines = Vec::new();
    let mut line: Vec<u8> = Vec::new();
    for (at, piece) in &errand.output {
        for &octet in piece {
            match octet {
                b'\n' => {
                    lines.push((*at, printable(&line)));
                    line.clear();
                }
                octet if line.len() < MAX_LINE => line.push(octet),
                _ => {}
            }
        }
    }
    if !line.is_empty() {
        lines.push((errand.took, printable(&line)));
    }
    lines
}

fn printable(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let visible = text.chars().map(|c| match c {
        '\t' => ' ',
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    });
    visible.collect()
}

/// Why the script has not said what it begins with.
pub(super) fn no_answer(errand: &ErrandDone) -> String {
    let said = lines(errand);
    let mut said = said.iter().map(|(_, line)| line.trim());
    let first = said.find(|line| !line.is_empty());
    let how = match &errand.end {
        ErrandEnd::Broken => "the connection broke".to_owned(),
        ErrandEnd::Refused(why) => format!("the server refused: {why}"),
        ErrandEnd::Exit(Some(status)) => format!("it ended with status {status}"),
        ErrandEnd::Exit(None) => "a signal ended it".to_owned(),
        ErrandEnd::Late => "it did not answer in time".to_owned(),
    };
    let mut words = format!("no command of ours could be run on the host: {how}");
    if let Some(first) = first {
        let first: String = first.chars().take(200).collect();
        words.push_str(&format!(", and said: {first}"));
    }
    words
}

/// What the lines add up to.
#[derive(Default)]
struct Answer {
    begun: bool,
    /// What has begun to be timed, and when.
    running: HashMap<String, Duration>,
    /// What was ended before its time.
    cut_short: Vec<String>,
    throttling: Throttling,
    /// Processor times (proc_stat(5)) before and after.
    processor: [Option<Vec<f64>>; 2],
    /// The scripts of update-motd.d, each with its time.
    motd_scripts: Vec<(String, Duration)>,
}

impl Answer {
    fn take(&mut self, at: Duration, line: &str, facts: &mut Facts) {
        if let Some(name) = line.strip_prefix('+') {
            self.running.insert(name.to_owned(), at);
            return;
        }
        if let Some(name) = line.strip_prefix('-') {
            if let Some(since) = self.running.remove(name) {
                self.took(name, at.saturating_sub(since), facts);
            }
            return;
        }
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        let value = value.trim();
        match name {
            "host.begun" => self.begun = true,
            _ if !self.begun => {}
            "host.cpu_quota" => quota(value, facts),
            THROTTLED_BEFORE => self.throttling.take_before(value),
            "host.throttled.after" => self.throttling.take_after(value),
            "host.waited" => waited(value, facts),
            "cut_short" => self.cut_short.push(value.to_owned()),
            "processor.before" => self.processor[0] = ticks(value),
            "processor.after" => self.processor[1] = ticks(value),
            "sshd" => sshd_setting(value, facts),
            "sshd.match" => sshd_match(value, facts),
            _ => note(name, value, facts),
        }
    }

    fn took(&mut self, name: &str, time: Duration, facts: &mut Facts) {
        if let Some(known) = TIMES.iter().find(|known| **known == name) {
            // What is timed again is disturbed less: the least is its own.
            let before = facts.time(known).unwrap_or(time);
            facts.insert(*known, before.min(time));
        } else if let Some(script) = name.strip_prefix(MOTD) {
            let mut known = self.motd_scripts.iter_mut();
            match known.find(|(known, _)| known == script) {
                Some((_, least)) => *least = time.min(*least),
                None => self.motd_scripts.push((script.to_owned(), time)),
            }
        }
    }

    fn finish(mut self, errand: &ErrandDone, facts: &mut Facts) {
        // What has not ended has taken at least so long.
        for (name, since) in std::mem::take(&mut self.running) {
            self.took(&name, errand.took.saturating_sub(since), facts);
            self.cut_short.push(name);
        }
        if let Some((home, ls)) = facts.time(HOME).zip(facts.time(LS)) {
            facts.insert(HOME, home.saturating_sub(ls));
        }
        let slowest = self.motd_scripts.iter().max_by_key(|(_, time)| *time);
        if let Some((script, time)) = slowest {
            let is_cut = |name: &String| name.strip_prefix(MOTD) == Some(script.as_str());
            let at_least = match self.cut_short.iter().any(is_cut) {
                true => "at least ",
                false => "",
            };
            let text = format!("{script} {at_least}{:.0} ms", time.as_secs_f64() * 1e3);
            facts.insert("host.motd_scripts.slowest", text);
        }
        if self.cut_short.iter().any(|name| name.starts_with(MOTD)) {
            facts.insert("host.motd_scripts.cut_short", true);
        }
        if let Some(times) = self.throttling.meanwhile() {
            facts.insert("host.throttled", times);
        }
        if let [Some(before), Some(after)] = &self.processor
            && let Some([steal, of_work]) = steal(before, after)
        {
            facts.insert("host.steal", steal);
            facts.insert("host.steal.share", of_work);
        }
    }
}

fn note(name: &str, value: &str, facts: &mut Facts) {
    let among = |names: &[&'static str]| names.iter().copied().find(|known| *known == name);
    if let Some(name) = among(&NUMBERS) {
        let number: Option<f64> = value.parse().ok();
        if let Some(number) = number.filter(|number| number.is_finite()) {
            facts.insert(name, number);
        }
    } else if let Some(name) = among(&YES) {
        facts.insert(name, value == "yes");
    } else if let Some(name) = among(&TEXTS) {
        facts.insert(name, shortened(value.trim_matches('"')));
    } else if let Some(name) = among(&LINES) {
        let before = facts.text(name).unwrap_or_default();
        let text = match before {
            "" => value.to_owned(),
            before => format!("{before}\n{value}"),
        };
        facts.insert(name, shortened(&text));
    }
}

fn shortened(text: &str) -> Fact {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Fact::Text(text[..end].to_owned())
}

/// cpu.max of a control group, as a share of one processor; the tightest counts (cgroups(7)).
fn quota(value: &str, facts: &mut Facts) {
    let mut words = value.split(' ').map(str::parse::<f64>);
    let (Some(Ok(allowed)), Some(Ok(period))) = (words.next(), words.next()) else {
        return;
    };
    if allowed > 0.0 && period > 0.0 {
        let share = 100.0 * allowed / period;
        let tightest = facts.number("host.cpu_quota").unwrap_or(share);
        facts.insert("host.cpu_quota", tightest.min(share));
    }
}

/// Nanoseconds that sshd's processes have waited for a processor since the login began.
fn waited(value: &str, facts: &mut Facts) {
    if let Ok(nanoseconds) = value.parse() {
        facts.insert("host.contention.time", Duration::from_nanos(nanoseconds));
    }
}

fn ticks(value: &str) -> Option<Vec<f64>> {
    let numbers = value.split_ascii_whitespace().map(str::parse);
    numbers.collect::<Result<_, _>>().ok()
}

/// The share of the time in between that the hypervisor gave to others, per cent: the eighth number (proc_stat(5)). Then the same of the
/// time in which there was work for the processors: they were not idle, and nobody waited for a disk alone.
fn steal(before: &[f64], after: &[f64]) -> Option<[f64; 2]> {
    let passed = |(before, after): (&f64, &f64)| (after - before).max(0.0);
    // Guests' time is in the user's already.
    let passed: Vec<f64> = before.iter().zip(after).take(8).map(passed).collect();
    let (all, stolen) = (passed.iter().sum::<f64>(), *passed.get(7)?);
    let work = all - passed[3] - passed[4];
    let share = |of: f64| 100.0 * stolen / of.max(1.0);
    (all >= LEAST_TICKS).then(|| [share(all), share(work)])
}

/// A line of sshd_config, taken apart: the keyword as it is told of, and its value.
fn keyword(line: &str) -> Option<(&'static str, String)> {
    let is_between = |c: char| c.is_whitespace() || c == '=';
    let (keyword, value) = line.split_once(is_between)?;
    let mut known = KEYWORDS.into_iter();
    let known = known.find(|known| known.eq_ignore_ascii_case(keyword))?;
    Some((known, bare(value.trim_matches(is_between))))
}

/// A value without quotes, and without the comment behind it.
fn bare(value: &str) -> String {
    let mut bare = String::new();
    let mut is_quoted = false;
    for c in value.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            '#' if !is_quoted && bare.ends_with(char::is_whitespace) => break,
            c => bare.push(c),
        }
    }
    bare.trim_end().to_owned()
}

/// A line behind a Match: what this login has is not known.
fn sshd_match(line: &str, facts: &mut Facts) {
    let name = "host.sshd_config.in_match";
    let Some((known, _)) = keyword(line) else {
        return;
    };
    let before = facts.text(name).unwrap_or_default();
    if !before.split(' ').any(|keyword| keyword == known) {
        let all = format!("{before} {known}");
        facts.insert(name, all.trim_start());
    }
}

/// The first value counts (sshd_config(5)), and each HostKey.
fn sshd_setting(line: &str, facts: &mut Facts) {
    let Some((known, value)) = keyword(line) else {
        return;
    };
    let name = format!("host.sshd_config.{known}");
    match (facts.text(&name), known) {
        (Some(before), "HostKey") => {
            let all = format!("{before} {value}");
            facts.insert(name, shortened(&all));
        }
        (Some(_), _) => {}
        (None, _) => facts.insert(name, shortened(&value)),
    }
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "host_script_tests.rs"]
mod script_tests;
