//! Paths as octets: what stands between slashes is a name, in no particular encoding.

/// The longest path accepted or made, octets: Linux' PATH_MAX.
pub const MAX_PATH: usize = 4096;
/// The longest name that file systems take, octets: Linux' NAME_MAX.
pub const MAX_NAME: usize = 255;

/// `name` in the folder `base`. An empty name is the folder itself.
pub fn join(base: &[u8], name: &[u8]) -> Vec<u8> {
    match (base, name) {
        (base, b"") => base.to_vec(),
        (b"", name) => name.to_vec(),
        (base, name) if base.ends_with(b"/") => [base, name].concat(),
        (base, name) => [base, b"/", name].concat(),
    }
}

/// The folder that a path is in: `.` for a bare name.
pub(crate) fn parent(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|&octet| octet == b'/') {
        None => b".",
        Some(0) => b"/",
        Some(at) => &path[..at],
    }
}

/// What follows the last slash.
pub(crate) fn file_name(path: &[u8]) -> &[u8] {
    let start = path.iter().rposition(|&octet| octet == b'/');
    &path[start.map_or(0, |at| at + 1)..]
}

/// Without slashes at the end; `/` stays.
pub(crate) fn without_slashes(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|&octet| octet != b'/');
    match end {
        Some(at) => &path[..=at],
        None => &path[..path.len().min(1)],
    }
}

/// Without what says nothing: doubled slashes, and folders called `.`. Empty for the folder where it begins.
pub(crate) fn plain(path: &[u8]) -> Vec<u8> {
    let names = path.split(|&octet| octet == b'/');
    let names = names.filter(|name| !matches!(*name, b"" | b"."));
    let start: &[u8] = match path.first() {
        Some(b'/') => b"/",
        _ => b"",
    };
    names.fold(start.to_vec(), |path, name| join(&path, name))
}

/// Whether a name that a server gave can stand for something in a folder, and for nothing outside of it.
pub(crate) fn is_plain_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..")
        && name.len() <= MAX_NAME
        && !name.iter().any(|octet| matches!(octet, b'/' | 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_come_apart_and_together() {
        for (path, folder, name) in [
            (&b"/srv/a"[..], &b"/srv"[..], &b"a"[..]),
            (b"/a", b"/", b"a"),
            (b"a", b".", b"a"),
            (b"a/\xff", b"a", b"\xff"),
        ] {
            assert_eq!((parent(path), file_name(path)), (folder, name));
        }
        assert_eq!(join(b"/", b"a"), b"/a");
        assert_eq!(join(b"/a", b""), b"/a");
        assert_eq!(join(b"", b"a"), b"a");
        assert_eq!(without_slashes(b"/a//"), b"/a");
        assert_eq!(without_slashes(b"///"), b"/");
        for (path, same) in [
            (&b"//a/./b//"[..], &b"/a/b"[..]),
            (b"./a", b"a"),
            (b"./", b""),
            (b"/", b"/"),
            (b"a/../b", b"a/../b"),
        ] {
            assert_eq!(plain(path), same);
        }
    }

    #[test]
    fn a_name_leads_nowhere_else() {
        for name in [&b".."[..], b".", b"", b"a/b", b"/", b"a\0", &[b'a'; 256]] {
            assert!(!is_plain_name(name), "{name:?}");
        }
        assert!(is_plain_name(b"..a") && is_plain_name(b"\xff\n"));
    }
}
