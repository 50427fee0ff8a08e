//! What commands read, and how what they write is shown: as with `sshoal run`.

use std::fs::{self, File};
use std::process::Stdio;

use serde_json::Value;

use crate::Scene;
use crate::support::program::Running;

/// Prints the host's name on one stream, and the same words on the other.
const BOTH: [&str; 3] = ["sh", "-c", "echo %h; echo same >&2"];

#[test]
fn lines_stand_behind_their_host_each_on_its_stream() {
    let scene = Scene::new();
    let ended = scene
        .run(&[&["-w", "a[1-3]", "-p", "1"], &BOTH[..]].concat())
        .expect(0);
    assert_eq!(ended.stdout(), "a1: a1\na2: a2\na3: a3\n");
    assert_eq!(ended.stderr(), "a1: same\na2: same\na3: same\n");
}

#[test]
fn gathered_compared_and_filed_as_of_a_run() {
    let scene = Scene::new();
    let gathered = scene
        .run(&[
            "-b",
            "-w",
            "a[1-9]",
            "sh",
            "-c",
            "test %h = a7 && echo odd || echo even",
        ])
        .expect(0);
    let rule = "-".repeat(15);
    let group = |names: &str, word: &str| format!("{rule}\n{names}\n{rule}\n{word}\n");
    assert_eq!(
        gathered.stdout(),
        group("a[1-6,8-9] (8)", "even") + &group("a7", "odd")
    );

    let different = scene
        .run(&[
            "--diff",
            "-w",
            "a[1-9]",
            "sh",
            "-c",
            "test %h = a7 && echo odd || echo even",
        ])
        .expect(0);
    assert!(
        different.stdout().contains("-even\n+odd\n"),
        "{}",
        different.stdout()
    );

    let outdir = scene.marks.path().join("out");
    scene
        .run(
            &[
                &["--outdir", outdir.to_str().unwrap(), "-w", "a[1-2]"],
                &BOTH[..],
            ]
            .concat(),
        )
        .expect(0);
    assert_eq!(fs::read_to_string(outdir.join("a2.out")).unwrap(), "a2\n");
    assert_eq!(fs::read_to_string(outdir.join("a1.err")).unwrap(), "same\n");
}

#[test]
fn objects_tell_of_the_command_and_of_no_login() {
    let scene = Scene::new();
    let ended = scene
        .run(&[
            "--json",
            "-w",
            "root@a:17",
            "sh",
            "-c",
            r"printf 'x\377'; exit 3",
        ])
        .expect(1);
    let stdout = ended.stdout();
    let objects: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let [host, summary] = &objects[..] else {
        panic!("{stdout}")
    };
    let members = [
        "host",
        "target",
        "user",
        "outcome",
        "failure",
        "fate",
        "stdout_base64",
    ];
    let found = members.map(|member| host[member].as_str().unwrap());
    assert_eq!(
        found,
        ["a", "root@a:17", "root", "exit", "exit", "ran", "eP8="]
    );
    assert_eq!(
        (host["port"].as_u64(), host["exit_status"].as_u64()),
        (Some(17), Some(3))
    );
    assert!(host["times_us"]["login"].is_null() && host["times_us"]["command"].is_u64());
    assert_eq!(
        (summary["exited"].as_u64(), summary["exit_status"].as_u64()),
        (Some(1), Some(1))
    );
}

#[test]
fn commands_read_nothing_unless_told_to() {
    let scene = Scene::new();
    let file = scene.marks.path().join("input");
    fs::write(&file, "one\ntwo\n").unwrap();
    let program = env!("CARGO_BIN_EXE_sshoal");
    let mut plain = scene
        .user
        .shell(&format!("{program} each -w 'a[1-3]' cat; cat"));
    plain.stdin(File::open(&file).unwrap());
    let ended = Running::start(&mut plain).wait().expect(0);
    assert_eq!(ended.stdout(), "one\ntwo\n", "only the last cat had any");

    let mut piped = scene.user.shell(&format!(
        "cat {0} | {program} each --stdin - -w 'a[1-2]' -p1 cat",
        file.display()
    ));
    let ended = Running::start(piped.stdin(Stdio::null())).wait().expect(0);
    assert_eq!(ended.stdout(), "a1: one\na1: two\na2: one\na2: two\n");

    let ended = scene
        .run(&["--stdin", file.to_str().unwrap(), "-w", "a1", "wc", "-c"])
        .expect(0);
    assert_eq!(ended.stdout(), "a1: 8\n");
}

#[test]
fn a_command_that_does_not_read_its_input_ends_all_the_same() {
    let scene = Scene::new();
    let file = scene.marks.path().join("input");
    File::create(&file).unwrap().set_len(100_000_000).unwrap();
    scene
        .run(&["--stdin", file.to_str().unwrap(), "-w", "a[1-4]", "true"])
        .expect(0);
    // A pipe that nobody ever writes to or closes.
    let (read, write) = std::io::pipe().unwrap();
    let mut command = scene.command(&["--stdin", "-", "-w", "a1", "true"]);
    Running::start(command.stdin(read)).wait().expect(0);
    drop(write);
}

#[test]
fn everything_that_is_written_arrives() {
    let scene = Scene::new();
    let ended = scene
        .run(&[
            "--json",
            "-w",
            "a[1-8]",
            "sh",
            "-c",
            "yes | head -c 3000000",
        ])
        .expect(0);
    for line in ended.stdout().lines().take(8) {
        let object: Value = serde_json::from_str(line).unwrap();
        assert_eq!(object["stdout"].as_str().unwrap().len(), 3_000_000);
    }
}
