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
fn names_users_and_commands_steer_no_terminal_and_are_themselves_in_a_pipe() {
    // Of each kind: an escape, a C1 control, what turns text around, and a separator of lines.
    let odd = "\u{1b}[2J\u{7f}\u{9b}1m\u{202e}\u{2028}";
    let visible = r"\x1b[2J\x7f\u{9b}1m\u{202e}\u{2028}";
    // Control characters of ASCII are in no name that ssh takes.
    let (odd_name, visible_name) = ("\u{9b}1m\u{202e}\u{2028}", r"\u{9b}1m\u{202e}\u{2028}");
    let scene = Scene::new(1);
    let (user, line) = (format!("me{odd_name}"), format!("true {odd}"));
    let list = scene.list(&format!("web1\n%la{odd}bel\nx{odd_name}y\n"));
    let label = format!("la{odd}bel");
    let run = |on_terminal: bool| {
        let mpssh = "$MPSSH -S /bin/true -O q -v -e -p 1 -d 0 -u \\\"$U\\\" --label \\\"$LABEL\\\" -f $L \\\"$LINE\\\"";
        let mut shell = scene.shoal.user.shell(&match on_terminal {
            true => format!("exec script -qec \"{mpssh}\" /dev/null"),
            false => format!("eval \"{mpssh}\""),
        });
        shell
            .env("MPSSH", &scene.program)
            .env("U", &user)
            .env("LABEL", &label)
            .env("L", &list)
            .env("LINE", &line)
            .env("NO_COLOR", "1");
        Running::start(&mut shell).wait().expect(0).stdout()
    };
    let shown = |odd: &str, odd_name: &str| {
        let name = format!("x{odd_name}y");
        let header = header(2, 1, &format!("true {odd}"), &format!("me{odd_name}"));
        let ssh = "  [*] SSH binary : /bin/true\n  [*] SSH options: ['-o NumberOfPasswordPrompts=0', '-q']\n";
        let spawning = header.find("  [*] spawning").unwrap();
        let (begin, end) = header.split_at(spawning);
        let width = name.chars().count();
        let lines = ["web1", &name].map(|host| format!("{host:<width$} =: SSH exit code 0\n"));
        format!("{begin}{ssh}{end}{}{}", lines.concat(), closing(2, 0, 0))
    };
    assert_eq!(run(false), shown(odd, odd_name));
    let shown = shown(visible, visible_name);
    assert_eq!(run(true), shown.replace('\n', "\r\n"));
}

#[test]
fn what_is_said_beside_the_output_steers_no_terminal_either() {
    let scene = Scene::new(1);
    let odd = "no\u{1b}[2J\u{202e}such.invalid";
    let ended = scene.run(&format!("web1\n{odd}\n"), &["true"]);
    let ended = ended.expect(1).says(&[r"no\x1b[2J\u{202e}such.invalid"]);
    let told = ended.stderr();
    assert!(!told.contains(['\u{1b}', '\u{202e}']), "{told:?}");
    let list = scene.list("web1\n");
    let arguments = ["-f", &list, "-O", "o Po\u{1b}[2J\u{202e}rt=22", "true"];
    let told = Running::start(&mut scene.plain(&arguments))
        .wait()
        .expect(1)
        .stderr();
    assert!(!told.contains(['\u{1b}', '\u{202e}']), "{told:?}");
    assert!(told.contains(r"\x1b[2j\u{202e}"), "{told:?}");
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
