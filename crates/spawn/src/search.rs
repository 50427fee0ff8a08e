//! Where a program may be: the search of execvp(3), written down before the child is made.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;

use rustix::io::Errno;

use crate::strings::StringArray;

/// Searched where there is no PATH at all: what confstr(_CS_PATH) says with glibc.
const PATH_WITHOUT_PATH: &[u8] = b"/bin:/usr/bin";

/// The names to execute, one after the other: `program` itself when it has a slash in it, otherwise `program` in each
/// directory of `path`. An empty element of it is the working directory.
pub(crate) fn candidates(program: &OsStr, path: Option<&OsStr>) -> Result<StringArray, Errno> {
    let name = program.as_bytes();
    if name.is_empty() {
        return Err(Errno::NOENT);
    }
    if name.contains(&b'/') {
        let mut only = StringArray::with_capacity(name.len() + 1);
        only.push(&[name])?;
        return Ok(only);
    }
    let mut candidates = StringArray::default();
    let path = path.map_or(PATH_WITHOUT_PATH, OsStrExt::as_bytes);
    for folder in path.split(|byte| *byte == b':') {
        match folder {
            [] => candidates.push(&[name])?,
            _ => candidates.push(&[folder, b"/", name])?,
        }
    }
    Ok(candidates)
}

/// What becomes of the search when one candidate could not be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The program is not there: the next one may be.
    GoOn,
    /// It is there and may not be executed: the answer, unless another one can be.
    Remember,
    /// This is the answer.
    Stop,
}

/// execvp(3): a missing file or a folder that cannot be searched does not end the search, everything else does.
pub(crate) fn verdict(errno: Errno) -> Verdict {
    match errno {
        Errno::ACCESS => Verdict::Remember,
        Errno::NOENT | Errno::NOTDIR | Errno::STALE | Errno::NODEV | Errno::TIMEDOUT => {
            Verdict::GoOn
        }
        _ => Verdict::Stop,
    }
}

/// Tries `execute` with each candidate, which returns only when it failed. The error is the one that execvp(3) gives.
pub(crate) fn each<T>(
    candidates: &StringArray,
    mut execute: impl FnMut(&CStr) -> Result<T, Errno>,
) -> Result<T, Errno> {
    let mut answer = Errno::NOENT;
    let mut denied = false;
    for candidate in candidates.strings() {
        match execute(candidate) {
            Ok(done) => return Ok(done),
            Err(errno) => match verdict(errno) {
                Verdict::GoOn => answer = errno,
                Verdict::Remember => denied = true,
                Verdict::Stop => return Err(errno),
            },
        }
    }
    Err(if denied { Errno::ACCESS } else { answer })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn names(program: &str, path: Option<&str>) -> Vec<String> {
        candidates(OsStr::new(program), path.map(OsStr::new))
            .unwrap()
            .strings()
            .map(|name| name.to_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn a_name_with_a_slash_is_not_searched() {
        assert_eq!(names("./a", Some("/bin")), ["./a"]);
    }

    #[test]
    fn each_folder_of_the_path_is_tried_and_an_empty_one_is_the_working_directory() {
        assert_eq!(names("a", Some("/x:/y")), ["/x/a", "/y/a"]);
        assert_eq!(names("a", Some(":/y:")), ["a", "/y/a", "a"]);
        assert_eq!(names("a", None), ["/bin/a", "/usr/bin/a"]);
    }

    #[test]
    fn an_empty_name_is_no_program_and_a_nul_byte_is_refused() {
        assert_eq!(candidates(OsStr::new(""), None), Err(Errno::NOENT));
        assert_eq!(candidates(OsStr::new("a\0b"), None), Err(Errno::INVAL));
    }

    #[test]
    fn the_search_goes_on_past_what_is_missing_and_remembers_what_is_denied() {
        let three = candidates(OsStr::new("a"), Some(OsStr::new("/1:/2:/3"))).unwrap();
        let answers = |errors: [Errno; 3]| {
            let mut left = errors.into_iter();
            let result = each(&three, |_| Err::<(), _>(left.next().unwrap()));
            (result.unwrap_err(), left.count())
        };
        let (missing, denied, broken) = (Errno::NOENT, Errno::ACCESS, Errno::NOEXEC);
        assert_eq!(answers([missing, missing, missing]), (missing, 0));
        assert_eq!(answers([missing, denied, missing]), (denied, 0));
        assert_eq!(answers([missing, broken, missing]), (broken, 1));
        assert_eq!(answers([denied, denied, Errno::NOTDIR]), (denied, 0));
    }
}
