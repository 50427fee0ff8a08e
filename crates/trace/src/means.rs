//! By what a login was followed on the host, why by nothing better, and what that does not tell.

use crate::frames::Armed;

/// The kernel's tracing; everything else is a makeshift.
const BEST: &str = "tracefs";
/// The makeshifts, by the tracer's words, with what they are called.
const TITLES: [(&str, &str); 3] = [
    (BEST, BEST),
    ("proc-connector", "the proc connector"),
    ("proc", "/proc"),
];
/// Who may miss a process.
const LOOKING: &str = "proc";
/// What is lacking, by the tracer's words, with what that means.
const LACKS: [(&str, &str); 7] = [
    ("time", "who worked and what others waited for"),
    ("files", "files"),
    ("disks", "disks"),
    ("connections", "connections"),
    ("functions", "what PAM's modules and the name service took"),
    ("name-service", "what the name service took"),
    ("names", "paths of files and arguments of programs"),
];
/// What no makeshift tells.
const BY_TRACEFS_ALONE: [&str; 5] = ["time", "files", "disks", "connections", "functions"];

/// By what a login was followed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Means {
    /// `tracefs`, `proc-connector` or `proc`.
    pub by: String,
    /// What would have been better, and why it was not to be had.
    pub refused: Vec<(String, String)>,
    /// What is not told: `time`, `files`, `disks`, `connections`, `functions`, of these `name-service` alone, `names`; and `event-fork` where the kernel does not
    /// follow forks.
    pub lacks: Vec<String>,
}

impl Means {
    pub(crate) fn of(armed: &Armed) -> Means {
        let mut lacks = armed.lacks.clone();
        if armed.by != BEST {
            lacks.extend(BY_TRACEFS_ALONE.map(str::to_owned));
        }
        Means {
            by: armed.by.clone(),
            refused: armed.refused.clone(),
            lacks,
        }
    }

    /// What it is called.
    pub fn title(&self) -> &str {
        title(&self.by)
    }

    /// Whether this is not told.
    pub fn lacks(&self, what: &str) -> bool {
        self.lacks.iter().any(|lack| lack == what)
    }

    /// All of it in words, a sentence each. Foreign text in them is as it came.
    pub fn notes(&self) -> Vec<String> {
        let refused = self.refused.iter();
        let mut notes: Vec<String> = refused
            .map(|(way, why)| format!("not by {}: {why}", title(way)))
            .collect();
        let not_told = LACKS.iter().filter(|(word, _)| self.lacks(word));
        let not_told: Vec<&str> = not_told.map(|(_, words)| *words).collect();
        if !not_told.is_empty() {
            notes.push(format!("not told: {}", not_told.join(", ")));
        }
        if self.lacks("event-fork") {
            let words =
                "this kernel does not follow forks (Linux 4.7 does): all of the host was recorded";
            notes.push(words.to_owned());
        }
        if self.by == LOOKING {
            let words = "/proc was looked at every few milliseconds: a process that lived for less may be missing, and one that \
                         outlived its parent unseen";
            notes.push(words.to_owned());
        }
        notes
    }
}

fn title(by: &str) -> &str {
    let known = TITLES.iter().find(|(word, _)| *word == by);
    known.map_or(by, |(_, title)| title)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn means(by: &str, lacks: &[&str]) -> Means {
        Means::of(&Armed {
            by: by.to_owned(),
            lacks: lacks.iter().map(|lack| (*lack).to_owned()).collect(),
            refused: vec![("tracefs".to_owned(), "there is none".to_owned())],
            ..Armed::default()
        })
    }

    #[test]
    fn it_is_said_by_what_why_by_nothing_better_and_what_is_missing() {
        let mut whole = means("tracefs", &[]);
        whole.refused.clear();
        assert_eq!((whole.title(), whole.notes().len()), ("tracefs", 0));
        let no_names = means("tracefs", &["name-service"]).notes();
        assert_eq!(no_names[1], "not told: what the name service took");
        let partly = means("tracefs", &["names", "event-fork"]).notes();
        assert_eq!(
            partly[1],
            "not told: paths of files and arguments of programs"
        );
        assert!(partly[2].contains("does not follow forks"));
        let connector = means("proc-connector", &[]);
        assert_eq!(connector.title(), "the proc connector");
        assert!(connector.lacks("time") && !connector.lacks("names"));
        let notes = connector.notes();
        assert_eq!(notes[0], "not by tracefs: there is none");
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(means("proc", &[]).notes()[2].contains("may be missing"));
    }
}
