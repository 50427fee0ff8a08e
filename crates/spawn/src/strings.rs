//! Arguments and variables in the form that execve(2) reads: arrays of pointers that end with a null.

use std::ffi::{CStr, CString, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use rustix::io::Errno;

/// Strings and the array of pointers to them.
#[derive(Clone, Debug)]
pub(crate) struct StringArray {
    strings: Vec<CString>,
}

/// Pointers to the strings of a [`StringArray`], as long as it lives.
#[derive(Debug)]
pub(crate) struct Pointers<'a> {
    pointers: Vec<*const c_char>,
    strings: std::marker::PhantomData<&'a CStr>,
}

impl StringArray {
    pub(crate) fn new() -> StringArray {
        StringArray {
            strings: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, string: CString) {
        self.strings.push(string);
    }

    pub(crate) fn replace_first(&mut self, string: CString) {
        match self.strings.first_mut() {
            Some(first) => *first = string,
            None => self.strings.push(string),
        }
    }

    pub(crate) fn pointers(&self) -> Pointers<'_> {
        let ends = std::iter::once(ptr::null());
        Pointers {
            pointers: self
                .strings
                .iter()
                .map(|s| s.as_ptr())
                .chain(ends)
                .collect(),
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
