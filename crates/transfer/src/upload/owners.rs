//! Whom things belong to on the host: names become numbers before anything is made; numbers are set on parts before they are put
//! in place, and before their modes, for chown(2) takes set-user-ID away. Nobody's owner is set through a symbolic link.

use std::collections::{BTreeSet, HashMap, VecDeque};

use super::{Asked, Phase, Upload, UploadPlan};
use crate::Trouble;
use crate::owners::{Account, AccountKind, HostAccounts, ListStep, Lists, Owner, Owners};
use crate::sftp::{Attributes, Extension, Reply, Request};

/// Set-user-ID and set-group-ID, which chown(2) takes away.
const SET_ID_BITS: u32 = 0o6000;
/// Why a name is not known.
const NOT_LISTED: &str =
    "it is neither in its /etc/passwd or /etc/group nor known to getent or id there";
const NOT_ASKED: &str =
    "it is not in its /etc/passwd or /etc/group, and no command can be run there to ask further";
const NOT_READ: &str =
    "its /etc/passwd and /etc/group cannot be read, and no command can be run there to ask";
/// Why numbers are kept.
const SOME_UNKNOWN: &str = "the host does not know all users and groups by their names";

/// What is known of a host's accounts.
pub(super) struct OwnerBook {
    stage: Stage,
    lists: Lists,
    accounts: HostAccounts,
    /// Numbers of the names that matter.
    numbers: HashMap<(AccountKind, Vec<u8>), u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Unbegun,
    Lists,
    Session,
}

impl OwnerBook {
    pub(super) fn new() -> OwnerBook {
        OwnerBook {
            stage: Stage::Unbegun,
            lists: Lists::default(),
            accounts: HostAccounts::new(),
            numbers: HashMap::new(),
        }
    }

    /// Nothing more is asked in a session.
    pub(super) fn close(&mut self) {
        self.accounts.end();
    }

    fn number(&self, kind: AccountKind, account: Option<&Account>) -> Option<u32> {
        match account? {
            Account::Number(number) => Some(*number),
            Account::Name(name) => self.numbers.get(&(kind, name.clone())).copied(),
        }
    }
}

impl UploadPlan {
    /// The names whose numbers on the host have to be known.
    fn account_names(&self) -> BTreeSet<(AccountKind, Vec<u8>)> {
        let kinds = [AccountKind::User, AccountKind::Group];
        let mut names = BTreeSet::new();
        match &self.owners {
            Owners::Kept { by_name: true } => {
                for kind in kinds {
                    let of_kind = self.names.of(kind).values();
                    names.extend(of_kind.map(|name| (kind, name.clone())));
                }
            }
            Owners::Given { user, group } => {
                for (kind, account) in kinds.into_iter().zip([user, group]) {
                    if let Some(Account::Name(name)) = account {
                        names.insert((kind, name.clone()));
                    }
                }
            }
            Owners::Makers | Owners::Kept { by_name: false } => {}
        }
        names
    }

    /// What a number here is called.
    fn name_of(&self, kind: AccountKind, number: u32) -> Option<&Vec<u8>> {
        let by_name = self.owners == Owners::Kept { by_name: true };
        self.names.of(kind).get(&number).filter(|_| by_name)
    }
}

impl Upload {
    /// Finds out the numbers of names.
    pub(super) fn find_owners(&mut self) {
        let plan = self.plan.clone();
        if self.interrupted {
            self.phase = Phase::Folders;
            return;
        }
        if self.owners.stage == Stage::Unbegun {
            let kinds = plan.account_names().into_iter().map(|(kind, _)| kind);
            let kinds: BTreeSet<AccountKind> = kinds.collect();
            self.owners.lists = Lists::of(kinds);
            self.owners.stage = Stage::Lists;
            self.ask_lists();
        }
        if self.owners.stage == Stage::Lists && self.owners.lists.is_over() {
            let names = plan.account_names();
            let missing = self.look_up(names);
            self.owners.stage = Stage::Session;
            match missing.is_empty() {
                true => self.phase = Phase::Folders,
                false => self.owners.accounts.ask(missing),
            }
        } else if self.owners.stage == Stage::Session && self.owners.accounts.is_over() {
            self.phase = Phase::Folders;
            self.take_answers();
        }
    }

    /// Takes down what the lists have; returns the rest.
    fn look_up(&mut self, names: BTreeSet<(AccountKind, Vec<u8>)>) -> Vec<(AccountKind, Vec<u8>)> {
        let book = &mut self.owners;
        let users = book.lists.numbers(AccountKind::User);
        let groups = book.lists.numbers(AccountKind::Group);
        let mut missing = Vec::new();
        for (kind, name) in names {
            let list = match kind {
                AccountKind::User => &users,
                AccountKind::Group => &groups,
            };
            match list.get(name.as_slice()) {
                Some(&number) => {
                    book.numbers.insert((kind, name), number);
                }
                None => missing.push((kind, name)),
            }
        }
        missing
    }

