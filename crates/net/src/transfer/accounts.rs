//! Users and groups of this machine, by name and by number: those of /etc/passwd and /etc/group, and what else NSS knows, those of a
//! directory for example, by getent(1).

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::hash::Hash;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard};

use sshoal_transfer::{AccountKind, Entry, Names, Rights, accounts};

/// Accounts that getent is asked for at a time.
const AT_A_TIME: usize = 256;

/// What has been looked for: none where nobody has the name.
type Known = HashMap<(AccountKind, Vec<u8>), Option<u32>>;

/// Numbers of this machine's accounts, looked for once for all hosts.
#[derive(Debug, Default)]
pub struct Accounts(Mutex<Known>);

impl Accounts {
    /// The number of a user or group, if there is one of this name.
    pub fn number(&self, kind: AccountKind, name: &[u8]) -> Option<u32> {
        self.numbers(kind, &[name.to_vec()]).pop().flatten()
    }

    /// The same for several, in their order.
    pub(super) fn numbers(&self, kind: AccountKind, names: &[Vec<u8>]) -> Vec<Option<u32>> {
        let known = self.lock();
        let is_new = |name: &&Vec<u8>| !known.contains_key(&(kind, (*name).clone()));
        let wanted: BTreeSet<Vec<u8>> = names.iter().filter(is_new).cloned().collect();
        drop(known);
        // Others may look for the same meanwhile: they find the same.
        let found = find(kind, &wanted, |name, number| (name.to_vec(), number));
        let mut known = self.lock();
        known.extend(wanted.into_iter().map(|name| {
            let number = found.get(&name).copied();
            ((kind, name), number)
        }));
        let numbers = names.iter();
        numbers
            .map(|name| known.get(&(kind, name.clone())).copied().flatten())
            .collect()
    }

    /// What it holds is whole after every statement, whoever panicked.
    fn lock(&self) -> MutexGuard<'_, Known> {
        match self.0.lock() {
            Ok(known) => known,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}

/// What this machine calls those whom the entries belong to. Root is root everywhere, as for rsync.
pub fn names_of(entries: &[Entry]) -> Names {
    let names = |kind, number: fn(&Entry) -> u32| {
        let numbers: BTreeSet<u32> = entries.iter().map(number).filter(|&it| it != 0).collect();
        find(kind, &numbers, |name, number| (number, name.to_vec()))
    };
    Names {
        users: names(AccountKind::User, |entry| entry.owner.0),
        groups: names(AccountKind::Group, |entry| entry.owner.1),
    }
}

/// Whom the user that runs this program may give files to.
pub fn rights() -> Rights {
    let user = rustix::process::geteuid();
    if user.is_root() {
        return Rights::All;
    }
    let groups = rustix::process::getgroups().unwrap_or_default();
    let groups = groups.into_iter().chain([rustix::process::getegid()]);
    Rights::Own {
        user: user.as_raw(),
        groups: groups.map(|group| group.as_raw()).collect(),
    }
}

/// Those that are wanted of this machine's accounts, of several the first. `entry`: which way about.
fn find<K: Ord + Hash + Key, V>(
    kind: AccountKind,
    wanted: &BTreeSet<K>,
    entry: impl Fn(&[u8], u32) -> (K, V),
) -> HashMap<K, V> {
    let mut found = HashMap::new();
    if wanted.is_empty() {
        return found;
    }
    let mut take = |list: &[u8]| {
        for (name, number) in accounts(list) {
            let (key, value) = entry(name, number);
            if wanted.contains(&key) {
                found.entry(key).or_insert(value);
            }
        }
        wanted
            .iter()
            .filter(|key| !found.contains_key(*key))
            .collect()
    };
    let (path, database) = match kind {
        AccountKind::User => ("/etc/passwd", "passwd"),
        AccountKind::Group => ("/etc/group", "group"),
    };
    // A list that cannot be read has nobody in it.
    let missing: Vec<&K> = take(&fs::read(path).unwrap_or_default());
    for keys in missing.chunks(AT_A_TIME) {
        let mut getent = Command::new("getent");
        getent.args([database, "--"]).stdin(Stdio::null());
        getent.args(
            keys.iter()
                .map(|key| OsStr::from_bytes(&key.text()).to_owned()),
        );
        // Its status tells only that some are not known.
        if let Ok(output) = getent.stderr(Stdio::null()).output() {
            let _: Vec<&K> = take(&output.stdout);
        }
    }
    found
}

/// What accounts are looked for by.
trait Key {
    /// As getent(1) takes it.
    fn text(&self) -> Vec<u8>;
}

impl Key for u32 {
    fn text(&self) -> Vec<u8> {
        self.to_string().into_bytes()
    }
}

impl Key for Vec<u8> {
    fn text(&self) -> Vec<u8> {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_of_this_machine_are_found_by_name_and_by_number() {
        let accounts = Accounts::default();
        assert_eq!(accounts.number(AccountKind::User, b"root"), Some(0));
        let names = [&b"no such group"[..], b"root", b"-s", b"0", b"n\0l"].map(<[u8]>::to_vec);
        for _ in 0..2 {
            let found = accounts.numbers(AccountKind::Group, &names);
            assert_eq!(found, [None, Some(0), None, None, None]);
        }
        let wanted = BTreeSet::from([0, u32::MAX - 5]);
        let names = find(AccountKind::User, &wanted, |name, number| {
            (number, name.to_vec())
        });
        assert_eq!(names, HashMap::from([(0, b"root".to_vec())]));
    }
}
