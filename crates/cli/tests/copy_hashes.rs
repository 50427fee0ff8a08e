//! `sshoal put` and `sshoal get` with hashes of both ends, with real sshd: `--checksum`, `--verify`, and hosts that have no
//! hashing program, or one that sees something else.

#![allow(clippy::unwrap_used)]

mod support;

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::copying::{
    command, listing, parts, programs, real, script, sshoal, text, with_programs, write,
};
use support::program::Running;
use support::{Shoal, noise, shared_folder};

/// Names that trouble shells and hashing programs.
const NAMES: [&[u8]; 8] = [
    b"plain",
    b"two  spaces ",
    b"-c",
    b"back\\slash",
    b"n\xff\xfe",
    b"several\nlines\n",
    b"return\r",
    b"'$(id)`id`\"*",
];

/// Files of all such names, a large one, and many small ones if they are to go in batches.
fn tree(small: usize) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    fs::create_dir_all(tree.join("-a b")).unwrap();
    for (number, name) in NAMES.iter().enumerate() {
        let path = tree.join("-a b").join(OsStr::from_bytes(name));
        write(&path, &noise(100 + number), 0o644);
    }
    write(&tree.join("large"), &noise(5_000_000), 0o640);
    write(&tree.join("none"), b"", 0o644);
    for number in 0..small {
        write(&tree.join(number.to_string()), &noise(number * 13), 0o600);
    }
    (dir, tree)
}

fn with_path(programs: &Path) -> Shoal<RealSshd> {
    real(with_programs(programs))
}

