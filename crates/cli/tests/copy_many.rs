//! One `sshoal put` to sixteen hosts with real sshd, three of which have trouble.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sshoal_testbed::sshd::{Layout, RealSshd, SshdSpec};
use support::copying::{Barred, SmallDisk, has_proof};
use support::line::Line;
use support::program::{Ended, Running};
use support::{Shoal, wait_until};

const HOSTS: usize = 16;
/// The host whose line carries 1 Mbit/s, the one that dies at 40 %, the one whose disk is full.
const SLOW: usize = 3;
const DYING: usize = 7;
const FULL: usize = 11;
/// `sshoal_transfer::CHECKPOINT`.
const CHECKPOINT: u64 = 8 << 20;
const LEN: u64 = 8 * CHECKPOINT;

/// A folder of its own for each host, all served from one machine.
fn hosts_with_folders() -> (Shoal<RealSshd>, tempfile::TempDir) {
    let root = tempfile::Builder::new()
        .prefix("sshoal-chroot.")
        .tempdir_in("/")
        .unwrap();
    fs::set_permissions(root.path(), Permissions::from_mode(0o755)).unwrap();
    let mut spec = SshdSpec::new(HOSTS as u32).line("Subsystem sftp internal-sftp");
    spec.layout = Layout::Shared;
    for host in 0..HOSTS {
        let inside = folder(root.path(), host);
        fs::create_dir_all(&inside).unwrap();
        fs::set_permissions(&inside, Permissions::from_mode(0o777)).unwrap();
        spec = spec
            .line(format!("Match LocalAddress 127.2.0.{}", host + 1))
            .line("    ForceCommand internal-sftp")
            .line(format!(
                "    ChrootDirectory {}",
                inside.parent().unwrap().display()
            ));
    }
    (Shoal::real(&spec), root)
}

fn folder(root: &Path, host: usize) -> PathBuf {
    root.join(host.to_string()).join("in")
}

/// A host's line of `--json`.
fn record(ended: &Ended, label: &str) -> String {
    let shown = ended.stdout();
    let label = format!("\"{label}\"");
    let mut lines = shown.lines();
    let line = lines.find(|line| line.contains(&label));
    line.unwrap_or_else(|| panic!("nothing of {label}: {shown}"))
        .to_owned()
}

