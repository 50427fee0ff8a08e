//! `sshoal plan explain`: what each step does, what it waits for, and what waits for it, however indirectly.

use std::fmt::Write as _;

use serde::Serialize;
use sshoal_plan::Plan;
use sshoal_report::SCHEMA_VERSION;

use super::args::ExplainPlanArgs;
use super::commands::{self, StepCommand};
use super::{PlanFile, PlanFileError};
use crate::manual;
use crate::script::quoted;

/// A step's object.
#[derive(Serialize)]
struct StepRecord<'a> {
    r#type: &'static str,
    version: u32,
    step: &'a str,
    line: usize,
    hosts: usize,
    command: Vec<&'a str>,
    after: Vec<&'a str>,
    all_after: Vec<&'a str>,
    before: Vec<&'a str>,
    all_before: Vec<&'a str>,
}

/// Prints the steps in their order; returns the exit status.
pub(super) fn run(args: &ExplainPlanArgs) -> Result<u8, Box<dyn std::error::Error>> {
    let PlanFile { path, plan } = PlanFile::read(&args.file)?;
    let chosen = plan.chosen(&args.steps, &[]);
    let chosen = chosen.map_err(|error| PlanFileError::Chosen {
        path: path.clone(),
        what: error.to_string(),
    })?;
    let commands = commands::of_all(&path, &plan)?;
    let mut text = String::new();
    for &step in plan.graph().order() {
        if chosen[step] {
            text.push_str(&match args.json {
                true => record(&plan, step, &commands[step])?,
                false => paragraph(&plan, step, &commands[step]),
            });
        }
    }
    Ok(manual::print(text.as_bytes()))
}

fn record(plan: &Plan, step: usize, command: &StepCommand) -> serde_json::Result<String> {
    let graph = plan.graph();
    let named = |steps: &[usize]| names(plan, steps);
    let record = serde_json::to_string(&StepRecord {
        r#type: "plan-step",
        version: SCHEMA_VERSION,
        step: &plan.steps()[step].name,
        line: plan.steps()[step].line,
        hosts: command.hosts,
        command: command.arguments(&[]),
        after: named(graph.after(step)),
        all_after: named(&graph.all_after(step)),
        before: named(graph.before(step)),
        all_before: named(&graph.all_before(step)),
    })?;
    Ok(record + "\n")
}

fn names<'a>(plan: &'a Plan, steps: &[usize]) -> Vec<&'a str> {
    let steps = steps.iter().map(|&step| plan.steps()[step].name.as_str());
    steps.collect()
}

fn paragraph(plan: &Plan, step: usize, command: &StepCommand) -> String {
    let graph = plan.graph();
    let hosts = match command.hosts {
        1 => "1 host".to_owned(),
        hosts => format!("{hosts} hosts"),
    };
    let words = command.arguments(&[]).into_iter().map(|word| {
        let word = quoted(word.as_bytes());
        String::from_utf8_lossy(&word).into_owned()
    });
    let words = words.collect::<Vec<_>>().join(" ");
    let mut text = format!("{}: {hosts}\n", plan.steps()[step].name);
    let waits = |direct: &[usize], all: &[usize]| relation(plan, direct, all);
    for (title, what) in [
        ("does", format!("sshoal {words}")),
        (
            "comes after",
            waits(graph.after(step), &graph.all_after(step)),
        ),
        (
            "comes before",
            waits(graph.before(step), &graph.all_before(step)),
        ),
    ] {
        let _ = writeln!(text, "  {title:<13} {what}");
    }
    text
}

/// `config, drain; by these: backup`
fn relation(plan: &Plan, direct: &[usize], all: &[usize]) -> String {
    let indirect: Vec<usize> = all
        .iter()
        .copied()
        .filter(|step| !direct.contains(step))
        .collect();
    match (direct, indirect.as_slice()) {
        ([], _) => "nothing".to_owned(),
        (direct, []) => names(plan, direct).join(", "),
        (direct, indirect) => format!(
            "{}; through {} {}",
            names(plan, direct).join(", "),
            if direct.len() == 1 { "it" } else { "them" },
            names(plan, indirect).join(", ")
        ),
    }
}