    fn ask_lists(&mut self) {
        while let Some((step, question)) = self.owners.lists.poll_question() {
            self.ask(question.request(), Asked::Accounts(step));
        }
    }

    pub(super) fn handle_list(&mut self, step: ListStep, reply: Reply) {
        match reply {
            Reply::Handle(handle) if self.interrupted => {
                self.ask(Request::Close { handle: &handle }, Asked::Forget);
            }
            reply => self.owners.lists.handle(step, reply),
        }
        self.ask_lists();
    }

    /// The session in which the host is asked about its accounts.
    pub fn accounts(&mut self) -> &mut HostAccounts {
        &mut self.owners.accounts
    }

    /// Takes note of what became of it.
    pub fn handle_accounts(&mut self) {
        self.advance();
    }

    /// Nothing more can be found out. Names that the user has given have to be known; where others are not, numbers are kept.
    fn take_answers(&mut self) {
        for (kind, name, number) in self.owners.accounts.take_answers() {
            match number {
                Some(number) => {
                    self.owners.numbers.insert((kind, name), number);
                }
                None if matches!(self.plan.owners, Owners::Given { .. }) => {
                    let why = match (
                        self.owners.accounts.was_ready(),
                        self.owners.lists.has_read(kind),
                    ) {
                        (true, _) => NOT_LISTED,
                        (false, true) => NOT_ASKED,
                        (false, false) => NOT_READ,
                    };
                    let name = String::from_utf8_lossy(&name).into_owned();
                    self.tally.failed += self.plan.entries.len().saturating_sub(1) as u64;
                    let trouble = Trouble::NoAccount { kind, name, why };
                    self.failed(self.plan.target.clone(), trouble);
                    self.left = 0;
                    self.phase = Phase::Ended;
                    return;
                }
                None => self.tally.why_numbers = Some(SOME_UNKNOWN),
            }
        }
    }

    /// Whom an entry is to belong to.
    pub(super) fn owner(&self, entry: usize) -> Owner {
        match &self.plan.owners {
            Owners::Makers => Owner::default(),
            Owners::Given { user, group } => Owner {
                user: self.owners.number(AccountKind::User, user.as_ref()),
                group: self.owners.number(AccountKind::Group, group.as_ref()),
            },
            Owners::Kept { .. } => {
                let (user, group) = self.plan.entries[entry].owner;
                Owner::of((
                    self.number_there(AccountKind::User, user),
                    self.number_there(AccountKind::Group, group),
                ))
            }
        }
    }

    fn number_there(&self, kind: AccountKind, number: u32) -> u32 {
        let name = self.plan.name_of(kind, number);
        let there = name.and_then(|name| self.owners.numbers.get(&(kind, name.clone())));
        there.copied().unwrap_or(number)
    }

    /// What sets the owner of what is at a path, and not of what a link there leads to, as far as the server can.
    pub(super) fn own<'a>(&self, path: &'a [u8], owner: (u32, u32)) -> Request<'a> {
        let attributes = Attributes {
            owner: Some(owner),
            ..Attributes::default()
        };
        match self.channels[0].client.has(Extension::Lsetstat) {
            true => Request::Lsetstat { path, attributes },
            false => Request::Setstat { path, attributes },
        }
    }

    /// What something lacks whose contents are there already, in the order in which it is to be set.
    pub(super) fn lacks(&self, entry: usize, there: &Attributes) -> VecDeque<Attributes> {
        let owner = self.owner(entry).missing(there.owner);
        let it = &self.plan.entries[entry];
        let mut lacks = VecDeque::new();
        lacks.extend(owner.map(|owner| Attributes {
            owner: Some(owner),
            ..Attributes::default()
        }));
        let loses_bits = owner.is_some() && it.mode & SET_ID_BITS != 0;
        if self.plan.preserve && (loses_bits || !it.is_kept(there, true)) {
            lacks.push_back(it.kept());
        }
        lacks
    }

    /// A file of which a part is at this path is to have this owner: what is to be asked next, if anything is.
    pub(super) fn owner_of_part(&self, entry: usize, has: Option<(u32, u32)>) -> Wanted {
        let owner = self.owner(entry);
        match owner.both(has) {
            _ if !owner.is_any() => Wanted::Nothing,
            Some(both) => Wanted::Set(both),
            None => Wanted::Look,
        }
    }
}

/// What is to be done about something's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Nothing,
    /// The present one has to be known first.
    Look,
    Set((u32, u32)),
}

/// What is told of a server that does not say whom files belong to.
pub(super) const NO_OWNERS: &str = "owners of files";
