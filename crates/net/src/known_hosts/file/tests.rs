#![allow(clippy::unwrap_used)]

use std::os::unix::fs::symlink;

use super::*;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn a_missing_file_and_its_ssh_folder_are_created_for_their_owner_alone_and_no_other_folder() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(".ssh/known_hosts");
    let missing = KnownHostsFile::open(&path).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    let mut file = KnownHostsFile::open_or_create(&path).unwrap();
    file.append(b"line\n").unwrap();
    assert_eq!(file.read().unwrap(), b"line\n");
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    let elsewhere = home.path().join("elsewhere/known_hosts");
    let refused = KnownHostsFile::open_or_create(&elsewhere).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_link_stays_a_link_and_an_edited_file_keeps_its_mode() {
    let folder = tempfile::tempdir().unwrap();
    let (target, link) = (folder.path().join("target"), folder.path().join("link"));
    fs::write(&target, "a\nb\n").unwrap();
    fs::set_permissions(&target, Permissions::from_mode(0o640)).unwrap();
    symlink("target", &link).unwrap();
    let mut file = KnownHostsFile::open_or_create(&link).unwrap();
    file.append(b"c\n").unwrap();
    let edited = file.edit(|old| (old[2..].to_vec(), old.len())).unwrap();
    assert_eq!(edited, 6);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read(&target).unwrap(), b"b\nc\n");
    assert_eq!(mode(&target), 0o640);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "litter");
}

#[test]
fn what_others_append_during_an_edit_is_not_lost_and_an_edit_that_changes_nothing_replaces_nothing()
{
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("known_hosts");
    fs::write(&path, "a\n").unwrap();
    let before = fs::metadata(&path).unwrap().ino();
    let file = KnownHostsFile::open(&path).unwrap();
    file.edit(|old| (old.to_vec(), ())).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().ino(), before);
    let mut calls = 0;
    let file = KnownHostsFile::open(&path).unwrap();
    file.edit(|old| {
        calls += 1;
        if calls == 1 {
            // ssh takes no lock.
            let mut ssh = OpenOptions::new().append(true).open(&path).unwrap();
            ssh.write_all(b"b\n").unwrap();
        }
        ([old, b"c\n"].concat(), ())
    })
    .unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"a\nb\nc\n");
}

#[test]
fn a_lock_is_waited_for_until_its_deadline_and_then_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("known_hosts");
    let _held = KnownHostsFile::open_or_create(&path).unwrap();
    let begun = Instant::now().checked_sub(LOCK_PATIENCE).unwrap();
    let refused = lock(&File::open(&path).unwrap(), begun, &|| true).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
    assert!(refused.to_string().contains("locked"), "{refused}");
}

#[test]
fn appends_and_edits_by_many_at_once_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("known_hosts");
    fs::write(&path, "").unwrap();
    thread::scope(|scope| {
        for number in 0..20 {
            let path = &path;
            scope.spawn(move || {
                let mut file = KnownHostsFile::open(path).unwrap();
                let line = format!("{number}\n").into_bytes();
                match number % 2 {
                    0 => file.append(&line).unwrap(),
                    _ => file.edit(|old| ([old, &line].concat(), ())).unwrap(),
                }
            });
        }
    });
    let text = fs::read_to_string(&path).unwrap();
    let mut numbers: Vec<u32> = text.lines().map(|line| line.parse().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..20).collect::<Vec<_>>());
}

#[test]
fn what_is_no_regular_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path(), Path::new("/dev/null")] {
        assert!(KnownHostsFile::open(path).is_err(), "{}", path.display());
    }
}
