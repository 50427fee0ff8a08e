//! The conversation with a host about accounts that are not in its /etc/passwd and /etc/group: those of a directory, which only NSS
//! knows.
//!
//! ```text
//! we:   ./sshoal  what no SFTP server takes for a packet: where it is one whatever is asked (ForceCommand), it ends at once
//! host: sshoal-ready
//! we:   uNAME ... a user, to the end of the line
//!       gNAME ... a group
//!       .         that is all
//! host: sshoal-id NAME:x:NUMBER...   one line for each, in their order; without a number if there is none
//! ```

use super::{AccountKind, accounts};

/// What is said first.
const GREETING: &[u8] = b"./sshoal\n";
const READY: &[u8] = b"sshoal-ready";
const ANSWER: &[u8] = b"sshoal-id ";
/// Octets of a line that are looked at: the number stands near its beginning, and a group's members after it.
const LINE: usize = 1024;

/// How far a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// There is none, and none is wanted yet.
    Unopened,
    /// The host has not said that it is ready.
    Opening,
    Ready,
    /// All is answered, or nothing more will be.
    Over,
}

/// What a host is asked about its accounts, and the session for that: the command's standard input is what
/// [`transmit`](Self::transmit) gives, its standard output is for [`hear`](Self::hear). Whenever something has been heard or has
/// ended, its upload is told ([`Upload::handle_accounts`](crate::Upload::handle_accounts)).
pub struct HostAccounts {
    stage: Stage,
    asked: Vec<(AccountKind, Vec<u8>)>,
    answers: Vec<Option<u32>>,
    /// Whether the host has said that it answers.
    was_ready: bool,
    line: Vec<u8>,
    out: Vec<u8>,
    /// Octets of `out` that have left.
    left: usize,
}

impl HostAccounts {
    pub(crate) fn new() -> HostAccounts {
        HostAccounts {
            stage: Stage::Unopened,
            asked: Vec::new(),
            answers: Vec::new(),
            was_ready: false,
            line: Vec::new(),
            out: Vec::new(),
            left: 0,
        }
    }

    /// Asks for the numbers of these, once and for all. None of the names has a newline in it.
    pub(crate) fn ask(&mut self, names: Vec<(AccountKind, Vec<u8>)>) {
        self.asked = names;
    }

    /// Whether nothing more will be answered.
    pub(crate) fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// Whether the host could be asked.
    pub(crate) fn was_ready(&self) -> bool {
        self.was_ready
    }

    /// What was asked for, and the numbers of what the host knows.
    pub(crate) fn take_answers(&mut self) -> Vec<(AccountKind, Vec<u8>, Option<u32>)> {
        let none = std::iter::repeat(None);
        let answers = std::mem::take(&mut self.answers).into_iter().chain(none);
        let asked = std::mem::take(&mut self.asked).into_iter();
        let both = asked.zip(answers);
        both.map(|((kind, name), number)| (kind, name, number))
            .collect()
    }

    /// What the session runs, by whatever shell the account has. A host without getent(1) has id(1) at least, for users.
    pub fn command() -> String {
        "exec sh -c 'LC_ALL=C; export LC_ALL; IFS= read -r l; echo sshoal-ready; \
         while IFS= read -r l; do n=${l#?}; o=; case $l in \
         u*) o=$(getent passwd \"$n\" 2>/dev/null </dev/null) || o=:x:$(id -u \"$n\" 2>/dev/null </dev/null); \
         test \"${o#:}\" = \"$o\" || o=$n$o;; \
         g*) o=$(getent group \"$n\" 2>/dev/null </dev/null);; \
         *) break;; esac; printf \"sshoal-id %s\\n\" \"$o\"; done'"
            .to_owned()
    }

    /// Whether a session is to be opened.
    pub fn wants_session(&self) -> bool {
        self.stage == Stage::Unopened && !self.asked.is_empty()
    }

    /// It is being opened.
    pub fn opened(&mut self) {
        self.stage = Stage::Opening;
        self.out.extend_from_slice(GREETING);
    }

    /// Whether the host has yet to say that it answers.
    pub fn is_opening(&self) -> bool {
        self.stage == Stage::Opening
    }

    /// Whether answers are waited for.
    pub fn is_asking(&self) -> bool {
        self.stage == Stage::Ready
    }

    /// Octets for the host.
    pub fn transmit(&self) -> &[u8] {
        &self.out[self.left..]
    }

    /// So many of them have left.
    pub fn transmitted(&mut self, octets: usize) {
        self.left += octets;
    }

