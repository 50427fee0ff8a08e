//! Archives of other people's tars are read, and what is none, or wrong, is told.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::*;
use crate::tar::{put_end, put_file};

/// All that is in an archive which comes in pieces of this size.
fn read(archive: &[u8], piece: usize) -> Result<Vec<(Entry, Vec<u8>)>, TarError> {
    let mut reader = Reader::default();
    let mut found: Vec<(Entry, Vec<u8>)> = Vec::new();
    for mut input in archive.chunks(piece) {
        while let Some(piece) = reader.next(&mut input)? {
            match piece {
                Piece::Entry(entry) => found.push((entry, Vec::new())),
                Piece::Contents(contents) => {
                    found.last_mut().unwrap().1.extend_from_slice(contents)
                }
            }
        }
        assert!(input.is_empty());
    }
    for (entry, contents) in &found {
        assert_eq!(entry.size, contents.len() as u64);
    }
    Ok(found)
}

/// What a tar(1) makes of files below a folder: an archive by xargs(1), as hosts are asked for it.
fn made_by(tar: &[&str], folder: &Path, names: &[&[u8]]) -> Vec<u8> {
    let mut xargs = Command::new("xargs")
        .arg("-0")
        .args(tar)
        .args(["-cf", "-", "--"])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let names: Vec<u8> = names
        .iter()
        .flat_map(|name| [name, &b"\0"[..]].concat())
        .collect();
    xargs.stdin.take().unwrap().write_all(&names).unwrap();
    let ended = xargs.wait_with_output().unwrap();
    assert!(ended.status.success(), "{tar:?}");
    ended.stdout
}

#[test]
fn archives_of_gnus_and_busyboxs_tar_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let long = [b"./", &b"folder/".repeat(30)[..], b"name"].concat();
    let names: [&[u8]; 6] = [
        b"./plain",
        b"./n\xff\nx",
        b"./-rf",
        b"./back\\nslash",
        b"./@a",
        &long,
    ];
    for (number, name) in names.iter().enumerate() {
        let path = dir.path().join(std::ffi::OsStr::from_bytes(name));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, vec![b'x'; number * 511]).unwrap();
        let modified = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1 << 31);
        std::fs::File::open(&path)
            .unwrap()
            .set_modified(modified)
            .unwrap();
    }
    for tar in [
        &["tar", "--no-unquote", "--format=gnu"][..],
        &["tar", "--no-unquote", "--format=posix"],
        // Its headers have a prefix for long names.
        &["tar", "--no-unquote", "--format=ustar"],
        &["busybox", "tar"],
    ] {
        let archive = made_by(tar, dir.path(), &names);
        for piece in [1, 512, 700, 1 << 20] {
            let found = read(&archive, piece).unwrap();
            assert_eq!(found.len(), names.len(), "{tar:?}");
            for (number, (entry, contents)) in found.iter().enumerate() {
                assert_eq!(entry.name, names[number], "{tar:?}");
                assert_eq!(contents.len(), number * 511);
                assert!(entry.is_regular);
                assert_eq!(entry.modified, 1 << 31);
            }
        }
    }
}

#[test]
fn what_is_no_file_is_told_apart_and_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("d")).unwrap();
    std::fs::write(dir.path().join("f"), "contents").unwrap();
    std::fs::hard_link(dir.path().join("f"), dir.path().join("g")).unwrap();
    std::os::unix::fs::symlink("f", dir.path().join("s")).unwrap();
    for tar in [
        &["tar"][..],
        &["tar", "--format=posix"],
        &["busybox", "tar"],
    ] {
        let archive = made_by(tar, dir.path(), &[b"./d", b"./f", b"./g", b"./s"]);
        let found = read(&archive, 100).unwrap();
        let kinds: Vec<(bool, usize)> = found
            .iter()
            .map(|(entry, contents)| (entry.is_regular, contents.len()))
            .collect();
        assert_eq!(
            kinds,
            [(false, 0), (true, 8), (false, 0), (false, 0)],
            "{tar:?}"
        );
    }
}

#[test]
fn several_archives_may_follow_each_other() {
    let mut archives = Vec::new();
    for name in [b"a", b"b"] {
        let mut archive = Vec::new();
        put_file(&mut archive, name, 0o600, 7, b"contents");
        let written = archive.len() as u64;
        put_end(&mut archive, written);
        archives.extend(archive);
    }
    let found = read(&archives, 333).unwrap();
    let names: Vec<&[u8]> = found.iter().map(|(entry, _)| &entry.name[..]).collect();
    assert_eq!(names, [b"a", b"b"]);
}

