//! Archives of tar, as far as every tar(1) bears them: POSIX.1-1988's headers (ustar), and GNU's long names, which BusyBox
//! reads as well, where pax' own records are passed over by it. What others write is read with those records, too.

mod reader;
mod writer;

pub use reader::{Entry, Piece, Reader, TarError, What};
pub use writer::{put_end, put_file};

/// Octets of a block: headers are one, contents fill whole ones (pax(1), "ustar Interchange Format").
const BLOCK: usize = 512;
