//! ClusterShell in a process of its own, asked question by question.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

/// What ClusterShell answers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Hosts { names: Vec<String>, folded: String },
    Error(String),
}

/// `nodeset.py`, running.
pub(crate) struct Oracle {
    child: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Oracle {
    pub(crate) fn start() -> Oracle {
        let python = target_directory().join("venv/bin/python");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/nodeset.py");
        let mut child = Command::new(&python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}; run scripts/setup.sh", python.display()));
        Oracle {
            questions: child.stdin.take(),
            answers: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    pub(crate) fn fold(&mut self, names: &[String]) -> String {
        let answer = self.ask(&json!({ "fold": names }));
        answer["folded"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer}: {names:?}"))
            .into()
    }

    pub(crate) fn expand(&mut self, question: &Value) -> Answer {
        let answer = self.ask(question);
        match answer["error"].as_str() {
            Some(error) => Answer::Error(error.into()),
            None => Answer::Hosts {
                names: serde_json::from_value(answer["names"].clone()).unwrap(),
                folded: answer["folded"].as_str().unwrap().into(),
            },
        }
    }

    fn ask(&mut self, question: &Value) -> Value {
        let questions = self.questions.as_mut().unwrap();
        writeln!(questions, "{question}").unwrap();
        questions.flush().unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| {
            panic!(
                "no answer ({error}); is target/venv up to date? Run scripts/setup.sh. {question}"
            )
        })
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        drop(self.questions.take());
        let _ = self.child.wait();
    }
}

/// Where cargo builds: the parent of what it hands to integration tests.
fn target_directory() -> PathBuf {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    scratch.parent().unwrap_or(scratch).to_owned()
}
