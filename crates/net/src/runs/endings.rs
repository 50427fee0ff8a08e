//! The fleet's results in the words of a journal, and back.

use std::time::Duration;

use sshoal_fleet::{
    Failure, FailureKind, Fate, HostId, HostResult, KillVerdict, Outcome, PhaseTimes,
};
use sshoal_journal::run::{Ending, HostEnding, HostState, Known, Verdict};

/// What a journal notes of a result.
pub fn ending_of(result: &HostResult) -> HostEnding {
    let times = &result.times;
    let phases = [
        times.lookup,
        times.connect,
        times.login,
        times.key_exchange,
        times.authentication,
        times.session,
        times.command,
        Some(times.waited),
        times.total,
    ];
    HostEnding {
        ending: match &result.outcome {
            Outcome::Exit(status) => Ending::Exit(*status),
            Outcome::Signal {
                name,
                core_dumped,
                message,
            } => Ending::Signal {
                name: name.clone(),
                core_dumped: *core_dumped,
                message: message.clone(),
            },
            Outcome::Failed { failure, fate } => Ending::Failed {
                kind: failure.kind.name().to_owned(),
                detail: failure.detail.clone(),
                remedy: failure.remedy.clone(),
                known: known(*fate),
            },
            Outcome::NotStarted => Ending::NotStarted,
        },
        attempts: result.attempts,
        times_us: phases.map(|time| time.map(micros)),
    }
}

/// The result of a host that a journal knows so. What was sent and has not come back may have run.
pub fn result_of(host: HostId, state: &HostState) -> HostResult {
    let HostState::Ended(known) = state else {
        let outcome = match state {
            HostState::NotSent => Outcome::NotStarted,
            _ => Outcome::Failed {
                failure: Failure::new(
                    FailureKind::Lost,
                    "sshoal was ended after the command was sent, or while it was",
                ),
                fate: Fate::MayHaveRun,
            },
        };
        return HostResult {
            host,
            outcome,
            attempts: 0,
            times: PhaseTimes::default(),
        };
    };
    let time = |which: usize| known.times_us[which].map(Duration::from_micros);
    HostResult {
        host,
        outcome: outcome(&known.ending),
        attempts: known.attempts,
        times: PhaseTimes {
            lookup: time(0),
            connect: time(1),
            login: time(2),
            key_exchange: time(3),
            authentication: time(4),
            session: time(5),
            command: time(6),
            waited: time(7).unwrap_or_default(),
            total: time(8),
        },
    }
}

fn outcome(ending: &Ending) -> Outcome {
    match ending {
        Ending::Exit(status) => Outcome::Exit(*status),
        Ending::Signal {
            name,
            core_dumped,
            message,
        } => Outcome::Signal {
            name: name.clone(),
            core_dumped: *core_dumped,
            message: message.clone(),
        },
        Ending::Failed {
            kind,
            detail,
            remedy,
            known,
        } => Outcome::Failed {
            failure: Failure {
                // A kind of a later release is one of which nothing is known.
                kind: kind.parse().unwrap_or(FailureKind::Lost),
                detail: detail.clone(),
                remedy: remedy.clone(),
            },
            fate: match known {
                Known::NotSent => Fate::NotSent,
                Known::Discarded => Fate::ProvenDiscarded,
                Known::MayHaveRun => Fate::MayHaveRun,
                Known::Ran => Fate::Ran,
            },
        },
        Ending::NotStarted => Outcome::NotStarted,
    }
}

/// What a journal notes of a command that had to end.
pub(super) fn noted_verdict(verdict: &KillVerdict) -> Verdict {
    match verdict {
        KillVerdict::Gone => Verdict::Gone,
        KillVerdict::GoneAfterKill => Verdict::GoneAfterKill,
        KillVerdict::NotConfirmed(why) => Verdict::NotConfirmed(why.clone()),
    }
}

/// What was seen of a command that had to end, as a journal knows it.
pub fn verdict_of(verdict: &Verdict) -> KillVerdict {
    match verdict {
        Verdict::Gone => KillVerdict::Gone,
        Verdict::GoneAfterKill => KillVerdict::GoneAfterKill,
        Verdict::NotConfirmed(why) => KillVerdict::NotConfirmed(why.clone()),
    }
}

fn known(fate: Fate) -> Known {
    match fate {
        Fate::NotSent => Known::NotSent,
        Fate::ProvenDiscarded => Known::Discarded,
        Fate::MayHaveRun => Known::MayHaveRun,
        Fate::Ran => Known::Ran,
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
