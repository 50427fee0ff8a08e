//! `sshoal run -t`: our terminal, lent to a program on one host.

#![allow(clippy::unwrap_used)]

mod support;

use rustix::process::{Signal, kill_process};
use rustix::termios::{LocalModes, Termios};
use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::program::Running;
use support::terminal::Screen;
use support::{Shoal, wait_until};

fn host() -> Shoal<RealSshd> {
    Shoal::real(&SshdSpec::new(1))
}

/// `sshoal run -t` of a line, on a terminal of 30 rows and 100 columns.
fn lent(shoal: &Shoal<RealSshd>, line: &str) -> Screen {
    Screen::start(&shoal.command(&["-t", line]), 30, 100)
}

/// All of a terminal's settings, to compare.
fn all(settings: &Termios) -> String {
    format!("{settings:?}")
}

#[test]
fn the_program_there_has_a_terminal_like_ours_and_follows_its_size() {
    let shoal = host();
    let mut screen = lent(
        &shoal,
        "echo $TERM; stty size; trap 'stty size' WINCH; echo set; while :; do sleep 0.05; done",
    );
    screen.expect("vt100\r\n30 100\r\nset\r\n");
    screen.resize(41, 123);
    screen.expect("41 123\r\n");
    screen.resize(10, 20);
    screen.expect("10 20\r\n");
    screen.wait_until_raw();
    screen.type_in("\x03");
    let (status, rest) = screen.finish();
    assert_eq!(
        (status, rest.as_str()),
        (Some(130), "^C"),
        "SIGINT ended it there"
    );
}

#[test]
fn keys_reach_the_program_one_by_one_and_its_status_is_ours() {
    let shoal = host();
    let mut screen = lent(
        &shoal,
        "stty raw -echo; echo ready; head -c 3 | od -An -c; stty sane; exit 7",
    );
    screen.expect("ready");
    screen.wait_until_raw();
    // Without an end of line: Ctrl-C, Ctrl-D, Escape.
    screen.type_in("\x03\x04\x1b");
    screen.expect("003 004 033");
    let (status, rest) = screen.finish();
    assert_eq!(status, Some(7));
    assert!(!rest.contains("sshoal"), "nothing is added: {rest:?}");
}

#[test]
fn output_reaches_the_terminal_as_it_is() {
    let shoal = host();
    let mut screen = lent(&shoal, r"printf '\033[1mbold\007\n'; exit 0");
    screen.expect("\x1b[1mbold\x07\r\n");
    assert_eq!(screen.finish(), (Some(0), String::new()));
}

#[test]
fn the_terminal_is_given_back_however_the_run_ends() {
    let shoal = host();
    for (signal, status) in [
        (None, 0),
        (Some(Signal::INT), 130),
        (Some(Signal::HUP), 129),
        (Some(Signal::QUIT), 131),
        (Some(Signal::TERM), 143),
    ] {
        let mut screen = lent(&shoal, "echo ready; read line");
        let before = all(&screen.initial);
        screen.expect("ready");
        screen.wait_until_raw();
        assert_ne!(before, all(&screen.settings()));
        match signal {
            Some(signal) => kill_process(screen.pid(), signal).unwrap(),
            None => screen.type_in("\r"),
        }
        let mut after = String::new();
        wait_until("the terminal is given back", || {
            after = all(&screen.settings());
            after == before
        });
        assert_eq!(screen.finish().0, Some(status), "{signal:?}");
    }
}

#[test]
fn a_lost_connection_gives_the_terminal_back_and_is_told() {
    let shoal = host();
    let mut screen = lent(&shoal, "echo ready; read line; kill -9 $PPID");
    let before = all(&screen.initial);
    screen.expect("ready");
    screen.wait_until_raw();
    screen.type_in("\r");
    wait_until("the terminal is given back", || {
        all(&screen.settings()) == before
    });
    let (status, rest) = screen.finish();
    assert_eq!(status, Some(255));
    assert!(rest.contains("lost: "), "{rest}");
}

#[test]
fn where_the_server_gives_no_terminal_ours_stays_ours() {
    let mut spec = SshdSpec::new(1);
    spec.lines = vec!["PermitTTY no".to_owned()];
    let shoal = Shoal::real(&spec);
    let mut screen = lent(&shoal, "echo begun; sleep 600");
    screen.expect("PermitTTY");
    screen.expect("begun");
    let keys = LocalModes::ICANON | LocalModes::ISIG;
    assert!(screen.settings().local_modes.contains(keys));
    screen.type_in("\x03");
    assert_eq!(screen.finish().0, Some(130));
}

#[test]
fn until_the_command_has_started_the_terminal_is_ours() {
    let shoal = Shoal::simulated(1, &["0=silent-after-connect"]);
    let mut screen = Screen::start(&shoal.command(&["-t", "true"]), 30, 100);
    wait_until("it is connected", || shoal.hosts.totals().connections == 1);
    screen.type_in("\x03");
    let (status, shown) = screen.finish();
    assert_eq!(status, Some(130), "{shown}");
}

#[test]
fn a_host_that_cannot_be_reached_is_told_with_ssh_s_status() {
    let shoal = Shoal::simulated(2, &["0=refuse"]);
    let command = shoal.configured(&["-w", &shoal.name(0), "-t", "true"]);
    let screen = Screen::start(&command, 30, 100);
    let (status, shown) = screen.finish();
    assert_eq!(status, Some(255), "{shown}");
    assert!(shown.contains("refused"), "{shown}");
}

#[test]
fn without_a_terminal_of_ours_the_program_still_gets_one() {
    let shoal = host();
    let ended = shoal.run(&["-t", "tty >/dev/null && stty size"]).expect(0);
    assert_eq!(ended.stdout(), "24 80\r\n");
}

#[test]
fn what_one_terminal_cannot_do_is_refused() {
    let shoal = Shoal::simulated(2, &[]);
    shoal
        .run(&["-t", "true"])
        .expect(2)
        .says(&["-t is for one host; 2 were named"]);
    let mut both = shoal.shell("echo host | $RUN -f - -t true");
    Running::start(&mut both)
        .wait()
        .expect(2)
        .says(&["-f - and -t both read standard input"]);
    for other in ["--sudo", "--json", "--gather"] {
        shoal
            .run(&["-t", other, "true"])
            .expect(2)
            .says(&["--tty", other]);
    }
}
