//! `sshoal put` and `sshoal get` of block devices with real sshd, on loop devices, whose own counters tell what was read.
//!
//! Needs root and loop devices. Where the system has none (no /dev/loop-control, as in most containers) every test says so on
//! standard output and checks nothing; where it has them and refuses one, the test fails.

#![allow(clippy::unwrap_used)]

#[path = "support/loop_device.rs"]
mod loop_device;
mod support;

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use loop_device::{Loop, Mount, are_there};
use rustix::process::{Pid, Signal, kill_process};
use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::copying::{command, commands, programs, real, script, sshoal, text, with_programs};
use support::program::Running;
use support::{Shoal, descendants, noise, shared_folder, wait_until};

const MIB: usize = 1 << 20;

/// An image in a file, with a hole in the middle of what is none.
fn image(folder: &Path, len: usize) -> String {
    let path = folder.join("image");
    let mut contents = noise(len);
    let hole = len / 4 / 4096 * 4096..len / 2 / 4096 * 4096;
    contents[hole.clone()].fill(0);
    let file = File::create(&path).unwrap();
    file.write_all_at(&contents[..hole.start], 0).unwrap();
    file.write_all_at(&contents[hole.end..], hole.end as u64)
        .unwrap();
    text(&path).to_owned()
}

/// The device holds the image, and behind it what it held before.
#[track_caller]
fn holds(device: &Loop, image: &str) {
    let image = fs::read(image).unwrap();
    let held = device.contents();
    assert!(held[..image.len()] == image, "the image has not arrived");
    let rest = &held[image.len()..];
    assert!(rest.iter().all(|&octet| octet == 0xff), "more was written");
}

fn has_run_a_command(shoal: &Shoal<RealSshd>) -> bool {
    commands(shoal) > 0
}

/// The host dies, for this connection: all that serves it is killed.
fn kill_sessions(shoal: &Shoal<RealSshd>) {
    for process in descendants(shoal.hosts.pid(0).as_raw_nonzero().get()) {
        // It may have ended with its parent.
        let _ = kill_process(Pid::from_raw(process).unwrap(), Signal::KILL);
    }
    shoal.wait_for_sessions();
}

/// Brings an image of this length onto a device, and says how often the device was read meanwhile.
fn reads_of_put(shoal: &Shoal<RealSshd>, sector: u32, len: usize) -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let device = Loop::new(6 * MIB, sector);
    let image = image(dir.path(), len);
    let before = device.reads_and_writes();
    let ended = sshoal(shoal, &["put", "--yes", "--json", &image, device.path()]).expect(0);
    let after = device.reads_and_writes();
    assert!(
        after.1 > before.1,
        "nothing was written past the kernel's memory"
    );
    let octets = format!(r#""octets":{len}}}"#);
    assert!(ended.stdout().contains(&octets), "{}", ended.stdout());
    holds(&device, &image);
    after.0 - before.0
}

#[test]
fn an_image_of_whole_blocks_is_written_without_a_read() {
    if !are_there() {
        return;
    }
    let shoal = real(SshdSpec::new(1));
    for len in [4096, 3 * MIB + 5 * 4096, 6 * MIB] {
        assert_eq!(reads_of_put(&shoal, 4096, len), 0, "of {len} octets");
    }
    assert!(has_run_a_command(&shoal), "it went by dd");
    // What is less than a block of 4096 is read; so the counter does count.
    assert_eq!(reads_of_put(&shoal, 4096, 2 * MIB + 100), 1);
    // Of logical blocks everything goes past the kernel's memory.
    assert_eq!(reads_of_put(&shoal, 512, 2 * MIB + 3 * 512), 0);
    let control = Loop::new(6 * MIB, 4096);
    let before = control.reads_and_writes();
    let of = format!("of={}", control.path());
    let words = ["if=/dev/zero", &of, "bs=512", "count=16", "conv=notrunc"];
    let dd = Command::new("dd").args(words).output().unwrap();
    assert!(
        dd.status.success(),
        "{}",
        String::from_utf8_lossy(&dd.stderr)
    );
    let after = control.reads_and_writes();
    assert!(
        after.0 > before.0,
        "blocks of 512 octets are read before they are written"
    );
}

