//! Users and groups of what is copied: kept by name or number (`--owner`), or one for all (`--chown`).
//!
//! SFTP has numbers. Which names belong to them on a host its /etc/passwd and /etc/group tell over SFTP (`lists`), which works with
//! `internal-sftp`; a host that has its accounts elsewhere, in a directory for example, is asked in a [`session`].

mod lists;
mod session;

use std::collections::HashMap;
use std::fmt;

pub(crate) use lists::{ListStep, Lists};
pub use session::HostAccounts;

use crate::Remote;
use crate::Trouble;
use crate::sftp::Status;

/// The number that chown(2) takes for "as it is": nobody's.
const NOBODYS: u32 = u32::MAX;

/// What becomes of the owners of what is copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Owners {
    /// Everything belongs to whoever makes it.
    #[default]
    Makers,
    /// User and group are kept.
    Kept {
        /// By their names where the other side knows them, else by their numbers.
        by_name: bool,
    },
    /// All gets the same. What is not given is as its maker has it.
    Given {
        /// The user.
        user: Option<Account>,
        /// The group.
        group: Option<Account>,
    },
}

/// A user or a group, as somebody calls it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Account {
    /// By number.
    Number(u32),
    /// By name, in no particular encoding.
    Name(Vec<u8>),
}

/// Whether it is about users or groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccountKind {
    /// Users.
    User,
    /// Groups.
    Group,
}

/// The numbers that something is to get; none where it keeps what it has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Owner {
    /// The user's.
    pub user: Option<u32>,
    /// The group's.
    pub group: Option<u32>,
}

/// Names by their numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// Users.
    pub users: HashMap<u32, Vec<u8>>,
    /// Groups.
    pub groups: HashMap<u32, Vec<u8>>,
}

/// Whom this machine's files may be given to by the user that runs the program (chown(2)).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Rights {
    /// Root: to anybody.
    #[default]
    All,
    /// Anybody else: to nobody but himself, and to his groups.
    Own {
        /// His number.
        user: u32,
        /// Those of his groups.
        groups: Vec<u32>,
    },
}

impl Account {
    /// What a user typed: digits are a number. `None` for what is neither a number nor a name.
    pub fn of(text: &[u8]) -> Option<Account> {
        if text.iter().all(u8::is_ascii_digit) {
            let number = std::str::from_utf8(text).ok()?.parse().ok()?;
            return (number != NOBODYS).then_some(Account::Number(number));
        }
        let is_plain = |octet: &u8| !octet.is_ascii_control() && *octet != b':';
        let is_name = text.iter().all(is_plain) && !text.starts_with(b"-");
        is_name.then(|| Account::Name(text.to_vec()))
    }
}

impl AccountKind {
    /// As messages call it.
    pub fn name(self) -> &'static str {
        match self {
            AccountKind::User => "user",
            AccountKind::Group => "group",
        }
    }
}

impl Owner {
    /// User and group.
    pub fn of((user, group): (u32, u32)) -> Owner {
        Owner {
            user: Some(user),
            group: Some(group),
        }
    }

    /// Whether anything is to be set.
    pub fn is_any(self) -> bool {
        self != Owner::default()
    }

    /// Whether something that has this user and group is to get others.
    pub fn changes(self, has: (u32, u32)) -> bool {
        self.both(Some(has)).is_some_and(|owner| owner != has)
    }

    /// User and group, for something that has these; none if nothing is to be set, or not all is known.
    pub(crate) fn both(self, has: Option<(u32, u32)>) -> Option<(u32, u32)> {
        let (user, group) = has.filter(|_| self.is_any()).unzip();
        Some((self.user.or(user)?, self.group.or(group)?))
    }

    /// The same, unless it has them already.
    pub(crate) fn missing(self, has: Option<(u32, u32)>) -> Option<(u32, u32)> {
        self.both(has).filter(|owner| Some(*owner) != has)
    }

    /// The server has not set it.
    pub(crate) fn refused(self, status: &Status) -> Trouble {
        let why = Remote::of(status);
        Trouble::Owner { owner: self, why }
    }
}

/// As chown(1) takes it.
impl fmt::Display for Owner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(user) = self.user {
            write!(formatter, "{user}")?;
        }
        match self.group {
            Some(group) => write!(formatter, ":{group}"),
            None => Ok(()),
        }
    }
}

