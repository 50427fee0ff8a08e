//! How a run ends that does not go its course, and what terminals get.

use std::io::{BufRead, BufReader, Read};
use std::process::{ChildStdout, Stdio};

use super::*;
use crate::support::{shared_folder, wait_until};

#[test]
fn an_interrupt_ends_the_run_with_one() {
    let scene = Scene::new(2);
    let marks = shared_folder();
    let mark = marks.path().join("begun");
    let line = format!("touch {}; exec sleep 3600", mark.display());
    let mut command = scene.command("web1\nweb2\n", &["-p", "1", &line]);
    let running = Running::start(&mut command);
    wait_until("the command runs", || mark.exists());
    running.interrupt();
    let ended = running
        .wait()
        .expect(1)
        .says(&["interrupted", "1 of 2 hosts"]);
    let text = ended.stdout();
    let lines = text
        .strip_prefix(&header(2, 1, &line, &scene.user))
        .unwrap();
    assert_eq!(lines, "web1 =: SSH exit code 255 (possible SSH failure)\n");
}

#[test]
fn who_has_read_enough_ends_it_quietly() {
    let scene = Scene::new(1);
    let read = |stdout: ChildStdout| {
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        line.into_bytes()
    };
    let mut command = scene.command("web1\n", &["-H", "while :; do echo more; done"]);
    let ended = Running::start_read_by(&mut command, read)
        .wait()
        .expect(141);
    assert_eq!(
        (ended.stdout().as_str(), ended.stderr().as_str()),
        ("web1 -> more\n", "")
    );
}

#[test]
fn results_are_kept_for_another_try() {
    let scene = Scene::new(1);
    scene.run("web1\nrefused\n", &["true"]).expect(0);
    let mut retry = scene
        .shoal
        .user
        .run(&["--retry-failed", "refused", "--dry-run", "x"]);
    let shown = Running::start(&mut retry).wait().expect(0).stdout();
    assert!(shown.starts_with("refused: "), "{shown}");
}

#[test]
fn a_terminal_gets_colours_and_no_control_characters() {
    let scene = Scene::new(1);
    let list = scene.list("web1\n");
    let mut shell = scene
        .shoal
        .user
        .shell("exec script -qec \"$MPSSH -b -e -d 0 -H -u $U -O F$C -f $L '$LINE'\" /dev/null");
    shell
        .env("MPSSH", &scene.program)
        .env("U", &scene.user)
        .env("C", scene.config())
        .env("L", list)
        .env("TERM", "xterm")
        .env("LINE", r"printf %b a\\033[2Jb; echo err >&2");
    let ended = Running::start(&mut shell).wait().expect(0);
    let green = |sign: &str| format!("\x1b[1;32m{sign}\x1b[0;39m");
    let expected = format!(
        "web1 {} a\\x1b[2Jb\r\nweb1 \x1b[1;31m=>\x1b[0;39m err\r\nweb1 {} SSH exit code 0\r\n",
        green("->"),
        green("=:")
    );
    assert_eq!(ended.stdout(), expected);
}

#[test]
fn a_slow_host_keeps_nobody_waiting_and_pauses_are_kept() {
    let scene = Scene::new(2);
    let marks = shared_folder();
    let mark = marks.path().join("go-on");
    let line = format!(
        "case $SSH_CONNECTION in *' {} '*) while [ ! -e {} ]; do sleep 0.1; done;; esac; echo done",
        scene.address(0),
        mark.display()
    );
    let mut command = scene.command("web1\nweb2\nweb2\n", &["-H", "-p", "2", "-d", "20", &line]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for _ in 0..2 {
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "web2 -> done\n");
    }
    fs::write(&mark, "").unwrap();
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "web1 -> done\n");
    assert!(child.wait().unwrap().success());
}