#[test]
fn every_tail_arrives_and_what_is_behind_it_stays() {
    if !are_there() {
        return;
    }
    let shoal = real(SshdSpec::new(1));
    for (sector, len) in [
        (512, 1),
        (512, MIB + 512 + 7),
        (4096, 8191),
        (4096, 5 * MIB + 4097),
    ] {
        assert!(reads_of_put(&shoal, sector, len) <= 1, "{len} octets");
    }
}

#[test]
fn hosts_without_a_shell_or_without_dd_are_written_over_sftp() {
    if !are_there() {
        return;
    }
    let old = programs(&[("sh", "/usr/bin/sh"), ("stat", "/usr/bin/stat")]);
    // A dd that knows no fullblock, as that of an old BusyBox.
    script(old.path(), "dd", "echo 'dd: unknown operand' >&2; exit 1");
    for line in [
        "ForceCommand internal-sftp".to_owned(),
        "MaxSessions 1".to_owned(),
        format!("SetEnv PATH={}", old.path().display()),
    ] {
        let spec = SshdSpec::new(1).line("Subsystem sftp internal-sftp");
        let shoal = real(spec.line(&line));
        assert_eq!(reads_of_put(&shoal, 4096, 3 * MIB + 4096), 0, "{line}");
        assert!(reads_of_put(&shoal, 4096, MIB + 9) <= 1, "{line}");
    }
}

#[test]
fn the_dd_of_busybox_will_do_with_direct_writes_or_without() {
    if !are_there() {
        return;
    }
    let programs = programs(&["sh", "dd", "stat"].map(|applet| (applet, "/bin/busybox")));
    let shoal = real(with_programs(programs.path()));
    assert_eq!(reads_of_put(&shoal, 4096, 3 * MIB + 4096), 0);
    assert!(has_run_a_command(&shoal));
    // One that knows no direct writes.
    fs::remove_file(programs.path().join("dd")).unwrap();
    let dd = "case \"$*\" in *direct*) exit 1;; esac\nexec /bin/busybox dd \"$@\"";
    script(programs.path(), "dd", dd);
    assert_eq!(reads_of_put(&shoal, 4096, 3 * MIB + 4096), 0);
    assert!(reads_of_put(&shoal, 4096, MIB + 9) <= 1);
}

#[test]
fn what_must_not_be_written_is_named_and_not_touched() {
    if !are_there() {
        return;
    }
    let shoal = real(SshdSpec::new(1));
    let dir = tempfile::tempdir().unwrap();
    let device = Loop::new(2 * MIB, 512);
    let small = image(dir.path(), MIB);
    let large = dir.path().join("large");
    fs::write(&large, noise(2 * MIB + 1)).unwrap();
    let refused = |words: &[&str], said: &[&str]| {
        let before = device.reads_and_writes();
        let words = [&["put"], words].concat();
        sshoal(&shoal, &words).expect(3).says(said);
        assert_eq!(device.reads_and_writes().1, before.1, "{words:?}");
        assert!(device.contents().iter().all(|&octet| octet == 0xff));
        assert!(fs::metadata(device.path()).is_ok(), "the device itself");
    };
    let path = device.path();
    refused(&[&small, path], &["block device", "--yes"]);
    let sizes = ["2097152", "2097153"];
    refused(&["--yes", text(&large), path], &sizes);
    refused(&["--yes", &small, text(&large), path], &["folder"]);
    refused(&["--yes", "-r", text(dir.path()), path], &["folder"]);
    refused(&["--yes", &small, &format!("{path}/")], &["127.2.0"]);
    // Held by another program, as a volume group or a RAID would.
    let held = device.claim();
    refused(&["--yes", &small, path], &["in use", "lsblk"]);
    drop(held);
    // Neither is one replaced by a file, nor its like.
    refused(&["--yes", &small, "/dev/null"], &["a device is there"]);
    let name = Path::new(path).file_name().unwrap();
    fs::rename(&small, dir.path().join(name)).unwrap();
    let same = dir.path().join(name);
    refused(&["--yes", text(&same), "/dev/"], &["a device is there"]);
}

