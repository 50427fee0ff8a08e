//! `sshoal put` and `sshoal get` with a host that has nothing but BusyBox: a folder of its own that sshd changes its root to.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use sshoal_testbed::sshd::SshdSpec;
use support::copying::{
    CHECKPOINT, command, commands, has_proof, listing, moved, parts, real, sshoal, text, write,
};
use support::program::Running;
use support::{noise, wait_until};
use tempfile::TempDir;

/// Where Debian has it, and where its sshd_config names it.
const SFTP_SERVER: &str = "/usr/lib/openssh/sftp-server";

/// A root for hosts, and the only folder in it that the account may write to.
struct Root {
    root: TempDir,
}

impl Root {
    /// BusyBox with all its applets, and further programs.
    fn new(programs: &[&str]) -> Root {
        // sshd takes a root only if nobody else may write to it, nor to any folder above it.
        let root = tempfile::tempdir_in("/var/lib").unwrap();
        fs::set_permissions(root.path(), Permissions::from_mode(0o755)).unwrap();
        let it = Root { root };
        for program in [&["/bin/busybox"], programs].concat() {
            it.install(program);
        }
        run(Command::new("chroot").arg(it.path("/")).args([
            "/bin/busybox",
            "--install",
            "-s",
            "/bin",
        ]));
        fs::create_dir(it.path("/dev")).unwrap();
        run(Command::new("mknod")
            .args(["-m", "666"])
            .arg(it.path("/dev/null"))
            .args(["c", "1", "3"]));
        // sftp-server asks who it is.
        fs::create_dir(it.path("/etc")).unwrap();
        fs::copy("/etc/passwd", it.path("/etc/passwd")).unwrap();
        fs::create_dir(it.path("/srv")).unwrap();
        fs::set_permissions(it.path("/srv"), Permissions::from_mode(0o777)).unwrap();
        it
    }

    /// What is at a path of the host.
    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path.trim_start_matches('/'))
    }

    /// A program, and the libraries that it is linked with.
    fn install(&self, program: &str) {
        let linked = Command::new("ldd").arg(program).output().unwrap();
        let linked = String::from_utf8(linked.stdout).unwrap();
        let libraries = linked
            .split_whitespace()
            .filter(|word| word.starts_with('/'));
        for file in libraries.chain([program]) {
            let to = self.path(file);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(file, to).unwrap();
        }
    }

    fn spec(&self) -> SshdSpec {
        SshdSpec::new(1).line(format!("ChrootDirectory {}", self.root.path().display()))
    }
}

fn run(command: &mut Command) {
    let ended = command.output().unwrap();
    assert!(ended.status.success(), "{command:?}: {ended:?}");
}

fn tree() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    fs::create_dir_all(tree.join("a/empty")).unwrap();
    for number in 0..200 {
        write(
            &tree.join(format!("a/{number}")),
            &noise(1 + number * 37),
            0o644,
        );
    }
    write(&tree.join("a/n\nx"), b"odd", 0o600);
    write(&tree.join("a/large"), &noise(3_000_000), 0o640);
    (dir, tree)
}

#[test]
fn many_small_files_go_and_come_in_batches() {
    let root = Root::new(&[SFTP_SERVER]);
    let shoal = real(root.spec());
    let (dir, tree) = tree();
    sshoal(&shoal, &["put", "-r", "-p", text(&tree), "/srv"]).expect(0);
    assert!(listing(&tree) == listing(&root.path("/srv/tree")), "put");
    let put = commands(&shoal);
    assert!(put > 0);
    let back = dir.path().join("back");
    let words = ["get", "-r", "-p", "-v", "/srv/tree", text(&back)];
    let ended = sshoal(&shoal, &words).expect(0);
    assert!(!ended.stderr().contains("one by one"), "{}", ended.stderr());
    assert!(
        listing(&tree) == listing(&back.join(shoal.name(0)).join("tree")),
        "get"
    );
    assert!(commands(&shoal) > put);
    assert_eq!(parts(&root.path("/srv")), Vec::<Vec<u8>>::new());
}

