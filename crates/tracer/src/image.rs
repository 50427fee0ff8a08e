//! What a process runs, as /proc shows it: its name, its arguments, and its program's file where that may be looked at.

use std::fs::{self, File};
use std::io::Read;

use crate::process;

/// Octets of a command line that are read.
const MAX_LINE: u64 = 16 * 1024;
/// Characters of a process's name (TASK_COMM_LEN).
const MAX_NAME: usize = 15;
/// A script's own path is one of the first words behind its interpreter.
const SCRIPT_WORDS: usize = 3;
/// What the kernel puts behind the path of a file that has no name any more.
const DELETED: &str = " (deleted)";

/// What a process runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Image {
    /// The process's name.
    pub(crate) name: String,
    /// Its command line.
    pub(crate) arguments: Vec<String>,
    /// The program's file; without root that of others is not shown.
    program: Option<String>,
}

impl Image {
    /// That of a process; `None` if there is none any more.
    pub(crate) fn of(pid: u32) -> Option<Image> {
        let name = process::name(pid)?;
        let mut line = Vec::new();
        let file = File::open(format!("/proc/{pid}/cmdline"));
        // It may have gone meanwhile.
        let _ = file.and_then(|file| file.take(MAX_LINE).read_to_end(&mut line));
        let words = line.split(|octet| *octet == 0);
        let mut arguments: Vec<String> = words
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        // Behind the last one there is a NUL, too.
        arguments.pop_if(|last| last.is_empty());
        let program = fs::read_link(format!("/proc/{pid}/exe")).ok();
        let program = program.map(|path| path.to_string_lossy().into_owned());
        Some(Image {
            name,
            arguments,
            program: program.map(|path| path.trim_end_matches(DELETED).to_owned()),
        })
    }

    /// The file that was run: of a script the script's, after which the process is named (begin_new_exec in fs/exec.c).
    pub(crate) fn file(&self) -> String {
        let is_named = |path: &str| title(path).chars().take(MAX_NAME).eq(self.name.chars());
        let program = self.program.as_deref();
        if program.is_some_and(is_named) {
            return program.unwrap_or_default().to_owned();
        }
        let mut words = self.arguments.iter().take(SCRIPT_WORDS);
        if let Some(word) = words.find(|word| word.contains('/') && is_named(word)) {
            return word.clone();
        }
        match program {
            Some(program) => program.to_owned(),
            None => self.name.clone(),
        }
    }

    /// Whether another program is run than when the process, or the one that made it, looked so. A server writes what it does into
    /// its own command line, and runs nothing by that; and who is about to end loses both its command line and its program.
    pub(crate) fn is_another_program_than(&self, before: &Image) -> bool {
        if self.arguments.is_empty() {
            return false;
        }
        let programs = self.program.as_ref().zip(before.program.as_ref());
        let is_other_file = programs.is_some_and(|(now, before)| now != before);
        let is_other_line = self.arguments != before.arguments && !process::is_server(&self.name);
        self.name != before.name || is_other_file || is_other_line
    }
}

fn title(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn image(name: &str, program: Option<&str>, line: &str) -> Image {
        Image {
            name: name.to_owned(),
            arguments: line.split(' ').map(str::to_owned).collect(),
            program: program.map(str::to_owned),
        }
    }

    #[test]
    fn a_script_s_file_is_its_own_and_not_its_interpreter_s() {
        let script = "/etc/update-motd.d/50-a-rather-long-name";
        let line = format!("/bin/sh {script}");
        let found = image("50-a-rather-lon", Some("/usr/bin/dash"), &line);
        assert_eq!(found.file(), script);
        assert_eq!(image("50-a-rather-lon", None, &line).file(), script);
        let shell = image("sh", Some("/usr/bin/dash"), "sh -c /bin/true");
        assert_eq!(shell.file(), "/usr/bin/dash");
        let sleep = image("sleep", Some("/usr/bin/sleep"), "sleep 1");
        assert_eq!(sleep.file(), "/usr/bin/sleep");
        assert_eq!(image("sleep", None, "sleep 1").file(), "sleep");
    }

    #[test]
    fn a_title_that_a_server_gives_itself_is_no_program() {
        let listener = image("sshd", Some("/usr/sbin/sshd"), "sshd: [listener]");
        let serving = image("sshd", Some("/usr/sbin/sshd"), "sshd: user [priv]");
        assert!(!serving.is_another_program_than(&listener));
        let session = image("sshd-session", Some("/usr/lib/sshd-session"), "x");
        assert!(session.is_another_program_than(&listener));
        let one = image("sh", Some("/usr/bin/dash"), "sh -c a");
        let other = image("sh", Some("/usr/bin/dash"), "sh -c b");
        assert!(other.is_another_program_than(&one));
        assert!(!one.is_another_program_than(&one));
        // Both are about to end.
        let ending = image("sh", None, "sh -c a");
        assert!(!ending.is_another_program_than(&one));
        let ended = Image {
            arguments: Vec::new(),
            ..ending
        };
        assert!(!ended.is_another_program_than(&one));
    }

    #[test]
    fn our_own_process_is_seen() {
        let own = Image::of(std::process::id()).unwrap();
        let program = std::env::current_exe().unwrap();
        assert_eq!(own.program.unwrap(), program.to_string_lossy());
        assert_eq!(own.arguments, std::env::args().collect::<Vec<_>>());
        assert_eq!(Image::of(u32::MAX), None);
    }
}
