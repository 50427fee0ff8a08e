//! Which words are run for which host.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::Scene;

#[test]
fn words_are_filled_in_for_each_host_and_no_shell_sees_them() {
    let scene = Scene::new();
    let config = scene.marks.path().join("config");
    let text = "Host bmc*\n    HostName %h.mgmt\n    User admin\n    Port 623\n";
    fs::write(&config, text).unwrap();
    let hosts = ["-F", config.to_str().unwrap(), "-w", "bmc1,root@web2:2200"];
    let words = [
        "--",
        "printf",
        r"<%s>\n",
        "%h",
        "%u@%n:%p",
        "%%h",
        "a  b",
        "$HOME;`id`",
        "*",
        "",
    ];
    let ended = scene.run(&[&hosts[..], &words].concat()).expect(0);
    let lines =
        |label: &str, words: [&str; 7]| words.map(|word| format!("{label}: <{word}>\n")).concat();
    let (stdout, same) = (ended.stdout(), ["%h", "a  b", "$HOME;`id`", "*", ""]);
    let of = |host: &str| -> String {
        stdout
            .split_inclusive('\n')
            .filter(|line| line.starts_with(host))
            .collect()
    };
    let filled = |host, account| [host, account, same[0], same[1], same[2], same[3], same[4]];
    assert_eq!(
        of("bmc1: "),
        lines("bmc1", filled("bmc1.mgmt", "admin@bmc1:623"))
    );
    assert_eq!(
        of("web2: "),
        lines("web2", filled("web2", "root@web2:2200"))
    );
}

#[test]
fn the_user_comes_from_the_command_line_or_the_configuration() {
    let scene = Scene::new();
    let ended = scene
        .run(&["-w", "a", "-l", "root", "-o", "Port=17", "echo", "%u:%p"])
        .expect(0);
    assert_eq!(ended.stdout(), "a: root:17\n");
    // A name, which no blank, backslash or percent sign parts from the rest, as with ssh.
    for user in ["two words", "dom\\user", "a%b"] {
        let ended = scene.run(&["-w", "a", "-l", user, "echo", "%u"]).expect(0);
        assert_eq!(ended.stdout(), format!("a: {user}\n"));
    }
    let ended = scene.run(&["-w", "a", "-l", "a;b", "echo", "%u"]);
    ended.expect(2).says(&["\"a;b\" is not a user name"]);
}

#[test]
fn a_dry_run_says_what_a_shell_would_need_and_runs_nothing() {
    let scene = Scene::new();
    let ended = scene
        .run(&["-w", "a[1-2]", "--dry-run", "sh", "-c", "touch $MARKS/%h"])
        .expect(0);
    let expected = "a1: sh -c 'touch $MARKS/a1'\na2: sh -c 'touch $MARKS/a2'\n";
    assert_eq!(ended.stdout(), expected);
    assert!(scene.marks().is_empty());
}

#[test]
fn a_program_that_is_not_there_ends_the_run_before_it_has_begun() {
    let scene = Scene::new();
    let program = |name: &str, mode| {
        let path = scene.marks.path().join(name);
        fs::write(&path, "#!/bin/sh\ntouch $MARKS/mark\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let not_executable = program("plain", 0o644);
    let of_one_host = program("for-a1", 0o755).replace("a1", "%h");
    for (program, named) in [
        ("nonesuch", "nonesuch"),
        (&not_executable, "plain"),
        (&of_one_host, "for-a2"),
    ] {
        let ended = scene.run(&["-w", "a[1-2]", program]).expect(2);
        ended.says(&["no executable program", named, "on this machine"]);
    }
    assert_eq!(scene.marks(), ["for-a1", "plain"]);
}

#[test]
fn a_program_that_cannot_be_executed_fails_its_host_as_in_a_shell() {
    let scene = Scene::new();
    for (host, text) in [
        ("a1", "#!/no/such/interpreter\n"),
        ("a2", "\x01"),
        ("a3", "#!/bin/sh\nexit 0\n"),
    ] {
        let program = scene.marks.path().join(host);
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let program = format!("{}/%h", scene.marks.path().display());
    let ended = scene.run(&["-w", "a[1-3]", &program]).expect(1);
    ended.says(&[
        "1 of 3 hosts ok",
        "exit 127: a1",
        "exit 126: a2",
        "a1: sshoal: ",
        "No such file",
    ]);
}

#[test]
fn what_is_missing_is_said_with_what_to_type() {
    let scene = Scene::new();
    let example = "sshoal each -w 'bmc[1-40]' ipmitool -H %h power status";
    scene
        .run(&[])
        .expect(2)
        .says(&["neither hosts nor a command", example]);
    scene
        .run(&["-w", "a"])
        .expect(2)
        .says(&["no command was given", example]);
    scene
        .run(&["true"])
        .expect(2)
        .says(&["no hosts were named", "-w LIST"]);
}