/// A header for a size that its field has no digits for, or of another kind; its sum is right.
fn header(change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut archive = Vec::new();
    put_file(&mut archive, b"name", 0o644, 7, b"");
    change(&mut archive);
    archive[148..156].fill(b' ');
    let sum: u64 = archive[..BLOCK].iter().map(|&octet| u64::from(octet)).sum();
    archive[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    archive
}

#[test]
fn sizes_are_limited_and_sums_are_checked() {
    let mut broken = header(|_| {});
    broken[3] ^= 1;
    assert_eq!(read(&broken, 512), Err(TarError::Sum));
    let digits = header(|header| header[124] = b'8');
    assert_eq!(read(&digits, 512), Err(TarError::Number("size")));
    for (kind, what, most) in [
        (b'L', What::Name, 4097),
        (b'K', What::Target, 4097),
        (b'x', What::Records, 65_536),
        (b'g', What::GlobalRecords, 65_536),
    ] {
        let long = header(|header| {
            header[156] = kind;
            header[124..136].copy_from_slice(format!("{:011o}\0", most + 1).as_bytes());
        });
        assert_eq!(
            read(&long, 512),
            Err(TarError::TooLong(what, most + 1, most))
        );
    }
    let records = |records: &[u8]| {
        let mut archive = header(|header| {
            header[156] = b'x';
            header[124..136].copy_from_slice(format!("{:011o}\0", records.len()).as_bytes());
        });
        archive.extend_from_slice(records);
        archive.resize(2 * BLOCK, 0);
        put_file(&mut archive, b"name", 0o644, 7, b"abc");
        read(&archive, 512)
    };
    let found = records(b"12 path=a/b\n13 mtime=7.5\n9 size=2\n").unwrap();
    assert_eq!((&found[0].0.name[..], found[0].1.len()), (&b"a/b"[..], 2));
    for malformed in [
        // A length that is not that of its record.
        &b"11 path=a/b\n"[..],
        b"path",
        b"9999999999999999999999 path=a\n",
        b"5 path=a\n",
        b"8 path=a",
        b"12 size=lots\n",
        b"2 \n",
    ] {
        assert_eq!(records(malformed), Err(TarError::Records), "{malformed:?}");
    }
}

#[test]
fn numbers_are_octal_or_in_twos_complement() {
    for (field, means) in [
        (&b"0000644\0"[..], Some(0o644)),
        (b"   17 \0\0", Some(0o17)),
        (b"        ", Some(0)),
        (b"\0\0\0\0\0\0\0\0", Some(0)),
        (b"77777777", Some(0o77_777_777)),
        (b"0o17\0\0\0\0", None),
        (b"\x80\0\0\0\0\x20\0\0", Some(1 << 21)),
        (b"\xff\xff\xff\xff\xff\xff\xff\xfe", Some(-2i64 as u64)),
        (
            b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff",
            Some(u64::MAX >> 1),
        ),
        (b"\x80\0\0\x01\0\0\0\0\0\0\0\0", None),
    ] {
        assert_eq!(number(field), means, "{field:?}");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        files in prop::collection::vec(
            (prop::collection::vec(1u8..=255, 1..300), 0u32..0o10000, any::<u32>(), prop::collection::vec(any::<u8>(), 0..1100)),
            0..6,
        ),
        piece in 1usize..3000,
    ) {
        let mut archive = Vec::new();
        for (name, mode, modified, contents) in &files {
            put_file(&mut archive, name, *mode, *modified, contents);
        }
        let written = archive.len() as u64;
        put_end(&mut archive, written);
        let found = read(&archive, piece).unwrap();
        prop_assert_eq!(found.len(), files.len());
        for ((entry, contents), (name, mode, modified, sent)) in found.iter().zip(&files) {
            prop_assert_eq!((&entry.name, entry.mode, entry.modified), (name, *mode, u64::from(*modified)));
            prop_assert_eq!(contents, sent);
            prop_assert!(entry.is_regular);
        }
    }

    #[test]
    fn anything_may_come(octets in prop::collection::vec(any::<u8>(), 0..2000), piece in 1usize..600) {
        let _ = read(&octets, piece);
    }
}
