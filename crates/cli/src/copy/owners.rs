//! `--owner`, `--numeric-ids` and `--chown`: whom what is copied belongs to.

use sshoal_net::{Accounts, Scan, names_of, rights};
use sshoal_transfer::{Account, AccountKind, Names, Owner, Owners, Rights};

use super::CopyError;
use super::args::CopyArgs;

/// What `--chown` was given: a user, a group or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chown {
    user: Option<Account>,
    group: Option<Account>,
    /// As it was typed.
    text: String,
}

impl Chown {
    /// `USER`, `USER:GROUP` or `:GROUP`, each a name or a number.
    pub(crate) fn of(text: &str) -> Result<Chown, String> {
        let (user, group) = match text.split_once(':') {
            Some((user, group)) => (user, Some(group)),
            None => (text, None),
        };
        let account = |text: &str| {
            Account::of(text.as_bytes())
                .ok_or_else(|| format!("{text:?} is neither a name nor a number"))
        };
        let chown = Chown {
            user: match user {
                "" => None,
                user => Some(account(user)?),
            },
            group: group.map(account).transpose()?,
            text: text.to_owned(),
        };
        match (&chown.user, &chown.group) {
            (None, None) => Err("write USER, USER:GROUP or :GROUP, names or numbers".to_owned()),
            _ => Ok(chown),
        }
    }
}

/// Whether any of the flags is given.
pub(super) fn are_set(args: &CopyArgs) -> bool {
    args.owner || args.chown.is_some()
}

/// What hosts are to make of owners, and what this machine calls those of the entries. Names are the hosts'.
pub(super) fn of_put(args: &CopyArgs, found: &Scan) -> (Owners, Names) {
    let owners = match &args.chown {
        Some(chown) => Owners::Given {
            user: chown.user.clone(),
            group: chown.group.clone(),
        },
        None => kept(args),
    };
    let names = match owners == (Owners::Kept { by_name: true }) {
        true => names_of(&found.entries),
        false => Names::default(),
    };
    (owners, names)
}

/// What is made of owners here. Names are this machine's.
pub(super) fn of_get(args: &CopyArgs, accounts: &Accounts) -> Result<(Owners, Rights), CopyError> {
    let rights = rights();
    let Some(chown) = &args.chown else {
        return Ok((kept(args), rights));
    };
    let number = |kind: AccountKind, account: &Option<Account>| match account {
        None => Ok(None),
        Some(Account::Number(number)) => Ok(Some(*number)),
        Some(Account::Name(name)) => match accounts.number(kind, name) {
            Some(number) => Ok(Some(number)),
            None => Err(CopyError::NoAccount {
                kind: kind.name(),
                name: String::from_utf8_lossy(name).into_owned(),
            }),
        },
    };
    let owner = Owner {
        user: number(AccountKind::User, &chown.user)?,
        group: number(AccountKind::Group, &chown.group)?,
    };
    if !rights.admit(owner) {
        return Err(CopyError::NotRoot(chown.text.clone()));
    }
    let owners = Owners::Given {
        user: owner.user.map(Account::Number),
        group: owner.group.map(Account::Number),
    };
    Ok((owners, rights))
}

fn kept(args: &CopyArgs) -> Owners {
    match args.owner {
        true => Owners::Kept {
            by_name: !args.numeric_ids,
        },
        false => Owners::Makers,
    }
}

/// What `--dry-run` says of it.
pub(super) fn description(args: &CopyArgs) -> String {
    match &args.chown {
        Some(chown) => format!(", for {}", chown.text),
        None if args.owner => ", with its owners".to_owned(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_user_a_group_or_both() {
        let name = |name: &str| Some(Account::Name(name.as_bytes().to_vec()));
        let number = |number| Some(Account::Number(number));
        for (text, user, group) in [
            ("www-data", name("www-data"), None),
            ("www-data:33", name("www-data"), number(33)),
            ("0:root", number(0), name("root")),
            (":users", None, name("users")),
        ] {
            let chown = Chown::of(text).unwrap();
            assert_eq!((chown.user, chown.group), (user, group), "{text}");
        }
        for text in ["", ":", "user:", "a:b:c", "-x", "4294967295", "a\nb"] {
            assert!(Chown::of(text).is_err(), "{text:?}");
        }
    }
}
