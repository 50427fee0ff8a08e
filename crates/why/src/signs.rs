//! What speaks for a cause or against it: tests of facts and of the login's shape, as data.

use std::time::Duration;

use crate::evidence::{Evidence, Fact, Phase};
use crate::ledger::Ledger;
use crate::reckoning;
use crate::words;

/// What is known while a cause is judged: all facts, and the login that it is judged by.
pub(crate) struct Case<'a> {
    pub(crate) evidence: &'a Evidence,
    pub(crate) ledger: &'a Ledger,
    /// Our own login, where that of ssh is judged.
    pub(crate) ours: Option<&'a Ledger>,
}

/// What a test says, each with words for the reader, numbers in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes(String),
    No(String),
    /// Nothing is known of it.
    Unknown(String),
}

/// What an answer does to a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Without it the cause is ruled out; as long as it is not known the cause is not looked at.
    Known,
    /// Without it the cause is ruled out; as long as it is not known the cause is suspected at best.
    Needed,
    /// With it the cause is proven, if all that is needed may be.
    Proof,
    /// A mere suspicion is none where this is not so: the login does not look like it.
    Shape,
}

/// A test and what its answer does.
pub(crate) struct Sign {
    pub(crate) weight: Weight,
    pub(crate) test: Test,
}

pub(crate) const fn known(test: Test) -> Sign {
    Sign {
        weight: Weight::Known,
        test,
    }
}

pub(crate) const fn needed(test: Test) -> Sign {
    Sign {
        weight: Weight::Needed,
        test,
    }
}

pub(crate) const fn proof(test: Test) -> Sign {
    Sign {
        weight: Weight::Proof,
        test,
    }
}

pub(crate) const fn shape(test: Test) -> Sign {
    Sign {
        weight: Weight::Shape,
        test,
    }
}

