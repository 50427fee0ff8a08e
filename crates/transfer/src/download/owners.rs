//! Whom fetched things belong to here. The host tells numbers; for `--owner` their names are asked for, which this machine then has
//! numbers of its own for. What has been found waits until that is known.

use std::collections::{BTreeSet, HashMap};

use super::{Asked, Download, DownloadEvent, DownloadNeed, Item};
use crate::Trouble;
use crate::owners::{Account, AccountKind, ListStep, Lists, Names, Owner, Owners};
use crate::path::MAX_NAME;
use crate::sftp::{AccountNames, Attributes, Extension, Reply, Request};

/// Users, and groups, that are asked about at a time.
const AT_A_TIME: usize = 256;
/// Users, and groups, of one host that are known by name: a hostile server cannot have us ask for more. Others are kept by number.
const MOST: usize = 16_384;

/// What is known of a host's accounts.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    /// This machine's numbers by the host's.
    numbers: HashMap<(AccountKind, u32), u32>,
    /// Numbers that are being asked about.
    asked: [Vec<u32>; 2],
    /// Numbers that have names here which are being looked for.
    named: [Vec<u32>; 2],
    /// The host's lists, where it has no extension for this.
    lists: Lists,
    names: Option<Names>,
    is_asking: bool,
    /// What has been found and waits.
    waiting: Vec<Item>,
    /// Whether it has been told that owners cannot be kept.
    is_told: bool,
}

impl Accounts {
    /// What has been found and waits.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn interrupt(&mut self) {
        self.waiting.clear();
    }

    /// The number here. Root is root everywhere, as for rsync.
    fn number(&self, kind: AccountKind, there: u32) -> Option<u32> {
        let is_full = self.numbers.len() >= 2 * MOST;
        match self.numbers.get(&(kind, there)) {
            Some(&here) => Some(here),
            None => (there == 0 || is_full).then_some(there),
        }
    }

    /// Numbers that somebody waits for and nothing is known of.
    fn unknown(&self) -> [Vec<u32>; 2] {
        let mut unknown = [BTreeSet::new(), BTreeSet::new()];
        for (user, group) in self.waiting.iter().filter_map(|it| it.attributes.owner) {
            let both = [(AccountKind::User, user), (AccountKind::Group, group)];
            for ((kind, number), unknown) in both.into_iter().zip(&mut unknown) {
                if unknown.len() < AT_A_TIME && self.number(kind, number).is_none() {
                    unknown.insert(number);
                }
            }
        }
        unknown.map(|numbers| numbers.into_iter().collect())
    }
}

impl Download {
    /// Takes what is to be fetched once it is known whom it belongs to; gives it back if that is known.
    pub(super) fn await_owner(&mut self, item: Item) -> Option<Item> {
        let by_name = self.plan.owners == Owners::Kept { by_name: true };
        let Some((user, group)) = item.attributes.owner.filter(|_| by_name) else {
            return Some(item);
        };
        let number = |kind, there| self.accounts.number(kind, there);
        if number(AccountKind::User, user).is_some() && number(AccountKind::Group, group).is_some()
        {
            return Some(item);
        }
        self.accounts.waiting.push(item);
        self.ask_accounts();
        None
    }

    /// Asks the host about numbers that something waits for.
    fn ask_accounts(&mut self) {
        if self.accounts.is_asking {
            return;
        }
        let [users, groups] = self.accounts.unknown();
        if users.is_empty() && groups.is_empty() {
            return;
        }
        self.accounts.is_asking = true;
        if self.channels[0].client.has(Extension::UsersGroupsById) {
            self.open += 1;
            let request = Request::UsersGroupsById {
                users: &users,
                groups: &groups,
            };
            self.ask(request, Asked::AccountNames);
            self.accounts.asked = [users, groups];
            return;
        }
        self.accounts.asked = [users, groups];
        if self.accounts.names.is_none() {
            self.accounts.lists = Lists::of([AccountKind::User, AccountKind::Group]);
        }
        self.go_on_with_lists();
    }

    fn go_on_with_lists(&mut self) {
        while let Some((step, question)) = self.accounts.lists.poll_question() {
            self.open += 1;
            self.ask(question.request(), Asked::AccountList(step));
        }
        if !self.accounts.lists.is_over() {
            return;
        }
        let lists = &self.accounts.lists;
        let names = self.accounts.names.get_or_insert_with(|| lists.names());
        let names_of = |kind, numbers: &[u32]| -> Vec<Vec<u8>> {
            let of_kind = names.of(kind);
            let names = numbers.iter();
            names
                .map(|number| of_kind.get(number).cloned().unwrap_or_default())
                .collect()
        };
        let [users, groups] = &self.accounts.asked;
        let names = AccountNames {
            users: names_of(AccountKind::User, users),
            groups: names_of(AccountKind::Group, groups),
        };
        self.look_for_accounts(names);
    }

