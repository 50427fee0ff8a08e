//! `--delete`: what is surplus at the side that things go to, by its place alone. Places are paths below the folder that
//! everything goes into there.

use std::collections::{HashMap, HashSet};

use crate::glob::Excludes;
use crate::part_name::{is_part_name, name_hash};
use crate::path::{file_name, join, parent};
use crate::upload::{Entry, Kind, UploadRoot};

/// What becomes of what is surplus.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Deletion {
    /// It stays.
    #[default]
    None,
    /// It is told, and nothing is done at all.
    Told,
    /// It is deleted when everything is in place.
    Done,
}

/// Folders among the sources, and what is left out of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Folders {
    /// What they are called there, empty for what has no name of its own: in order, each once.
    names: Vec<Vec<u8>>,
    excludes: Excludes,
}

impl Folders {
    fn new(mut names: Vec<Vec<u8>>, excludes: Excludes) -> Folders {
        names.sort();
        names.dedup();
        Folders { names, excludes }
    }

    /// Those that are not in another one.
    fn outermost(&self) -> &[Vec<u8>] {
        match self.names.first() {
            Some(first) if first.is_empty() => &self.names[..1],
            _ => &self.names,
        }
    }

    /// Whether what is there stays although no source has it: it is excluded, or the part of a file that some transfer has begun.
    fn spare(&self, place: &[u8]) -> bool {
        let below = |name: &Vec<u8>| match name.as_slice() {
            b"" => Some(place),
            name => place.strip_prefix(name)?.strip_prefix(b"/"),
        };
        let mut paths = self.names.iter().filter_map(below);
        is_part_name(file_name(place)) || paths.any(|path| self.excludes.covers(path))
    }
}

/// What is surplus on hosts: the same for all of them.
#[derive(Debug, Clone)]
pub struct Surplus {
    places: HashMap<Vec<u8>, Place>,
    folders: Folders,
    /// Whether it is only told.
    only_told: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// Its entry if it is a folder: the first one, where several sources have it.
    folder: Option<usize>,
    /// How many different names the sources have in it.
    names: usize,
}

impl Surplus {
    /// What these entries do not have in the folders among them, but for what is excluded. `only_told`: nothing is done at all.
    pub fn new(
        roots: &[UploadRoot],
        entries: &[Entry],
        excludes: Excludes,
        only_told: bool,
    ) -> Surplus {
        let mut places: HashMap<Vec<u8>, Place> = HashMap::new();
        for (number, entry) in entries.iter().enumerate() {
            let at = join(&roots[entry.root].name, &entry.path);
            if !at.is_empty() && !places.contains_key(&at) {
                places.entry(above(&at).to_vec()).or_default().names += 1;
            }
            let place = places.entry(at).or_default();
            if entry.kind == Kind::Folder {
                place.folder.get_or_insert(number);
            }
        }
        let names = roots.iter().filter(|root| root.is_folder);
        let names = names.map(|root| root.name.clone()).collect();
        Surplus {
            places,
            folders: Folders::new(names, excludes),
            only_told,
        }
    }

    /// Whether nothing is done but to tell it.
    pub(crate) fn is_only_told(&self) -> bool {
        self.only_told
    }

    /// Where it is looked for, with all that is below.
    pub(crate) fn scopes(&self) -> &[Vec<u8>] {
        self.folders.outermost()
    }

    /// Whether the sources have something there.
    pub(crate) fn is_sent(&self, place: &[u8]) -> bool {
        self.places.contains_key(place)
    }

    /// The entry of a folder that the sources have there.
    pub(crate) fn folder(&self, place: &[u8]) -> Option<usize> {
        self.places.get(place)?.folder
    }

    /// How many names the sources have in a folder.
    pub(crate) fn names(&self, place: &[u8]) -> usize {
        self.places.get(place).map_or(0, |place| place.names)
    }

    /// Whether it stays although the sources do not have it.
    pub(crate) fn is_spared(&self, place: &[u8]) -> bool {
        self.folders.spare(place)
    }
}

/// What is surplus in a host's folder here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SurplusHere {
    /// Hashes of the places of all that the host has. Where two have the same, what is surplus stays.
    fetched: HashSet<u64>,
    /// How many names the host has in folders, by the same hashes.
    names: HashMap<u64, u32>,
    folders: Folders,
    /// Whether it is only told.
    pub only_told: bool,
}

/// What a place in the set of those that are fetched takes, octets.
pub(crate) const FETCHED: usize = 32;

impl SurplusHere {
    /// Before anything is known; `only_told`: nothing is done at all.
    pub fn new(excludes: Excludes, only_told: bool) -> SurplusHere {
        SurplusHere {
            fetched: HashSet::new(),
            names: HashMap::new(),
            folders: Folders::new(Vec::new(), excludes),
            only_told,
        }
    }