#[test]
fn a_device_that_is_mounted_or_read_only_is_refused() {
    if !are_there() {
        return;
    }
    let shoal = real(SshdSpec::new(1));
    let dir = tempfile::tempdir().unwrap();
    let small = image(dir.path(), MIB);
    let device = Loop::new(8 * MIB, 512);
    let made = Command::new("mkfs.ext4")
        .args(["-q", device.path()])
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let mount = Mount::of(&device);
    let ended = sshoal(&shoal, &["put", "--yes", &small, device.path()]).expect(3);
    ended.says(&["in use", "mounted on", text(mount.path()), "umount"]);
    let onto = sshoal(&shoal, &["get", "--yes", "/etc/hostname", device.path()]).expect(3);
    onto.says(&["in use"]);
    fs::write(mount.path().join("file"), "whole").unwrap();
    drop(mount);
    device.set_read_only();
    let ended = sshoal(&shoal, &["put", "--yes", &small, device.path()]).expect(3);
    ended.says(&["read-only", "blockdev --setrw"]);
    let onto = sshoal(&shoal, &["get", "--yes", "/etc/hostname", device.path()]).expect(3);
    let onto = onto.says(&["read-only"]);
    assert!(!onto.stderr().contains("half-written"), "{}", onto.stderr());
}

#[test]
fn standard_input_goes_onto_a_device_as_far_as_it_has_room() {
    if !are_there() {
        return;
    }
    let shoal = real(SshdSpec::new(1));
    let device = Loop::new(6 * MIB, 4096);
    let dir = tempfile::tempdir().unwrap();
    let put = |image: &str, status: i32| {
        let mut command = command(&shoal, &["put", "--yes", "-", device.path()]);
        let mut cat = Command::new("cat")
            .arg(image)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        command.stdin(cat.stdout.take().unwrap());
        let ended = Running::start(&mut command).wait().expect(status);
        drop(command);
        cat.wait().unwrap();
        ended
    };
    let fits = image(dir.path(), 3 * MIB + 4096 + 77);
    put(&fits, 0);
    holds(&device, &fits);
    let large = dir.path().join("large");
    fs::write(&large, noise(6 * MIB + 1)).unwrap();
    put(text(&large), 3).says(&["half-written", "6291456 octets", "run it again"]);
    let exact = dir.path().join("exact");
    fs::write(&exact, noise(6 * MIB)).unwrap();
    put(text(&exact), 0);
    holds(&device, text(&exact));
}

