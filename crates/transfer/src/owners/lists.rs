//! A host's /etc/passwd and /etc/group, read over SFTP.

use std::collections::HashMap;

use super::{AccountKind, Names, accounts};
use crate::device::Question;
use crate::sftp::{Handle, Reply};

/// Octets of one list that are read, some 100,000 accounts: what follows is not known.
const LONGEST: usize = 8 * 1024 * 1024;

/// What a request was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListStep {
    Open(AccountKind),
    Read(AccountKind),
    /// The answer does not matter.
    Close,
}

/// Both lists, or one of them.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    users: List,
    groups: List,
    questions: Vec<(ListStep, Question)>,
    /// Questions without an answer.
    open: usize,
}

#[derive(Debug, Default)]
struct List {
    handle: Option<Handle>,
    text: Vec<u8>,
    is_read: bool,
}

impl Lists {
    /// Reads these lists.
    pub(crate) fn of(kinds: impl IntoIterator<Item = AccountKind>) -> Lists {
        let questions = kinds.into_iter().map(|kind| {
            let path: &[u8] = match kind {
                AccountKind::User => b"/etc/passwd",
                AccountKind::Group => b"/etc/group",
            };
            (ListStep::Open(kind), Question::Open(path.to_vec()))
        });
        Lists {
            questions: questions.collect(),
            ..Lists::default()
        }
    }

    /// The next thing to ask; each is to be answered by [`handle`](Self::handle).
    pub(crate) fn poll_question(&mut self) -> Option<(ListStep, Question)> {
        let question = self.questions.pop()?;
        self.open += 1;
        Some(question)
    }

    /// Whether everything has been asked and answered.
    pub(crate) fn is_over(&self) -> bool {
        self.open == 0 && self.questions.is_empty()
    }

    pub(crate) fn handle(&mut self, step: ListStep, reply: Reply) {
        self.open -= 1;
        match (step, reply) {
            (ListStep::Open(kind), Reply::Handle(handle)) => {
                let question = Question::Read(handle.clone(), 0);
                self.list(kind).handle = Some(handle);
                self.questions.push((ListStep::Read(kind), question));
            }
            (ListStep::Read(kind), reply) => self.handle_read(kind, &reply),
            _ => {}
        }
    }

    fn handle_read(&mut self, kind: AccountKind, reply: &Reply) {
        let list = self.list(kind);
        let Some(handle) = list.handle.clone() else {
            return;
        };
        let read = match reply {
            Reply::Data(data) => &data[..],
            _ => b"",
        };
        list.text.extend_from_slice(read);
        if !read.is_empty() && list.text.len() < LONGEST {
            let question = Question::Read(handle, list.text.len() as u64);
            return self.questions.push((ListStep::Read(kind), question));
        }
        if !read.is_empty() {
            // The last line may go on.
            let end = list.text.iter().rposition(|&octet| octet == b'\n');
            list.text.truncate(end.unwrap_or(0));
        }
        (list.handle, list.is_read) = (None, true);
        self.questions
            .push((ListStep::Close, Question::Close(handle)));
    }

    fn list(&mut self, kind: AccountKind) -> &mut List {
        match kind {
            AccountKind::User => &mut self.users,
            AccountKind::Group => &mut self.groups,
        }
    }

    /// Whether this list could be read.
    pub(crate) fn has_read(&self, kind: AccountKind) -> bool {
        match kind {
            AccountKind::User => self.users.is_read,
            AccountKind::Group => self.groups.is_read,
        }
    }

    fn text(&self, kind: AccountKind) -> &[u8] {
        match kind {
            AccountKind::User => &self.users.text,
            AccountKind::Group => &self.groups.text,
        }
    }

    /// Numbers by their names. Of several of one name the first counts, as for getpwnam(3).
    pub(crate) fn numbers(&self, kind: AccountKind) -> HashMap<&[u8], u32> {
        let mut numbers = HashMap::new();
        for (name, number) in accounts(self.text(kind)) {
            numbers.entry(name).or_insert(number);
        }
        numbers
    }

    /// Names by their numbers, in the same way.
    pub(crate) fn names(&self) -> Names {
        let names = |kind| {
            let mut names = HashMap::new();
            for (name, number) in accounts(self.text(kind)) {
                names.entry(number).or_insert_with(|| name.to_vec());
            }
            names
        };
        Names {
            users: names(AccountKind::User),
            groups: names(AccountKind::Group),
        }
    }
}