    /// Takes what the host says.
    pub fn hear(&mut self, mut input: &[u8]) {
        while let Some(end) = input.iter().position(|&octet| octet == b'\n') {
            self.keep(&input[..end]);
            let line = std::mem::take(&mut self.line);
            self.handle_line(&line);
            input = &input[end + 1..];
        }
        self.keep(input);
    }

    fn keep(&mut self, part: &[u8]) {
        let room = LINE - self.line.len();
        self.line.extend_from_slice(&part[..part.len().min(room)]);
    }

    fn handle_line(&mut self, line: &[u8]) {
        match self.stage {
            // What comes before is a shell's greeting.
            Stage::Opening if line == READY => {
                self.stage = Stage::Ready;
                self.was_ready = true;
                for (kind, name) in &self.asked {
                    self.out.push(match kind {
                        AccountKind::User => b'u',
                        AccountKind::Group => b'g',
                    });
                    self.out.extend_from_slice(name);
                    self.out.push(b'\n');
                }
                self.out.extend_from_slice(b".\n");
            }
            Stage::Ready => {
                let Some(answer) = line.strip_prefix(ANSWER) else {
                    return;
                };
                let number = accounts(answer).next().map(|(_, number)| number);
                self.answers.push(number);
                if self.answers.len() == self.asked.len() {
                    self.end();
                }
            }
            _ => {}
        }
    }

    /// Nothing more comes of the session, or it was refused.
    pub fn end(&mut self) {
        self.stage = Stage::Over;
        (self.out, self.left) = (Vec::new(), 0);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    fn asked(names: &[(AccountKind, &str)]) -> HostAccounts {
        let mut host = HostAccounts::new();
        let names = names
            .iter()
            .map(|(kind, name)| (*kind, name.as_bytes().to_vec()));
        host.ask(names.collect());
        assert!(host.wants_session());
        host.opened();
        host
    }

    fn numbers(mut host: HostAccounts) -> Vec<Option<u32>> {
        assert!(host.is_over());
        let answers = host.take_answers().into_iter();
        answers.map(|(_, _, number)| number).collect()
    }

    #[test]
    fn answers_belong_to_what_was_asked_for_in_its_order() {
        let mut host = asked(&[(AccountKind::User, "a"), (AccountKind::Group, "b")]);
        host.hear(b"Welcome!\nsshoal-id no:x:1:\nsshoal-ready\n");
        assert_eq!(host.transmit(), b"./sshoal\nua\ngb\n.\n");
        host.hear(b"sshoal-id a:x:10");
        host.hear(b"00:5::\nnoise\nsshoal-id \nsshoal-id b:x:7:\n");
        assert_eq!(numbers(host), [Some(1000), None]);
    }

    #[test]
    fn a_host_that_ends_early_knows_none_of_the_rest() {
        let mut host = asked(&[(AccountKind::User, "a"), (AccountKind::User, "b")]);
        assert!(host.is_opening());
        host.hear(b"sshoal-ready\nsshoal-id a:x:5:5\n");
        assert!(host.is_asking() && host.was_ready());
        host.end();
        assert_eq!(numbers(host), [Some(5), None]);
        let mut closed = asked(&[(AccountKind::User, "a")]);
        closed.hear(b"This account is closed.\n");
        closed.end();
        assert!(!closed.was_ready());
        assert_eq!(numbers(closed), [None]);
    }

    /// The command in this machine's shells.
    #[test]
    fn the_command_finds_users_and_groups() {
        let shells: &[&[&str]] = &[&["sh", "-c"], &["busybox", "sh", "-c"]];
        for shell in shells {
            let mut host = asked(&[
                (AccountKind::User, "root"),
                (AccountKind::User, "no such user"),
                (AccountKind::Group, "root"),
                (AccountKind::Group, "$(echo root)"),
            ]);
            let mut child = Command::new(shell[0])
                .args(&shell[1..])
                .arg(HostAccounts::command())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut input = child.stdin.take().unwrap();
            input.write_all(host.transmit()).unwrap();
            let greeted = host.transmit().len();
            host.transmitted(greeted);
            // What it says first is known.
            host.hear(b"sshoal-ready\n");
            input.write_all(host.transmit()).unwrap();
            drop(input);
            let said = child.wait_with_output().unwrap().stdout;
            host.hear(&said);
            assert_eq!(numbers(host), [Some(0), None, Some(0), None], "{shell:?}");
        }
    }
}