impl Names {
    /// Those of users or of groups.
    pub fn of(&self, kind: AccountKind) -> &HashMap<u32, Vec<u8>> {
        match kind {
            AccountKind::User => &self.users,
            AccountKind::Group => &self.groups,
        }
    }
}

impl Rights {
    /// As much of an owner as may be set.
    pub(crate) fn allow(&self, owner: Owner) -> Owner {
        match self {
            Rights::All => owner,
            // Files are his already.
            Rights::Own { groups, .. } => Owner {
                user: None,
                group: owner.group.filter(|group| groups.contains(group)),
            },
        }
    }

    /// Whether all of it may be set.
    pub fn admit(&self, owner: Owner) -> bool {
        match self {
            Rights::All => true,
            Rights::Own { user, groups } => {
                owner.user.is_none_or(|it| it == *user)
                    && owner.group.is_none_or(|it| groups.contains(&it))
            }
        }
    }
}

/// Names and numbers in /etc/passwd (passwd(5)) or /etc/group (group(5)), or as getent(1) prints them: the name is the first field,
/// the number the third.
pub fn accounts(list: &[u8]) -> impl Iterator<Item = (&[u8], u32)> {
    let lines = list.split(|&octet| octet == b'\n');
    lines.filter_map(|line| {
        let mut fields = line.split(|&octet| octet == b':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        let number = std::str::from_utf8(fields.nth(1)?).ok()?.parse().ok()?;
        // What NIS adds or takes away (`+name`) is none.
        let is_account = !matches!(name[0], b'+' | b'-' | b'#') && number != NOBODYS;
        is_account.then_some((name, number))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_a_number_or_a_name() {
        assert_eq!(Account::of(b"0"), Some(Account::Number(0)));
        assert_eq!(
            Account::of(b"4294967294"),
            Some(Account::Number(u32::MAX - 1))
        );
        for name in [&b"www-data"[..], b"1st", b"DOM\\user", b"a b", b"n\xff"] {
            assert_eq!(Account::of(name), Some(Account::Name(name.to_vec())));
        }
        for text in [
            &b""[..],
            b"4294967295",
            b"99999999999",
            b"-x",
            b"a:b",
            b"a\nb",
        ] {
            assert_eq!(Account::of(text), None, "{text:?}");
        }
    }

    #[test]
    fn half_an_owner_takes_the_rest_from_what_there_is() {
        let user = Owner {
            user: Some(5),
            group: None,
        };
        assert_eq!(
            (user.both(None), user.both(Some((1, 2)))),
            (None, Some((5, 2)))
        );
        assert_eq!(user.missing(Some((5, 9))), None);
        assert!(user.changes((4, 9)) && !user.changes((5, 9)));
        assert_eq!(Owner::of((1, 2)).both(None), Some((1, 2)));
        assert_eq!(Owner::default().both(Some((1, 2))), None);
        let shown = [
            user,
            Owner::of((5, 6)),
            Owner {
                user: None,
                ..Owner::of((0, 6))
            },
        ];
        assert_eq!(shown.map(|owner| owner.to_string()), ["5", "5:6", ":6"]);
    }

    #[test]
    fn only_root_gives_files_away() {
        let rights = Rights::Own {
            user: 5,
            groups: vec![5, 7],
        };
        for (owner, admitted, group) in [
            ((5, 7), true, Some(7)),
            ((5, 8), false, None),
            ((0, 7), false, Some(7)),
        ] {
            let owner = Owner::of(owner);
            assert_eq!(rights.admit(owner), admitted);
            assert_eq!(rights.allow(owner), Owner { user: None, group });
            assert_eq!(Rights::All.allow(owner), owner);
        }
    }

    #[test]
    fn lists_are_read_as_far_as_they_are_lists() {
        let list = b"root:x:0:0:root:/root:/bin/sh\n\nhalf:x\n+nis::9:9\n#c:x:1:\nn\xff:*:12:13\nbad:x:1x:2\nno:x:4294967295:\nend:x:7:a,b";
        let found: Vec<_> = accounts(list).collect();
        assert_eq!(found, [(&b"root"[..], 0), (b"n\xff", 12), (b"end", 7)]);
    }
}
