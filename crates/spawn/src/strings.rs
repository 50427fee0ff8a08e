//! Arguments and variables in the form that execve(2) reads: arrays of pointers that end with a null.
//!
//! All strings of an array stand in one piece of memory, one after the other: a start is to run little code that the
//! processor has not seen lately, and to ask for memory seldom.

use std::ffi::{CStr, CString, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use rustix::io::Errno;

/// Strings without NUL bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StringArray {
    /// Each with a NUL behind it.
    bytes: Vec<u8>,
    count: usize,
}

/// Pointers to the strings of a [`StringArray`], as long as it lives.
#[derive(Debug)]
pub(crate) struct Pointers<'a> {
    pointers: Vec<*const c_char>,
    strings: std::marker::PhantomData<&'a CStr>,
}

impl StringArray {
    /// With room for so many bytes, NULs included.
    pub(crate) fn with_capacity(bytes: usize) -> StringArray {
        StringArray {
            bytes: Vec::with_capacity(bytes),
            count: 0,
        }
    }

    /// Adds the string that these parts make together; EINVAL, and nothing is added, where there is a NUL byte in it.
    pub(crate) fn push(&mut self, parts: &[&[u8]]) -> Result<(), Errno> {
        if parts.iter().any(|part| part.contains(&0)) {
            return Err(Errno::INVAL);
        }
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        self.bytes.push(0);
        self.count += 1;
        Ok(())
    }

    /// Puts another string in the place of the first.
    pub(crate) fn replace_first(&mut self, string: &[u8]) -> Result<(), Errno> {
        let Some(first) = self.strings().next().map(CStr::count_bytes) else {
            return self.push(&[string]);
        };
        if self.bytes.get(..first) == Some(string) {
            return Ok(());
        }
        if string.contains(&0) {
            return Err(Errno::INVAL);
        }
        self.bytes.splice(..first, string.iter().copied());
        Ok(())
    }

    /// In their order. Neither allocates nor panics: the child calls it.
    pub(crate) fn strings(&self) -> impl Iterator<Item = &CStr> {
        let mut rest = self.bytes.as_slice();
        std::iter::from_fn(move || {
            let string = CStr::from_bytes_until_nul(rest).ok()?;
            rest = rest.get(string.count_bytes() + 1..)?;
            Some(string)
        })
    }

    pub(crate) fn pointers(&self) -> Pointers<'_> {
        let mut pointers = Vec::with_capacity(self.count + 1);
        pointers.extend(self.strings().map(CStr::as_ptr));
        pointers.push(ptr::null());
        Pointers {
            pointers,
            strings: std::marker::PhantomData,
        }
    }
}

impl Pointers<'_> {
    /// The array's address: strings, then a null pointer.
    pub(crate) fn as_ptr(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }
}

/// A string without NUL bytes, or EINVAL.
pub(crate) fn c_string(text: &OsStr) -> Result<CString, Errno> {
    CString::new(text.as_bytes()).map_err(|_| Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(array: &StringArray) -> Vec<&str> {
        array
            .strings()
            .filter_map(|string| string.to_str().ok())
            .collect()
    }

    #[test]
    fn strings_are_those_that_were_put_in() {
        let mut array = StringArray::default();
        assert_eq!(texts(&array), Vec::<&str>::new());
        for parts in [vec![b"a".as_slice()], vec![], vec![b"NAME", b"=", b"value"]] {
            assert_eq!(array.push(&parts), Ok(()));
        }
        assert_eq!(texts(&array), ["a", "", "NAME=value"]);
        assert_eq!(array.pointers().pointers.len(), 4);
        assert!(
            array
                .pointers()
                .pointers
                .last()
                .is_some_and(|last| last.is_null())
        );
    }

    #[test]
    fn the_first_gives_way_to_another_of_any_length() {
        let mut array = StringArray::with_capacity(8);
        assert_eq!(array.replace_first(b"0"), Ok(()));
        assert_eq!(texts(&array), ["0"]);

        let mut array = StringArray::default();
        for string in [b"first".as_slice(), b"second"] {
            assert_eq!(array.push(&[string]), Ok(()));
        }
        for other in ["first", "", "x", "a longer one"] {
            assert_eq!(array.replace_first(other.as_bytes()), Ok(()));
            assert_eq!(texts(&array), [other, "second"]);
        }
    }

    #[test]
    fn a_nul_byte_is_refused_and_changes_nothing() {
        let mut array = StringArray::default();
        assert_eq!(array.push(&[b"a"]), Ok(()));
        assert_eq!(array.push(&[b"b", b"c\0"]), Err(Errno::INVAL));
        assert_eq!(array.replace_first(b"\0"), Err(Errno::INVAL));
        assert_eq!(texts(&array), ["a"]);
    }
}