    pub(super) fn handle_account_list(&mut self, step: ListStep, reply: Reply) {
        self.open -= 1;
        self.accounts.lists.handle(step, reply);
        self.go_on_with_lists();
    }

    pub(super) fn handle_account_names(&mut self, reply: Reply) {
        self.open -= 1;
        match reply {
            Reply::Accounts(names) => self.look_for_accounts(names),
            // What it does not tell is kept by number.
            _ => self.look_for_accounts(AccountNames::default()),
        }
    }

    /// The host has said what it calls them: this machine is to say what numbers they have here.
    fn look_for_accounts(&mut self, names: AccountNames) {
        let asked = std::mem::take(&mut self.accounts.asked);
        let kinds = [AccountKind::User, AccountKind::Group];
        let mut wanted = [Vec::new(), Vec::new()];
        let of_each = [names.users, names.groups];
        for (at, (kind, names)) in kinds.into_iter().zip(of_each).enumerate() {
            let none = std::iter::repeat(Vec::new());
            for (&number, name) in asked[at].iter().zip(names.into_iter().chain(none)) {
                // What is longer than a file's name is nobody's here (LOGIN_NAME_MAX is 256).
                if name.is_empty() || name.len() > MAX_NAME {
                    self.accounts.numbers.insert((kind, number), number);
                } else {
                    self.accounts.named[at].push(number);
                    wanted[at].push(name);
                }
            }
        }
        let [users, groups] = wanted;
        if users.is_empty() && groups.is_empty() {
            return self.release_items();
        }
        self.open += 1;
        let need = DownloadNeed::Accounts { users, groups };
        self.needs.push_back(need);
    }

    pub(super) fn handle_accounts(&mut self, users: Vec<Option<u32>>, groups: Vec<Option<u32>>) {
        self.open -= 1;
        let named = std::mem::take(&mut self.accounts.named);
        let kinds = [AccountKind::User, AccountKind::Group];
        let of_each = kinds.into_iter().zip(named).zip([users, groups]);
        for ((kind, named), here) in of_each {
            let none = std::iter::repeat(None);
            for (there, here) in named.into_iter().zip(here.into_iter().chain(none)) {
                let here = here.unwrap_or(there);
                self.accounts.numbers.insert((kind, there), here);
            }
        }
        self.release_items();
    }

    /// What waited goes on, or waits for the next answer.
    fn release_items(&mut self) {
        for item in std::mem::take(&mut self.accounts.waiting) {
            if self.interrupted {
                return;
            }
            match item.is_device() {
                true => self.take_device(item),
                false => self.take_item(item),
            }
        }
        self.accounts.is_asking = false;
        self.ask_accounts();
    }

    /// Whom something is to belong to that has these attributes there, as far as this machine's user may decide that. What he may
    /// not is told once: a file in place is worth more than none.
    pub(super) fn owner_here(&mut self, path: &[u8], attributes: &Attributes) -> Owner {
        let number = |account: &Option<Account>| match account {
            Some(Account::Number(number)) => Some(*number),
            Some(Account::Name(_)) | None => None,
        };
        let owner = match (&self.plan.owners, attributes.owner) {
            (Owners::Makers, _) | (Owners::Kept { .. }, None) => Owner::default(),
            (Owners::Given { user, group }, _) => Owner {
                user: number(user),
                group: number(group),
            },
            (Owners::Kept { by_name: false }, Some(both)) => Owner::of(both),
            (Owners::Kept { by_name: true }, Some((user, group))) => {
                let here = |kind, there| self.accounts.number(kind, there).unwrap_or(there);
                Owner::of((
                    here(AccountKind::User, user),
                    here(AccountKind::Group, group),
                ))
            }
        };
        let rights = &self.plan.rights;
        if !rights.admit(owner) && !self.accounts.is_told {
            self.accounts.is_told = true;
            // Its contents are no less there.
            let trouble = Trouble::NotRoot { owner };
            let path = path.to_vec();
            self.events
                .push_back(DownloadEvent::Failed { path, trouble });
        }
        rights.allow(owner)
    }
}
