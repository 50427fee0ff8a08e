//! `--script`: a local script on hosts with stock sshd.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;

use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::program::Ended;
use support::{Shoal, shared_folder};

struct Scene {
    shoal: Shoal<RealSshd>,
}

impl Scene {
    fn new() -> Scene {
        Scene {
            shoal: Shoal::real(&SshdSpec::new(1)),
        }
    }

    /// Runs a script, with these arguments before and behind its path.
    fn run(&self, script: &str, flags: &[&str], arguments: &[&str]) -> Ended {
        let path = self.shoal.file("deploy.x");
        fs::write(&path, script).unwrap();
        self.shoal
            .run(&[flags, &["--script", &path], arguments].concat())
    }

    /// What a script prints that ends well.
    fn prints(&self, script: &str, arguments: &[&str]) -> String {
        let ended = self.run(script, &["--json"], arguments).expect(0);
        ended.records().hosts[0].stdout.clone().unwrap()
    }
}

/// Whatever quoting, words and patterns might make of arguments.
const ARGUMENTS: [&str; 7] = ["--", "a  b", "", "it's", "\"$HOME\";`id`", "*", "-x\\n\n"];
const PRINTED: &str = "<a  b><><it's><\"$HOME\";`id`><*><-x\\n\n>";

#[test]
fn every_interpreter_gets_the_arguments_as_they_are() {
    let scene = Scene::new();
    for script in [
        "printf '<%s>' \"$@\"",
        "#!/bin/sh -eu\nprintf '<%s>' \"$@\"\n",
        "#!/usr/bin/env bash\nwords=(\"$@\")\nprintf '<%s>' \"${words[@]}\"\n",
        "#!/usr/bin/env python3\nimport sys\nprint(''.join(f'<{word}>' for word in sys.argv[1:]), end='')\n",
        "#!/usr/bin/perl -w\nuse strict;\nprint map { \"<$_>\" } @ARGV;\n",
    ] {
        assert_eq!(scene.prints(script, &ARGUMENTS), PRINTED, "{script}");
    }
}

#[test]
fn a_script_of_many_lines_arrives_to_the_byte() {
    let scene = Scene::new();
    let text: String = (' '..='~').chain("\t\n'äö☃'\"\\".chars()).collect();
    let script = format!("cat <<'END'\n{}END\n", format!("{text}\n").repeat(300));
    assert_eq!(scene.prints(&script, &[]), format!("{text}\n").repeat(300));
}

#[test]
fn its_status_is_the_command_s() {
    let scene = Scene::new();
    for script in [
        "#!/bin/sh\nexit 7\n",
        "#!/usr/bin/env python3\nimport sys\nsys.exit(7)\n",
    ] {
        scene.run(script, &["-S"], &[]).expect(7);
    }
    scene
        .run("#!/bin/sh -e\nfalse\necho not reached\n", &["-S"], &[])
        .expect(1);
}

#[test]
fn standard_input_stays_free() {
    let scene = Scene::new();
    let input = scene.shoal.file("input");
    fs::write(&input, "one\ntwo\n").unwrap();
    for script in [
        "#!/bin/sh\nread first; echo $first; cat\n",
        "#!/usr/bin/env python3\nprint(input())\nprint(input())\n",
    ] {
        let ended = scene
            .run(script, &["--json", "--stdin", &input], &[])
            .expect(0);
        assert_eq!(
            ended.records().hosts[0].stdout.as_deref(),
            Some("one\ntwo\n")
        );
        // And without it there is nothing to read.
        let nothing = scene.prints("#!/bin/sh\nwc -c\n", &[]);
        assert_eq!(nothing.trim(), "0");
    }
}

#[test]
fn nothing_is_left_behind_on_the_host() {
    let scene = Scene::new();
    let folder = shared_folder();
    // The script's own idea of where it is, and whatever is new where users may write.
    let script = "echo $0; touch \"$1/mark\"; \
        find ~ /tmp /var/tmp /dev/shm -newer \"$1/mark\" -user $(id -un) -type f 2>/dev/null; true";
    let printed = scene.prints(script, &[folder.path().to_str().unwrap()]);
    assert_eq!(printed, "deploy.x\n");
}

#[test]
fn places_are_filled_in_arguments_and_on_request_in_the_script() {
    let scene = Scene::new();
    let (host, user) = (scene.shoal.name(0), scene.shoal.hosts.user());
    let script = "echo \"%h:$1\"";
    assert_eq!(
        scene.prints(script, &["%u@%n"]),
        format!("%h:{user}@{host}\n")
    );
    let ended = scene
        .run(script, &["--json", "--literal"], &["%u@%n"])
        .expect(0);
    assert_eq!(
        ended.records().hosts[0].stdout.as_deref(),
        Some("%h:%u@%n\n")
    );
    let ended = scene
        .run(script, &["--json", "--fill-script"], &["%%u"])
        .expect(0);
    assert_eq!(
        ended.records().hosts[0].stdout,
        Some(format!("{host}:%u\n"))
    );
}

#[test]
fn what_no_shell_takes_is_refused_before_anything_is_run() {
    let scene = Scene::new();
    for (script, words) in [
        (
            "#!/usr/bin/awk -f\n",
            "wants the interpreter \"/usr/bin/awk -f\"",
        ),
        ("\x7fELF\0", "NUL octet"),
        (&"#".repeat(130_000), "longer than the"),
        (&"'".repeat(60_000), "longer than the"),
    ] {
        scene.run(script, &[], &[]).expect(2).says(&[words]);
    }
    assert_eq!(scene.shoal.hosts.logins(), 0);
    // As long as is allowed.
    let long = format!("#{}\necho arrived\n", "x".repeat(123_000));
    assert_eq!(scene.prints(&long, &[]), "arrived\n");
}

#[test]
fn a_dry_run_names_the_script_and_sends_nothing() {
    let scene = Scene::new();
    let ended = scene
        .run("echo x\n", &["--dry-run"], &["a b", "%h"])
        .expect(0);
    let (host, path) = (scene.shoal.name(0), scene.shoal.file("deploy.x"));
    let port = scene.shoal.hosts.addresses()[0].port();
    let user = scene.shoal.hosts.user();
    assert_eq!(
        ended.stdout(),
        format!("{host}: {user}@{host} port {port}: script {path} 'a b' {host}\n")
    );
    assert_eq!(scene.shoal.hosts.logins(), 0);
}
