//! How a plan has ended.

use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use serde::Serialize;
use sshoal_net::Interruption;
use sshoal_plan::{Outcome, Plan};
use sshoal_report::{
    BROKEN_PIPE, COMMAND_FAILED, HOST_FAILED, INTERRUPTED, OUTPUT_FAILED, SCHEMA_VERSION,
    SIGNALLED, USAGE,
};

/// How a step's process has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ending {
    status: u8,
}

impl Ending {
    /// It has reached no host.
    pub(super) const NOT_STARTED: Ending = Ending {
        status: HOST_FAILED,
    };

    pub(super) fn of(status: ExitStatus) -> Ending {
        let status = status.code().map_or(HOST_FAILED, |code| code as u8);
        Ending { status }
    }

    /// What it wrote could not be passed on.
    pub(super) fn without_output(error: &io::Error) -> Ending {
        Ending {
            status: status_without_output(error),
        }
    }

    pub(super) fn is_done(self) -> bool {
        self.status == 0
    }

    /// Whether somebody or something wants no more done: a signal, or nobody to write to.
    pub(super) fn ends_plan(self) -> bool {
        self.status == OUTPUT_FAILED || self.status > SIGNALLED
    }
}

/// What became of all steps.
pub(super) struct Summary {
    pub(super) outcomes: Vec<Outcome>,
    /// Of those that have run, in which time.
    pub(super) endings: Vec<Option<(Ending, Duration)>>,
    pub(super) interruption: Interruption,
    pub(super) elapsed: Duration,
}

/// The closing object.
#[derive(Serialize)]
struct PlanRecord<'a> {
    r#type: &'static str,
    version: u32,
    steps: Vec<StepRecord<'a>>,
    interrupted: bool,
    exit_status: u8,
    elapsed_us: u64,
}

#[derive(Serialize)]
struct StepRecord<'a> {
    step: &'a str,
    outcome: &'static str,
    exit_status: Option<u8>,
    stopped_by: Option<&'a str>,
    elapsed_us: Option<u64>,
}

impl Summary {
    /// The worst of all steps' (docs/exit-status.md); what ended the plan itself comes before that.
    pub(super) fn exit_status(&self) -> u8 {
        let statuses = self.endings.iter().flatten();
        let statuses = statuses.map(|(ending, _)| match ending.status {
            // The plan was understood: this step alone was not.
            USAGE => HOST_FAILED,
            status => status,
        });
        let worst = statuses.max_by_key(|&status| severity(status)).unwrap_or(0);
        match (self.interruption.stopped_by, self.interruption.interrupts) {
            (Some(signal), _) => SIGNALLED.saturating_add(signal as u8),
            (None, 0) => worst,
            (None, _) => INTERRUPTED,
        }
    }

    /// The object of JSON, with the end of its line.
    pub(super) fn record(&self, plan: &Plan) -> String {
        let name = |step: usize| plan.steps()[step].name.as_str();
        let steps = self.outcomes.iter().zip(&self.endings).enumerate();
        let steps = steps.map(|(step, (outcome, ending))| StepRecord {
            step: name(step),
            outcome: match outcome {
                Outcome::LeftOut => "left-out",
                Outcome::Done => "done",
                Outcome::Failed | Outcome::Running => "failed",
                Outcome::Waiting | Outcome::StoppedBy(_) | Outcome::NotReached => "not-begun",
            },
            exit_status: ending.map(|(ending, _)| ending.status),
            stopped_by: match outcome {
                Outcome::StoppedBy(by) => Some(name(*by)),
                _ => None,
            },
            elapsed_us: ending.map(|(_, elapsed)| micros(elapsed)),
        });
        let exit_status = self.exit_status();
        let record = serde_json::to_string(&PlanRecord {
            r#type: "plan",
            version: SCHEMA_VERSION,
            steps: steps.collect(),
            interrupted: exit_status > SIGNALLED,
            exit_status,
            elapsed_us: micros(self.elapsed),
        });
        record.expect("the record has string keys and plain values only") + "\n"
    }

    /// For people: a line for all, and one for each step in its order.
    pub(super) fn text(&self, path: &Path, plan: &Plan) -> String {
        let mut lines = vec![format!("plan {}: {}", path.display(), self.counts())];
        for &step in plan.graph().order() {
            let name = |step: usize| &plan.steps()[step].name;
            let what = match (self.outcomes[step], self.endings[step]) {
                (Outcome::LeftOut, _) => continue,
                (Outcome::StoppedBy(by), _) => {
                    format!("not begun: {} has failed", name(by))
                }
                (Outcome::Done, Some((_, elapsed))) => format!("done in {}", seconds(elapsed)),
                (_, Some((ending, elapsed))) => {
                    let (status, elapsed) = (ending.status, seconds(elapsed));
                    format!("failed with exit status {status} after {elapsed}")
                }
                (_, None) => "not begun".to_owned(),
            };
            lines.push(format!("  {}: {what}", name(step)));
        }
        lines.join("\n")
    }

    /// `3 steps done, 1 failed, 2 not begun in 4.5 s`
    fn counts(&self) -> String {
        let count = |is_one: fn(&Outcome) -> bool| {
            let outcomes = self.outcomes.iter();
            outcomes.filter(|outcome| is_one(outcome)).count()
        };
        let mut text = match count(|outcome| *outcome == Outcome::Done) {
            1 => "1 step done".to_owned(),
            steps => format!("{steps} steps done"),
        };
        let failed = count(|it| matches!(it, Outcome::Failed | Outcome::Running));
        let not_begun = count(|it| {
            matches!(
                it,
                Outcome::Waiting | Outcome::StoppedBy(_) | Outcome::NotReached
            )
        });
        for (steps, what) in [(failed, "failed"), (not_begun, "not begun")] {
            if steps > 0 {
                text.push_str(&format!(", {steps} {what}"));
            }
        }
        format!("{text} in {}", seconds(self.elapsed))
    }
}

/// Our own output could not be written.
pub(super) fn status_without_output(error: &io::Error) -> u8 {
    match error.kind() {
        io::ErrorKind::BrokenPipe => BROKEN_PIPE,
        _ => OUTPUT_FAILED,
    }
}

/// Which of two statuses is worse: the order of docs/exit-status.md.
fn severity(status: u8) -> (u8, u8) {
    let class = match status {
        0 => 0,
        COMMAND_FAILED => 1,
        HOST_FAILED => 3,
        OUTPUT_FAILED => 4,
        status if status > SIGNALLED => 5,
        // The largest remote status, with -S.
        _ => 2,
    };
    (class, status)
}

fn seconds(elapsed: Duration) -> String {
    format!("{:.1} s", elapsed.as_secs_f64())
}

fn micros(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX)
}