fn moved(record: &str) -> u64 {
    let (_, octets) = record.rsplit_once(r#""octets":"#).unwrap();
    let digits = octets.split(|letter: char| !letter.is_ascii_digit()).next();
    digits.unwrap().parse().unwrap()
}

/// Lengths of the journals that are kept.
fn journals(home: &Path) -> Vec<u64> {
    let transfers = home.join(".local/state/sshoal/transfers");
    let folders = fs::read_dir(transfers).into_iter().flatten();
    let folders = folders.map(|entry| entry.unwrap().path());
    let files = folders.filter_map(|path| fs::read_dir(path).ok()).flatten();
    files
        .filter_map(|file| Some(file.ok()?.metadata().ok()?.len()))
        .collect()
}

#[test]
fn three_hosts_in_trouble_are_named_the_others_unharmed_and_the_rest_follows() {
    let (shoal, root) = hosts_with_folders();
    let addresses = shoal.hosts.addresses();
    // 16 KiB in 131 ms are 1 Mbit/s.
    let slow = Line::to(addresses[SLOW], Duration::from_millis(131), u64::MAX);
    let dying = Line::to(addresses[DYING], Duration::ZERO, LEN * 2 / 5);
    let dir = tempfile::tempdir().unwrap();
    let rest = fs::read_to_string(shoal.file("ssh_config")).unwrap();
    let config = [slow.stanza(), dying.stanza(), rest].concat();
    fs::write(dir.path().join("config"), config).unwrap();
    let source = dir.path().join("source");
    let contents: Vec<u8> = (0..LEN).map(|at| (at % 251 + at / 65_521) as u8).collect();
    fs::write(&source, &contents).unwrap();
    let full = SmallDisk::mount(&folder(root.path(), FULL), "2m");
    for host in [SLOW, DYING, FULL] {
        fs::write(folder(root.path(), host).join("source"), "old").unwrap();
    }
    let put = || {
        let mut command = shoal.user.command(env!("CARGO_BIN_EXE_sshoal"));
        command.args(["put", "--json", "-p", "-F"]);
        command.arg(dir.path().join("config"));
        command.args(["-f", &shoal.file("hosts")]);
        command.arg(&source).arg("/in");
        Running::start(&mut command)
    };
    let has_arrived = |host: usize| {
        let there = fs::metadata(folder(root.path(), host).join("source"));
        there.is_ok_and(|there| there.len() == LEN)
    };
    let healthy = || (0..HOSTS).filter(|host| ![SLOW, DYING, FULL].contains(host));
    let running = put();
    wait_until("all others have it", || healthy().all(has_arrived));
    wait_until("something is proven of the dying one", || {
        let kept = journals(shoal.user.home());
        has_proof(&shoal) && kept.len() == 2 && kept.iter().max() > kept.iter().min()
    });
    let barred = Barred::new(&shoal);
    dying.cut();
    slow.cut();
    let first = running.wait().expect(3);
    drop(barred);
    // What has been read for those that are behind is not kept.
    let first = first.expect_memory_below(LEN);
    for host in [SLOW, DYING] {
        let record = record(&first, &addresses[host].ip().to_string());
        assert!(record.contains(r#""failure":"lost""#), "{record}");
        let old = fs::read(folder(root.path(), host).join("source")).unwrap();
        assert_eq!(old, b"old");
    }
    if let Some(disk) = full {
        let record = record(&first, &addresses[FULL].ip().to_string());
        assert!(record.contains("no space left"), "{record}");
        let old = fs::read(folder(root.path(), FULL).join("source"));
        assert_eq!(old.unwrap(), b"old");
        drop(disk);
    }
    let second = put().wait().expect(0);
    for host in 0..HOSTS {
        let there = fs::read(folder(root.path(), host).join("source")).unwrap();
        assert!(there == contents, "host {host}");
        assert_eq!(fs::read_dir(folder(root.path(), host)).unwrap().count(), 1);
    }
    for host in healthy() {
        let record = record(&second, &addresses[host].ip().to_string());
        assert_eq!(moved(&record), 0, "{record}");
    }
    let rest = moved(&record(&second, &addresses[DYING].ip().to_string()));
    assert!(rest <= LEN - CHECKPOINT, "{rest} octets were sent again");
    assert!(rest >= LEN - LEN * 2 / 5, "more is there than was carried");
    assert_eq!(journals(shoal.user.home()), Vec::<u64>::new());
}

/// Nobody waits for one on a line that carries 128 kbit/s, and it is served to its end.
#[test]
fn a_slow_host_is_waited_for_and_keeps_nobody() {
    const SHORT: u64 = 1 << 20;
    let (shoal, root) = hosts_with_folders();
    let addresses = shoal.hosts.addresses();
    let slow = Line::to(addresses[SLOW], Duration::from_secs(1), u64::MAX);
    let dir = tempfile::tempdir().unwrap();
    let rest = fs::read_to_string(shoal.file("ssh_config")).unwrap();
    fs::write(dir.path().join("config"), [slow.stanza(), rest].concat()).unwrap();
    let source = dir.path().join("source");
    let contents: Vec<u8> = (0..SHORT)
        .map(|at| (at % 251 + at / 65_521) as u8)
        .collect();
    fs::write(&source, &contents).unwrap();
    let mut command = shoal.user.command(env!("CARGO_BIN_EXE_sshoal"));
    command.args(["put", "--json", "-F"]);
    command.arg(dir.path().join("config"));
    command.args(["-f", &shoal.file("hosts")]);
    let mut running = Running::start(command.arg(&source).arg("/in"));
    let there = |host: usize| folder(root.path(), host).join("source");
    wait_until("all others have it", || {
        (0..HOSTS).all(|host| host == SLOW || there(host).exists())
    });
    assert!(running.is_running() && !there(SLOW).exists());
    slow.free();
    let ended = running.wait().expect(0);
    for (host, address) in addresses.iter().enumerate() {
        assert!(fs::read(there(host)).unwrap() == contents, "host {host}");
        let record = record(&ended, &address.ip().to_string());
        assert_eq!(moved(&record), SHORT, "{record}");
    }
}