/// A member of the object `transfer` of the only host.
fn member(shown: &str, name: &str) -> u64 {
    let (_, rest) = shown.split_once(r#""transfer":{"#).unwrap();
    let (_, rest) = rest.split_once(&format!(r#""{name}":"#)).unwrap();
    let digits = rest.split(|letter: char| !letter.is_ascii_digit()).next();
    digits.unwrap().parse().unwrap()
}

/// Gives every file below a folder another time.
fn touch(folder: &Path) {
    for (name, (_, time, _)) in listing(folder) {
        let path = folder.join(OsStr::from_bytes(&name));
        if time > 0 && path.is_file() {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_400_000_000);
            File::open(path).unwrap().set_modified(time).unwrap();
        }
    }
}

/// One octet is another one; size and time are as they were.
fn change(path: &Path) {
    let mut contents = fs::read(path).unwrap();
    contents[7] ^= 1;
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    fs::write(path, contents).unwrap();
    File::open(path).unwrap().set_modified(modified).unwrap();
}

/// Puts a tree, and again when its times, and then two of its files, are others.
fn puts_by_hash(shoal: &Shoal<RealSshd>, small: usize) {
    let (_dir, tree) = tree(small);
    let target = shared_folder();
    let (from, to) = (text(&tree), text(target.path()));
    let there = target.path().join("tree");
    let put = |flags: &[&str]| {
        let words = [&["put", "-r", "--json"], flags, &[from, to]].concat();
        let ended = sshoal(shoal, &words).expect(0);
        member(&ended.stdout(), "octets")
    };
    put(&["-p"]);
    touch(&there);
    change(&there.join("large"));
    change(&there.join("-a b").join(OsStr::from_bytes(NAMES[5])));
    assert_eq!(put(&["--checksum"]), 5_000_000 + 105, "what differs, whole");
    // Without -p times are not touched: rsync's -c.
    assert!(listing(&tree) != listing(&there));
    assert_eq!(put(&["-p", "--checksum"]), 0, "times alone");
    assert!(
        listing(&tree) == listing(&there),
        "what arrived is not the same"
    );
    assert_eq!(parts(target.path()), Vec::<Vec<u8>>::new());
}

#[test]
fn put_knows_unchanged_files_by_their_hash() {
    let shoal = real(SshdSpec::new(1));
    puts_by_hash(&shoal, 0);
    puts_by_hash(&shoal, 300);
}

#[test]
fn a_host_of_busybox_alone_hashes() {
    let busybox = "/bin/busybox";
    let programs =
        programs(&["sh", "tar", "sync", "test", "sha256sum", "rm"].map(|name| (name, busybox)));
    let shoal = with_path(programs.path());
    puts_by_hash(&shoal, 0);
    puts_by_hash(&shoal, 300);
    puts_verified(&shoal, 300);
}

#[test]
fn get_knows_unchanged_files_by_their_hash() {
    let shoal = real(SshdSpec::new(1));
    let (dir, tree) = tree(20);
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    for number in 0..20 {
        let path = tree.join(number.to_string());
        fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
    }
    let into = tempfile::tempdir().unwrap();
    let get = |flags: &[&str]| {
        let large = fs::set_permissions(tree.join("large"), Permissions::from_mode(0o644));
        large.unwrap();
        let words = ["get", "-r", "--json"];
        let paths = [text(&tree), text(into.path())];
        let ended = sshoal(&shoal, &[&words, flags, &paths].concat()).expect(0);
        member(&ended.stdout(), "octets")
    };
    get(&["-p"]);
    let here = into.path().join(shoal.name(0)).join("tree");
    touch(&here);
    change(&here.join("large"));
    assert_eq!(get(&["--checksum"]), 5_000_000);
    assert_eq!(get(&["-p", "--checksum"]), 0);
    assert!(
        listing(&tree) == listing(&here),
        "what arrived is not the same"
    );
}

#[test]
fn a_host_without_a_hashing_program_is_named_and_gets_nothing() {
    let target = shared_folder();
    let to = text(target.path());
    let internal = SshdSpec::new(1)
        .line("Subsystem sftp internal-sftp")
        .line("ForceCommand internal-sftp");
    let bare = programs(&[("sh", "/bin/sh")]);
    let (_dir, tree) = tree(0);
    for shoal in [real(internal), with_path(bare.path())] {
        for flag in ["--checksum", "--verify", "--verify=always"] {
            let words = ["put", "-r", flag, text(&tree), to];
            let named = flag.trim_end_matches("=always");
            let says = [named, "needs hashes", "sha256sum", "install coreutils"];
            sshoal(&shoal, &words).expect(3).says(&says);
            assert_eq!(listing(target.path()).len(), 0, "something was sent");
            let into = tempfile::tempdir().unwrap();
            let words = ["get", flag, "/etc/hostname", text(into.path())];
            sshoal(&shoal, &words).expect(3).says(&says);
            assert_eq!(listing(into.path()).len(), 0, "something was fetched");
        }
        // Where it can be done without, it is, and that is told.
        let words = ["put", "-r", "-v", "--verify=auto", text(&tree), to];
        let ended = sshoal(&shoal, &words).expect(0);
        ended.says(&["files were not verified: the host runs no hashing program"]);
        fs::remove_dir_all(target.path().join("tree")).unwrap();
    }
}

/// Puts a tree with hashes of all that arrives.
fn puts_verified(shoal: &Shoal<RealSshd>, small: usize) {
    let (_dir, tree) = tree(small);
    let target = shared_folder();
    let words = [
        "put",
        "-r",
        "-p",
        "--json",
        "--verify",
        text(&tree),
        text(target.path()),
    ];
    let ended = sshoal(shoal, &words).expect(0);
    let files = (small + NAMES.len() + 2) as u64;
    assert_eq!(member(&ended.stdout(), "verified"), files);
    assert!(listing(&tree) == listing(&target.path().join("tree")));
    assert_eq!(parts(target.path()), Vec::<Vec<u8>>::new());
}

#[test]
fn everything_that_arrives_is_verified_batches_and_standard_input_too() {
    let shoal = real(SshdSpec::new(1));
    puts_verified(&shoal, 0);
    puts_verified(&shoal, 300);
    // Two channels, and a hole at the end.
    let (_dir, tree) = tree(0);
    let target = shared_folder();
    fs::write(tree.join("big"), noise(70_000_000)).unwrap();
    let sparse = File::create(tree.join("sparse")).unwrap();
    sparse.set_len(3_000_000).unwrap();
    let paths = [text(&tree), text(target.path())];
    let words = [&["put", "-r", "--json", "--verify"], &paths[..]].concat();
    let ended = sshoal(&shoal, &words).expect(0);
    assert_eq!(member(&ended.stdout(), "verified"), NAMES.len() as u64 + 4);
    let piped = target.path().join("piped");
    let mut piping = command(&shoal, &["put", "--json", "--verify", "-", text(&piped)]);
    piping.stdin(File::open(tree.join("big")).unwrap());
    let ended = Running::start(&mut piping).wait().expect(0);
    assert_eq!(member(&ended.stdout(), "verified"), 1);
    assert!(fs::read(&piped).unwrap() == noise(70_000_000));
    // And back; what is empty has nothing to be hashed.
    let there = target.path().join("tree");
    let into = tempfile::tempdir().unwrap();
    let paths = [text(&there), text(into.path())];
    let words = [&["get", "-r", "--json", "--verify"], &paths[..]].concat();
    let ended = sshoal(&shoal, &words).expect(0);
    assert_eq!(member(&ended.stdout(), "verified"), NAMES.len() as u64 + 3);
    let here = into.path().join(shoal.name(0)).join("tree");
    for name in ["big", "sparse", "large"] {
        assert!(fs::read(here.join(name)).unwrap() == fs::read(tree.join(name)).unwrap());
    }
    // Nobody has to pay for it.
    let words = [
        "put",
        "-r",
        "--json",
        "--verify=never",
        text(&tree),
        text(target.path()),
    ];
    let ended = sshoal(&shoal, &words).expect(0);
    assert_eq!(member(&ended.stdout(), "verified"), 0);
}

#[test]
fn a_file_that_is_spoilt_on_the_host_is_not_put_in_place() {
    let programs = programs(&[("sh", "/bin/sh"), ("dd", "/bin/dd")]);
    // What its disk might do between writing and reading.
    script(
        programs.path(),
        "sha256sum",
        "exec 3<&0\nprintf X | dd of=/proc/$$/fd/3 conv=notrunc bs=1 seek=99 2>/dev/null\nexec /usr/bin/sha256sum",
    );
    let shoal = with_path(programs.path());
    let target = shared_folder();
    let file = target.path().join("f");
    write(&file, b"old", 0o666);
    let dir = tempfile::tempdir().unwrap();
    let new = dir.path().join("f");
    write(&new, &noise(200_000), 0o644);
    for flag in ["--verify", "--verify=auto"] {
        let words = ["put", flag, text(&new), text(&file)];
        sshoal(&shoal, &words).expect(3).says(&[
            "/f: verifying: what has arrived is not what was sent",
            "run it again",
        ]);
        assert_eq!(fs::read(&file).unwrap(), b"old");
        assert_eq!(parts(target.path()), Vec::<Vec<u8>>::new());
    }
}

#[test]
fn a_batch_that_is_spoilt_goes_again_file_by_file() {
    let programs = programs(&[
        ("sh", "/bin/sh"),
        ("tar", "/bin/tar"),
        ("sync", "/bin/sync"),
        ("rm", "/bin/rm"),
        ("sed", "/bin/sed"),
    ]);
    script(
        programs.path(),
        "sha256sum",
        "test \"$1\" = -c || exec /usr/bin/sha256sum \"$@\"\n\
         f=$(sed -n '5s/^[0-9a-f]*  //p' \"$2\")\nprintf spoilt >\"$f\"\nexec /usr/bin/sha256sum \"$@\"",
    );
    let shoal = with_path(programs.path());
    let (_dir, tree) = tree(200);
    let target = shared_folder();
    let paths = [text(&tree), text(target.path())];
    let words = [&["put", "-r", "-p", "-v", "--json", "--verify"], &paths[..]].concat();
    let ended = sshoal(&shoal, &words).expect(0);
    let ended = ended.says(&["tar on the host did not unpack all of it"]);
    assert_eq!(
        member(&ended.stdout(), "verified"),
        200 + NAMES.len() as u64 + 2
    );
    assert!(listing(&tree) == listing(&target.path().join("tree")));
    assert_eq!(parts(target.path()), Vec::<Vec<u8>>::new());
}

#[test]
fn what_is_fetched_and_differs_is_not_put_in_place() {
    let programs = programs(&[("sh", "/bin/sh"), ("sed", "/bin/sed")]);
    script(
        programs.path(),
        "sha256sum",
        "/usr/bin/sha256sum \"$@\" | sed s/^./0/",
    );
    let shoal = with_path(programs.path());
    let source = shared_folder();
    let file = source.path().join("f");
    // Its hash does not begin with 0.
    write(&file, b"contents\n", 0o644);
    let into = tempfile::tempdir().unwrap();
    let here = into.path().join(shoal.name(0));
    fs::create_dir(&here).unwrap();
    write(&here.join("f"), b"old", 0o644);
    let words = ["get", "--verify", text(&file), text(into.path())];
    sshoal(&shoal, &words)
        .expect(3)
        .says(&["/f: verifying: what has arrived"]);
    assert_eq!(fs::read(here.join("f")).unwrap(), b"old");
    assert_eq!(parts(into.path()), Vec::<Vec<u8>>::new());
}

#[test]
fn a_single_session_is_for_sftp() {
    let shoal = real(SshdSpec::new(1).line("MaxSessions 1"));
    let target = shared_folder();
    let (_dir, tree) = tree(0);
    let words = [
        "put",
        "-r",
        "-p",
        "-v",
        "--verify=auto",
        text(&tree),
        text(target.path()),
    ];
    sshoal(&shoal, &words)
        .expect(0)
        .says(&["files were not verified: the server opens no further session"]);
    assert!(listing(&tree) == listing(&target.path().join("tree")));
}

#[test]
fn what_is_printed_is_not_hashed() {
    let shoal = real(SshdSpec::new(1));
    for flag in ["--checksum", "--verify"] {
        let ended = sshoal(&shoal, &["get", flag, "/etc/hostname", "-"]);
        ended
            .expect(2)
            .says(&["are for files that are put in place"]);
    }
    sshoal(&shoal, &["get", "--verify=auto", "/etc/hostname", "-"]).expect(0);
}

#[test]
fn ctrl_c_while_the_host_hashes_leaves_no_part() {
    let programs = programs(&[("sh", "/bin/sh"), ("sleep", "/bin/sleep")]);
    let mark = shared_folder();
    let marked = mark.path().join("hashing");
    let line = format!("echo >{}\nexec sleep 60", marked.display());
    script(programs.path(), "sha256sum", &line);
    let shoal = with_path(programs.path());
    let target = shared_folder();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("f");
    write(&file, b"contents", 0o644);
    let words = ["put", "--verify", text(&file), text(target.path())];
    let running = Running::start(&mut command(&shoal, &words));
    support::wait_until("the host hashes", || marked.exists());
    assert_eq!(parts(target.path()).len(), 1);
    running.interrupt();
    running.wait().expect(130);
    assert_eq!(listing(target.path()).len(), 0);
}

/// Octets that a program has read so far (proc(5), io).
fn read_so_far(running: &Running) -> u64 {
    let io = format!("/proc/{}/io", running.pid().as_raw_nonzero());
    let io = fs::read_to_string(io).unwrap();
    let read = io.lines().find_map(|line| line.strip_prefix("rchar: "));
    read.unwrap().parse().unwrap()
}

/// Nobody has hashed them in the time that a test has.
#[test]
fn ctrl_c_while_a_very_large_file_is_hashed_here_ends_that() {
    let programs = programs(&[("sh", "/bin/sh")]);
    script(programs.path(), "sha256sum", "exit 1");
    let shoal = with_path(programs.path());
    let (folder, into) = (shared_folder(), tempfile::tempdir().unwrap());
    let here = into.path().join(shoal.name(0));
    fs::create_dir(&here).unwrap();
    let (there, here) = (folder.path().join("f"), here.join("f"));
    // Of the same size, so that both ends hash.
    for path in [&there, &here] {
        File::create(path).unwrap().set_len(1 << 40).unwrap();
    }
    for words in [
        ["put", "--checksum", text(&here), text(&there)],
        ["get", "--checksum", text(&there), text(into.path())],
    ] {
        let running = Running::start(&mut command(&shoal, &words));
        support::wait_until("it hashes", || read_so_far(&running) > 64 << 20);
        running.interrupt();
        let ended = running.wait().expect(130);
        let ended = ended.says(&["interrupted before it was whole"]);
        let said = ended.stderr();
        assert!(!said.contains("not confirmed"), "it had to be left: {said}");
    }
}
