//! What `sshoal put` and `sshoal get` show on a terminal while files are under way, and that they show nothing of it elsewhere.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::copying::{Barred, command, real, text};
use support::line::Line;
use support::program::Running;
use support::terminal::Screen;
use support::{Shoal, noise, shared_folder};
use tempfile::TempDir;

const LEN: usize = 12 << 20;
/// The host behind a slow line.
const SLOW: usize = 1;

/// Three hosts, and a file for them.
struct Setup {
    shoal: Shoal<RealSshd>,
    slow: Line,
    dir: TempDir,
    file: PathBuf,
}

fn setup() -> Setup {
    let shoal = real(SshdSpec::new(3));
    // 16 KiB in 100 ms.
    let slow = Duration::from_millis(100);
    let slow = Line::to(shoal.hosts.addresses()[SLOW], slow, u64::MAX);
    let dir = shared_folder();
    let file = dir.path().join("file");
    fs::write(&file, noise(LEN)).unwrap();
    let rest = fs::read_to_string(shoal.file("ssh_config")).unwrap();
    fs::write(dir.path().join("config"), slow.stanza() + &rest).unwrap();
    Setup {
        shoal,
        slow,
        dir,
        file,
    }
}

impl Setup {
    /// With one of the hosts behind the line.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.shoal.user.command(env!("CARGO_BIN_EXE_sshoal"));
        command.arg(words[0]);
        command.arg("-F").arg(self.dir.path().join("config"));
        command.args(["-f", &self.shoal.file("hosts")]);
        command.args(&words[1..]);
        command
    }
}

#[test]
fn the_slowest_hosts_have_a_line_each_and_all_have_one() {
    let setup = setup();
    let target = shared_folder();
    let words = ["put", text(&setup.file), text(target.path())];
    let mut screen = Screen::start(&setup.command(&words), 30, 100);
    // When the others are done there is one left, with its rate and its time, and all of them below it.
    screen.expect("2 of 3 done");
    screen.expect(&format!(
        "\r\u{1b}[K\u{1b}[A\u{1b}[K{}: ",
        setup.shoal.name(SLOW)
    ));
    screen.expect(" of 12.0 MiB, ");
    screen.expect("iB/s, ");
    screen.expect(" left\r");
    screen.expect(" of 36.0 MiB, ");
    screen.expect(" left; 2 of 3 done");
    let _barred = Barred::new(&setup.shoal);
    setup.slow.cut();
    let (status, shown) = screen.finish();
    assert_eq!(status, Some(3), "{shown}");
    let (_, said) = shown.rsplit_once("\u{1b}[K").unwrap();
    assert!(!said.contains("iB/s"), "it is erased in the end: {said}");
}

#[test]
fn every_host_that_fetches_under_a_limit_is_shown() {
    let setup = setup();
    let into = TempDir::new().unwrap();
    let (file, into) = (text(&setup.file), text(into.path()));
    let words = ["get", "--limit", "300K", file, into];
    let mut screen = Screen::start(&command(&setup.shoal, &words), 30, 100);
    for host in 0..3 {
        screen.expect(&format!("{}: ", setup.shoal.name(host)));
        screen.expect(" of 12.0 MiB");
    }
    screen.expect("0 of 3 done");
    screen.type_in("\x03");
    let (status, shown) = screen.finish();
    assert_eq!(status, Some(130), "{shown}");
    // In a pipe it is quiet.
    let ended = Running::start(&mut command(&setup.shoal, &["get", file, into])).wait();
    assert_eq!(ended.expect(0).stderr(), "");
}