    /// The host has something there; `true` if that is new.
    pub fn note(&mut self, place: &[u8]) -> bool {
        let is_new = self.fetched.insert(name_hash(place));
        if is_new && !place.is_empty() {
            *self.names.entry(name_hash(above(place))).or_default() += 1;
        }
        is_new
    }

    /// The user means a folder, which comes with all that is in it.
    pub fn note_folder(&mut self, name: Vec<u8>) {
        let folders = std::mem::take(&mut self.folders);
        let names = [folders.names, vec![name]].concat();
        self.folders = Folders::new(names, folders.excludes);
    }

    /// Where it is looked for, with all that is below.
    pub fn scopes(&self) -> &[Vec<u8>] {
        self.folders.outermost()
    }

    /// How many names the host has in a folder.
    pub fn names(&self, place: &[u8]) -> usize {
        self.names
            .get(&name_hash(place))
            .map_or(0, |names| *names as usize)
    }

    /// Whether the host has something there.
    pub fn is_fetched(&self, place: &[u8]) -> bool {
        self.fetched.contains(&name_hash(place))
    }

    /// Whether it stays although the host does not have it.
    pub fn is_spared(&self, place: &[u8]) -> bool {
        self.folders.spare(place)
    }
}

/// The place of the folder that a place is in.
fn above(place: &[u8]) -> &[u8] {
    match place.contains(&b'/') {
        true => parent(place),
        false => b"",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upload::tests::entry;

    fn root(name: &[u8], is_folder: bool) -> UploadRoot {
        UploadRoot {
            name: name.to_vec(),
            is_folder,
        }
    }

    fn surplus(roots: &[UploadRoot], entries: &[Entry], excludes: &[&[u8]]) -> Surplus {
        let excludes = Excludes::new(excludes.iter().map(|it| it.to_vec()));
        Surplus::new(roots, entries, excludes, false)
    }

    #[test]
    fn folders_of_several_sources_are_one() {
        let of = |root, path: &[u8], kind| Entry {
            root,
            ..entry(path, kind, None)
        };
        let file = Kind::File { size: 1 };
        let roots = [root(b"", true), root(b"", true), root(b"named", true)];
        let entries = [
            of(0, b"", Kind::Folder),
            of(1, b"", Kind::Folder),
            of(2, b"", Kind::Folder),
            of(0, b"both", file.clone()),
            of(1, b"both", file.clone()),
            of(1, b"one", file.clone()),
            of(2, b"x", file),
        ];
        let surplus = surplus(&roots, &entries, &[b"/keep"]);
        assert_eq!(surplus.scopes(), [b""]);
        assert_eq!(surplus.folder(b""), Some(0));
        assert_eq!(surplus.names(b""), 3, "both, one and named");
        assert_eq!(surplus.names(b"named"), 1);
        assert!(surplus.is_sent(b"named/x") && !surplus.is_sent(b"x"));
        // Below each of the sources.
        assert!(surplus.is_spared(b"keep") && surplus.is_spared(b"named/keep"));
        assert!(!surplus.is_spared(b"other/keep"));
    }

    #[test]
    fn a_file_that_is_named_has_no_folder_of_its_own() {
        let file = entry(b"", Kind::File { size: 1 }, None);
        let folder = Entry {
            root: 1,
            ..entry(b"", Kind::Folder, None)
        };
        let roots = [root(b"file", false), root(b"folder", true)];
        let surplus = surplus(&roots, &[file, folder], &[]);
        assert_eq!(surplus.scopes(), [b"folder"]);
        assert_eq!(
            (surplus.folder(b"file"), surplus.folder(b"folder")),
            (None, Some(1))
        );
        assert!(surplus.is_sent(b"file"));
    }

    #[test]
    fn parts_of_transfers_are_spared() {
        let surplus = surplus(&[root(b"", true)], &[entry(b"", Kind::Folder, None)], &[]);
        assert!(surplus.is_spared(b"a/.b.0123abcd.part"));
        assert!(!surplus.is_spared(b"a/b.part"));
    }

    #[test]
    fn what_a_host_has_is_known_by_its_place_here() {
        let mut here = SurplusHere::new(Excludes::new([b"*.log".to_vec()]), false);
        assert!(here.scopes().is_empty());
        here.note_folder(b"b".to_vec());
        here.note_folder(b"a".to_vec());
        assert!(here.note(b"a/x") && !here.note(b"a/x"));
        assert!(here.is_fetched(b"a/x") && !here.is_fetched(b"x"));
        assert_eq!((here.names(b"a"), here.names(b"")), (1, 0));
        assert!(here.is_spared(b"a/y.log") && !here.is_spared(b"a/y"));
        assert_eq!(here.scopes(), [b"a", b"b"]);
        here.note_folder(Vec::new());
        assert_eq!(here.scopes(), [b""]);
    }
}