#[test]
fn a_transfer_that_was_cut_goes_on() {
    let root = Root::new(&[SFTP_SERVER]);
    goes_on(&root);
}

fn goes_on(root: &Root) {
    let shoal = real(root.spec());
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    fs::write(&source, noise(10 * CHECKPOINT as usize)).unwrap();
    let fetched = dir.path().join("fetched");
    for words in [
        ["put", "-p", "--lanes", "1", text(&source), "/srv/file"],
        ["get", "-p", "--lanes", "1", "/srv/file", text(&fetched)],
    ] {
        // Most of it takes far longer than it takes to see that something is proven.
        let cut = [&words[..], &["--limit", "4M"]].concat();
        let mut running = Running::start(&mut command(&shoal, &cut));
        wait_until("something is proven", || {
            has_proof(&shoal) || !running.is_running()
        });
        if !running.is_running() {
            panic!(
                "it has ended before it was cut: {}",
                running.wait().stderr()
            );
        }
        drop(running);
        shoal.wait_for_programs();
        let ended = sshoal(&shoal, &[&words[..], &["--json"]].concat()).expect(0);
        assert!(moved(&ended) < 10 * CHECKPOINT, "{}", ended.stdout());
    }
    let contents = fs::read(&source).unwrap();
    assert!(fs::read(root.path("/srv/file")).unwrap() == contents);
    assert!(fs::read(fetched.join(shoal.name(0)).join("file")).unwrap() == contents);
}

/// sshd names a program that is not there.
#[test]
fn without_an_sftp_server_the_shell_stands_in() {
    let root = Root::new(&[]);
    let shoal = real(root.spec());
    let (dir, tree) = tree();
    let put = ["put", "-r", "-p", "-v", text(&tree), "/srv"];
    sshoal(&shoal, &put).expect(0).says(&["stood in"]);
    assert!(listing(&tree) == listing(&root.path("/srv/tree")));
    // What is there is found there.
    let ended = sshoal(&shoal, &[&put[..], &["--json"]].concat()).expect(0);
    assert_eq!(moved(&ended), 0, "{}", ended.stdout());
    let back = dir.path().join("back");
    sshoal(&shoal, &["get", "-r", "-p", "/srv/tree", text(&back)]).expect(0);
    assert!(listing(&tree) == listing(&back.join(shoal.name(0)).join("tree")));
    assert_eq!(parts(&root.path("/srv")), Vec::<Vec<u8>>::new());
    // sshd has one of its own, which needs no file.
    let shoal = real(root.spec().line("Subsystem sftp internal-sftp"));
    sshoal(&shoal, &["put", "-r", "-p", text(&tree), "/srv/again"]).expect(0);
    assert!(listing(&tree) == listing(&root.path("/srv/again/tree")));
}

#[test]
fn a_transfer_by_the_shell_that_was_cut_goes_on() {
    let root = Root::new(&[]);
    goes_on(&root);
}

#[test]
fn what_the_shell_lacks_is_named() {
    let root = Root::new(&[]);
    fs::remove_file(root.path("/bin/dd")).unwrap();
    let shoal = real(root.spec());
    let (dir, tree) = tree();
    for words in [
        &["put", "-r", text(&tree), "/srv"][..],
        &["get", "/srv", text(&dir.path().join("back"))],
    ] {
        let missing = [
            "the host has no SFTP",
            "lacks dd",
            "Subsystem sftp internal-sftp",
        ];
        sshoal(&shoal, words).expect(3).says(&missing);
    }
}

/// What the account needs is there, and nothing else.
#[test]
fn the_host_has_only_busybox() {
    let root = Root::new(&[SFTP_SERVER]);
    for applet in ["sh", "tar", "xargs", "sync", "test", "dd"] {
        let to = fs::read_link(root.path("/bin").join(applet)).unwrap();
        assert_eq!(to, Path::new("/bin/busybox"));
    }
}
