//! Files to an archive.

use super::BLOCK;

/// Octets that a name may have in a header; longer ones go before it.
const NAME: usize = 100;
/// What tar(1) reads at a time, and what an archive is filled up to: 20 blocks.
const RECORD: usize = 20 * BLOCK;

/// The kinds of entries that are written (typeflag).
const REGULAR: u8 = b'0';
/// GNU: the contents are the name of the entry that follows.
const LONG_NAME: u8 = b'L';

/// Appends a regular file. `name` is relative, and in no particular encoding; `modified` is in seconds since 1970.
pub fn put_file(out: &mut Vec<u8>, name: &[u8], mode: u32, modified: u32, contents: &[u8]) {
    if name.len() > NAME {
        // With the octet that ends it, as GNU tar writes it.
        let len = name.len() + 1;
        put_header(out, b"././@LongLink", LONG_NAME, 0, len, 0);
        out.extend_from_slice(name);
        out.push(0);
        fill(out, len, BLOCK);
    }
    let kept = &name[..name.len().min(NAME)];
    put_header(out, kept, REGULAR, mode, contents.len(), modified);
    out.extend_from_slice(contents);
    fill(out, contents.len(), BLOCK);
}

/// Ends the archive, of which `written` octets have been written: two blocks of zeros, and what fills the record.
pub fn put_end(out: &mut Vec<u8>, written: u64) {
    out.resize(out.len() + 2 * BLOCK, 0);
    let last = (written + 2 * BLOCK as u64) % RECORD as u64;
    fill(out, last as usize, RECORD);
}

/// Zeros up to a whole number of blocks.
fn fill(out: &mut Vec<u8>, len: usize, block: usize) {
    out.resize(out.len() + len.next_multiple_of(block) - len, 0);
}

fn put_header(out: &mut Vec<u8>, name: &[u8], kind: u8, mode: u32, len: usize, modified: u32) {
    let start = out.len();
    out.resize(start + BLOCK, 0);
    let header = &mut out[start..];
    header[..name.len()].copy_from_slice(name);
    put_octal(&mut header[100..108], mode.into());
    // Owner and group are not taken from here: numbers that say nothing.
    put_octal(&mut header[108..116], 0);
    put_octal(&mut header[116..124], 0);
    put_octal(&mut header[124..136], len as u64);
    put_octal(&mut header[136..148], modified.into());
    header[156] = kind;
    header[257..265].copy_from_slice(b"ustar\x0000");
    // The sum of all octets with spaces in its own place.
    header[148..156].fill(b' ');
    let sum: u64 = header.iter().map(|&octet| u64::from(octet)).sum();
    put_octal(&mut header[148..155], sum);
}

/// A number in octal digits that fill the field, but for the octet that ends it.
fn put_octal(field: &mut [u8], mut number: u64) {
    let Some((end, digits)) = field.split_last_mut() else {
        return;
    };
    *end = 0;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number & 7) as u8;
        number >>= 3;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    /// What the machine's own tar makes of an archive: names, modes, sizes and times.
    fn listed(archive: &[u8]) -> String {
        let mut tar = Command::new("tar")
            .args([
                "--utc",
                "--full-time",
                "--quoting-style=escape",
                "-tvf",
                "-",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        tar.stdin.take().unwrap().write_all(archive).unwrap();
        let ended = tar.wait_with_output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
        String::from_utf8(ended.stdout).unwrap()
    }

    #[test]
    fn tar_reads_what_is_written() {
        let mut archive = Vec::new();
        put_file(&mut archive, b"a/b", 0o640, 1_500_000_000, &[7; 513]);
        put_file(&mut archive, b"n\xff\nx", 0o4755, u32::MAX, b"");
        let long = [b"folder/".repeat(30), b"name".to_vec()].concat();
        put_file(&mut archive, &long, 0o600, 0, b"x");
        put_file(&mut archive, &[b'y'; 100], 0o600, 0, b"x");
        let written = archive.len() as u64;
        put_end(&mut archive, written);
        assert_eq!(archive.len() % RECORD, 0);
        let listed = listed(&archive);
        let lines: Vec<&str> = listed.lines().collect();
        for (line, says) in lines.iter().zip([
            ["-rw-r-----", " 513 ", "2017-07-14 02:40:00", " a/b"],
            ["-rwsr-xr-x", " 0 ", "2106-02-07 06:28:15", " n\\377\\nx"],
            ["-rw-------", " 1 ", "1970-01-01 00:00:00", "folder/name"],
            ["-rw-------", " 1 ", "1970-01-01 00:00:00", " yyyyyyyyy"],
        ]) {
            assert!(
                says.iter().all(|part| line.contains(part)),
                "{line}: {says:?}"
            );
        }
        assert_eq!(lines.len(), 4);
        assert!(lines[2].ends_with(std::str::from_utf8(&long).unwrap()));
    }

    #[test]
    fn an_archive_fills_whole_records() {
        for written in [0, 512, 9_216, 9_728, 10_240] {
            let mut archive = vec![0; written];
            put_end(&mut archive, written as u64);
            assert_eq!(archive.len() % RECORD, 0, "{written}");
            assert!(archive.len() - written >= 2 * BLOCK);
        }
    }
}