/// A test.
pub(crate) enum Test {
    /// A keyword of the host's sshd_config has one of these values, or has it by default.
    Sshd {
        keyword: &'static str,
        default: &'static str,
        is: &'static [&'static str],
    },
    /// A keyword of ssh_config has one of these values, as `ssh -G` writes them: of some keywords yes is `true`.
    Ssh {
        keyword: &'static str,
        is: &'static [&'static str],
    },
    /// A fact contains one of these, however they are written.
    Has {
        fact: &'static str,
        any: &'static [&'static str],
    },
    /// A count, a size or a percentage is at least this.
    AtLeast {
        fact: &'static str,
        number: f64,
        unit: &'static str,
    },
    /// Something that was timed takes at least this many milliseconds.
    Slow { fact: &'static str, ms: u64 },
    /// The same of the first of these that is known: the best one stands first.
    FirstSlow {
        facts: &'static [&'static str],
        ms: u64,
    },
    /// Something is so.
    Is(&'static str),
    /// More is lost in this phase than noise, and not explained yet.
    Lost(Phase),
    /// In so many of these at once, what a slow machine takes longer included.
    Together {
        phases: &'static [Phase],
        least: usize,
    },
    /// The other way round.
    Not(&'static Test),
    /// One of these.
    Any(&'static [Test]),
    /// What only this cause asks.
    By(fn(&Case) -> Answer),
}

impl Case<'_> {
    /// A fact in words, of whatever kind it is.
    pub(crate) fn word(&self, fact: &str) -> Option<String> {
        let (_, value) = self.evidence.facts.iter().find(|(name, _)| *name == fact)?;
        Some(match value {
            Fact::Text(text) => words::foreign(text),
            Fact::Yes(yes) => if *yes { "yes" } else { "no" }.to_owned(),
            Fact::Number(number) => words::number(*number),
            Fact::Time(time) => words::time(*time),
        })
    }

    pub(crate) fn time(&self, fact: &str) -> Option<Duration> {
        self.evidence.facts.time(fact)
    }

    pub(crate) fn number(&self, fact: &str) -> Option<f64> {
        self.evidence.facts.number(fact)
    }

    /// What is known of the login itself: it is of ours, wherever there is one.
    pub(crate) fn of_login(&self, fact: &str) -> Option<String> {
        self.word(fact).filter(|_| self.ours.is_none())
    }

    /// The round-trip time, zero where it is not known.
    pub(crate) fn round_trip(&self) -> Duration {
        reckoning::round_trip(self.evidence).map_or(Duration::ZERO, |sample| sample.median)
    }

    /// How long a phase takes, and should take.
    pub(crate) fn told(&self, phase: Phase) -> Option<String> {
        let row = self.ledger.row(phase)?;
        Some(format!(
            "{} takes {}, {} expected",
            phase.title(),
            words::time(row.sample.median),
            words::time(row.expected()),
        ))
    }
}

impl Test {
    /// What it says of a case.
    pub(crate) fn answer(&self, case: &Case) -> Answer {
        match self {
            Test::Sshd {
                keyword,
                default,
                is,
            } => sshd(case, keyword, default, is),
            Test::Ssh { keyword, is } => keyword_is(
                case.word(&format!("ssh_config.{keyword}")),
                keyword,
                "ssh_config",
                is,
            ),
            Test::Has { fact, any } => has(case, fact, any),
            Test::AtLeast { fact, number, unit } => at_least(case, fact, *number, unit),
            Test::Slow { fact, ms } => slow(case, fact, Duration::from_millis(*ms)),
            Test::FirstSlow { facts, ms } => {
                let known = facts.iter().find(|fact| case.time(fact).is_some());
                let fact = known.or(facts.first()).copied().unwrap_or_default();
                slow(case, fact, Duration::from_millis(*ms))
            }
            Test::Is(fact) => match case.evidence.facts.yes(fact) {
                Some(true) => Answer::Yes(format!("{fact}: yes")),
                Some(false) => Answer::No(format!("{fact}: no")),
                None => unknown(fact),
            },
            Test::Lost(phase) => lost(case, *phase),
            Test::Together { phases, least } => together(case, phases, *least),
            Test::Not(test) => match test.answer(case) {
                Answer::Yes(words) => Answer::No(words),
                Answer::No(words) => Answer::Yes(words),
                unknown => unknown,
            },
            Test::Any(tests) => any(case, tests),
            Test::By(asked) => asked(case),
        }
    }
}

pub(crate) fn unknown(fact: &str) -> Answer {
    Answer::Unknown(format!("{fact} is not known"))
}

fn sshd(case: &Case, keyword: &str, default: &str, is: &[&str]) -> Answer {
    let conditional = case.evidence.facts.text("host.sshd_config.in_match");
    let mut conditional = conditional.unwrap_or_default().split(' ');
    if conditional.any(|known| known.eq_ignore_ascii_case(keyword)) {
        return Answer::Unknown(format!(
            "{keyword} of sshd_config is another one for some logins (Match)"
        ));
    }
    let readable = case.evidence.facts.yes("host.sshd_config.readable") == Some(true);
    let value = case.word(&format!("host.sshd_config.{keyword}"));
    let value = value.or_else(|| readable.then(|| default.to_owned()));
    keyword_is(value, keyword, "sshd_config", is)
}

fn keyword_is(value: Option<String>, keyword: &str, file: &str, is: &[&str]) -> Answer {
    let Some(value) = value else {
        return Answer::Unknown(format!("{keyword} of {file} is not known"));
    };
    let words = format!("{file}: {keyword} {value}");
    if is
        .iter()
        .any(|known| known.eq_ignore_ascii_case(value.trim()))
    {
        Answer::Yes(words)
    } else {
        Answer::No(words)
    }
}

fn has(case: &Case, fact: &str, any: &[&str]) -> Answer {
    let Some(text) = case.evidence.facts.text(fact) else {
        return unknown(fact);
    };
    let lower = text.to_ascii_lowercase();
    let words = match words::foreign(text) {
        nothing if nothing.is_empty() => format!("{fact}: nothing"),
        text => format!("{fact}: {text}"),
    };
    if any.iter().any(|part| lower.contains(part)) {
        Answer::Yes(words)
    } else {
        Answer::No(words)
    }
}

fn at_least(case: &Case, fact: &str, least: f64, unit: &str) -> Answer {
    let Some(number) = case.number(fact) else {
        return unknown(fact);
    };
    let words = format!("{fact}: {}{unit}", words::number(number));
    if number >= least {
        Answer::Yes(words)
    } else {
        Answer::No(words)
    }
}

fn slow(case: &Case, fact: &str, least: Duration) -> Answer {
    let Some(time) = case.time(fact) else {
        return unknown(fact);
    };
    let words = format!("{fact}: {}", words::time(time));
    if time >= least {
        Answer::Yes(words)
    } else {
        Answer::No(words)
    }
}

fn lost(case: &Case, phase: Phase) -> Answer {
    let Some((row, words)) = case.ledger.row(phase).zip(case.told(phase)) else {
        return Answer::Unknown(format!("{} was not measured", phase.title()));
    };
    if case.ledger.is_lost(phase) {
        Answer::Yes(words)
    } else if row.is_lost() {
        Answer::No(format!("{words}: other causes explain it"))
    } else {
        Answer::No(words)
    }
}

fn together(case: &Case, phases: &[Phase], least: usize) -> Answer {
    let is_slow = |phase: &&Phase| case.ledger.is_slow(**phase);
    let slow: Vec<&str> = phases
        .iter()
        .filter(is_slow)
        .map(|phase| phase.title())
        .collect();
    if slow.len() >= least {
        return Answer::Yes(format!("slow together: {}", slow.join(", ")));
    }
    let titles: Vec<&str> = phases.iter().map(|phase| phase.title()).collect();
    Answer::No(format!("{} of {} are slow", slow.len(), titles.join(", ")))
}

fn any(case: &Case, tests: &[Test]) -> Answer {
    let answers: Vec<Answer> = tests.iter().map(|test| test.answer(case)).collect();
    let is = |wanted: fn(&Answer) -> bool| answers.iter().find(|answer| wanted(answer)).cloned();
    is(|answer| matches!(answer, Answer::Yes(_)))
        .or_else(|| is(|answer| matches!(answer, Answer::Unknown(_))))
        .or_else(|| answers.first().cloned())
        .unwrap_or_else(|| Answer::Unknown(String::new()))
}