#[test]
fn a_device_is_fetched_whole_and_sent_whole() {
    if !are_there() {
        return;
    }
    let shoal = real(SshdSpec::new(1));
    let source = Loop::new(3 * MIB + 3 * 512, 512);
    let contents = noise(3 * MIB + 3 * 512);
    source.fill(&contents);
    let dir = tempfile::tempdir().unwrap();
    let name = Path::new(source.path()).file_name().unwrap();
    let back = dir.path().join(shoal.name(0)).join(name);
    let get = |words: &[&str]| sshoal(&shoal, &[&["get"], words].concat());
    for _ in 0..2 {
        // Its time says nothing of its contents: it is fetched again.
        let ended = get(&["-p", "--json", source.path(), text(dir.path())]).expect(0);
        assert!(
            ended.stdout().contains(r#""unchanged":0"#),
            "{}",
            ended.stdout()
        );
        assert!(fs::read(&back).unwrap() == contents);
    }
    let printed = get(&[source.path(), "-"]).expect(0);
    assert!(printed.stdout == contents);
    // In a folder it is left out with a word; a pattern is no name.
    get(&["/dev/loop[0-9]*", text(dir.path())])
        .expect(3)
        .says(&["neither a file"]);
    // From this machine's device to a file, and to a device there.
    let target = shared_folder();
    let file = target.path().join("file");
    sshoal(&shoal, &["put", source.path(), text(&file)]).expect(0);
    assert!(fs::read(&file).unwrap() == contents);
    let copy = Loop::new(4 * MIB, 512);
    sshoal(&shoal, &["put", "--yes", source.path(), copy.path()]).expect(0);
    holds(&copy, text(&file));
}

#[test]
fn a_device_here_takes_the_file_of_one_host() {
    if !are_there() {
        return;
    }
    let shoal = real(SshdSpec::new(2));
    let dir = shared_folder();
    let device = Loop::new(4 * MIB, 4096);
    let small = image(dir.path(), 3 * MIB + 4096);
    let large = dir.path().join("large");
    fs::write(&large, noise(4 * MIB + 1)).unwrap();
    let get = |words: &[&str]| {
        let mut command = shoal.user.command(env!("CARGO_BIN_EXE_sshoal"));
        command
            .args(["get", "-F", &shoal.file("ssh_config")])
            .args(words);
        Running::start(&mut command).wait()
    };
    let (one, two, path) = (shoal.name(0), shoal.name(1), device.path());
    get(&["-w", &one, &small, path]).expect(2).says(&["--yes"]);
    let both = format!("{one},{two}");
    get(&["--yes", "-w", &both, &small, path])
        .expect(2)
        .says(&["one host"]);
    get(&["--yes", "-w", &one, &small, text(&large), path]).expect(2);
    let sizes = ["4194304", "4194305"];
    get(&["--yes", "-w", &one, text(&large), path])
        .expect(3)
        .says(&sizes);
    assert!(device.contents().iter().all(|&octet| octet == 0xff));
    let before = device.reads_and_writes();
    get(&["--yes", "-w", &one, &small, path]).expect(0);
    let after = device.reads_and_writes();
    assert_eq!(after.0, before.0, "whole blocks are not read");
    holds(&device, &small);
}

#[test]
fn what_is_cut_says_how_far_it_came_and_is_done_again() {
    if !are_there() {
        return;
    }
    let broken = programs(&[("sh", "/usr/bin/sh"), ("stat", "/usr/bin/stat")]);
    // The second segment fails as a disk would.
    let dd = "case \"$*\" in *seek=64*) echo 'dd: error writing: Input/output error' >&2; exit 1;; esac\n\
        exec /bin/dd \"$@\"";
    script(broken.path(), "dd", dd);
    let shoal = real(with_programs(broken.path()));
    let dir = tempfile::tempdir().unwrap();
    let device = Loop::new(68 * MIB, 4096);
    let large = image(dir.path(), 67 * MIB);
    let ended = sshoal(&shoal, &["put", "--yes", &large, device.path()]).expect(3);
    let reached = (64 * MIB).to_string();
    ended.says(&[
        "half-written",
        &reached,
        "Input/output error",
        "run it again",
    ]);
    // By the user, in the middle.
    let shoal = real(SshdSpec::new(1));
    let limited = ["put", "--yes", "--limit", "4M", &large, device.path()];
    let before = device.reads_and_writes();
    let running = Running::start(&mut command(&shoal, &limited));
    wait_until("it writes", || device.reads_and_writes().1 > before.1);
    running.interrupt();
    let ended = running.wait();
    assert_eq!(ended.status.code(), Some(130));
    ended.says(&["half-written", "interrupted"]);
    // The lost connection, when what that one had begun is over.
    shoal.wait_for_sessions();
    let running = Running::start(&mut command(&shoal, &limited));
    wait_until("its session begins", || commands(&shoal) == 2);
    let before = device.reads_and_writes();
    // Blocks of 1 MiB: what dd of the other session may have had left is less than one.
    wait_until("it writes", || device.reads_and_writes().1 > before.1 + 2);
    kill_sessions(&shoal);
    running.wait().expect(3).says(&["half-written"]);
    sshoal(&shoal, &["put", "--yes", &large, device.path()]).expect(0);
    holds(&device, &large);
}

#[test]
fn several_hosts_and_a_dry_run() {
    if !are_there() {
        return;
    }
    let shoal = real(SshdSpec::new(3));
    let dir = shared_folder();
    let device = Loop::new(2 * MIB, 4096);
    let small = image(dir.path(), MIB + 4096);
    // A name with all that a shell might take for its own.
    let link = dir.path().join("a 'b\" $(touch x)\\;\u{e9}");
    symlink(device.path(), &link).unwrap();
    let dry = sshoal(&shoal, &["put", "--dry-run", device.path(), "/srv/image"]).expect(0);
    assert!(
        dry.stdout().contains("1 block device (2097152 octets)"),
        "{}",
        dry.stdout()
    );
    // They have the same device, one after the other.
    let words = [
        "put",
        "--yes",
        "--parallel",
        "1",
        "--json",
        &small,
        text(&link),
    ];
    let ended = sshoal(&shoal, &words).expect(0);
    assert_eq!(
        ended.stdout().matches(r#""done":1"#).count(),
        3,
        "{}",
        ended.stdout()
    );
    assert!(has_run_a_command(&shoal));
    holds(&device, &small);
}
