//! Who reads for whom.
#![allow(clippy::unwrap_used)]

use super::*;

/// What is read a second time shows by what was written meanwhile.
#[test]
fn hosts_that_are_about_as_far_read_once_and_others_for_themselves() {
    const BLOCK: usize = 1 << 20;
    let blocks = KEPT / BLOCK + 2;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    std::fs::write(&path, vec![1; blocks * BLOCK]).unwrap();
    let source = Source::files(vec![path.clone()], 3);
    let first = source.open(0).unwrap();
    source.read(&first, 0, BLOCK).unwrap();
    let second = source.open(0).unwrap();
    assert!(Arc::ptr_eq(&first, &second), "one file for all");
    let writing = OpenOptions::new().write(true).open(&path).unwrap();
    writing.write_all_at(&[2; BLOCK], 0).unwrap();
    assert_eq!(
        (*source.read(&second, 0, BLOCK).unwrap()).as_ref()[0],
        1,
        "read once"
    );
    assert_eq!(
        (*source.read(&second, 0, 10).unwrap()).as_ref()[0],
        2,
        "another length is another block"
    );
    for block in 1..blocks {
        source.read(&first, (block * BLOCK) as u64, BLOCK).unwrap();
    }
    assert_eq!(
        (*source.read(&second, 0, BLOCK).unwrap()).as_ref()[0],
        2,
        "what is old is not kept"
    );
    let kept = lock(&source.kept);
    assert!(kept.octets <= KEPT, "{} octets are kept", kept.octets);
    drop(kept);
    assert_eq!(
        second.is_same(),
        Ok(false),
        "and somebody has written to it"
    );
    assert_eq!(
        octets(&source.read(&second, (blocks * BLOCK) as u64, 5).unwrap()),
        0
    );
}

#[test]
fn what_is_no_regular_file_any_more_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("real"), "x").unwrap();
    std::os::unix::fs::symlink("real", dir.path().join("link")).unwrap();
    let source = Source::files(vec![dir.path().join("link"), dir.path().join("gone")], 1);
    assert!(source.open(0).is_err() && source.open(1).is_err());
}

/// Writes into a file and sets its time of modification back, as often as it takes for the kernel's clock of files to go on.
fn change_in_secret(path: &Path) {
    let before = std::fs::metadata(path).unwrap();
    let changed = |metadata: &Metadata| (metadata.ctime(), metadata.ctime_nsec());
    while changed(&std::fs::metadata(path).unwrap()) == changed(&before) {
        let file = OpenOptions::new().write(true).open(path).unwrap();
        file.write_all_at(b"other", 0).unwrap();
        file.set_modified(before.modified().unwrap()).unwrap();
    }
    let now = std::fs::metadata(path).unwrap();
    assert_eq!((now.len(), now.ino()), (before.len(), before.ino()));
    assert_eq!(now.modified().unwrap(), before.modified().unwrap());
}

#[test]
fn a_change_whose_time_is_set_back_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    std::fs::write(&path, "first").unwrap();
    let source = Source::files(vec![path.clone()], 1);
    let before = source.open(0).unwrap();
    assert_eq!(before.is_same(), Ok(true));
    change_in_secret(&path);
    assert_eq!(before.is_same(), Ok(false), "while it was read");
    let after = source.open(0).unwrap();
    assert!(before.identity != after.identity, "nor is it gone on with");
    assert_eq!(after.is_same(), Ok(true));
    assert_eq!(source.open(0).unwrap().identity, after.identity);
}

/// Nobody has hashed it in the time that a test has.
const ENDLESS: u64 = 1 << 40;

#[test]
fn a_hash_that_one_host_gives_up_ends_and_is_none_of_another_ones() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    File::create(&path).unwrap().set_len(ENDLESS).unwrap();
    let source = Source::files(vec![path.clone()], 2);
    let stop = Stop::default();
    let stopped = std::thread::scope(|scope| {
        let hashing = scope.spawn(|| source.hash(0, &stop));
        stop.order();
        hashing.join().unwrap()
    });
    assert_eq!(stopped, Err("interrupted".to_owned()));
    // Another host has the same file open.
    let file = source.open(0).unwrap();
    assert!(file.hash(&stop).is_err());
    OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(5)
        .unwrap();
    assert_eq!(file.hash(&Stop::default()), Ok(hash_of(&[0; 5])));
}
