//! Where ssh itself is wanted: `-S`, and flags that only ssh has.

use super::*;

/// An executable script for /bin/sh.
pub(super) fn write_script(path: &str, text: &str) {
    support::write_program(path, format!("#!/bin/sh\n{text}\n"));
}

#[test]
fn the_installed_ssh_reaches_hosts_with_users_and_ports() {
    let scene = Scene::new(1);
    let port = scene.shoal.hosts.addresses()[0].port();
    let line = format!("{}@{}:{port}", scene.user, scene.address(0));
    let flags = [
        "-S",
        "ssh",
        "-O",
        &format!("i{}", scene.shoal.file("id_ed25519")),
        "-O",
        "q",
        "-O",
        &format!("o UserKnownHostsFile={}", scene.shoal.file("known_hosts")),
    ]
    .map(str::to_owned);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let list = scene.list(&format!("{line}\n"));
    let ours = [
        "-d",
        "0",
        "-H",
        "-e",
        "-u",
        "nobody-else",
        "-O",
        "F none",
        "-f",
        &list,
    ];
    let command = "echo $USER; exit 4";
    let mut command = scene.plain(&[&ours[..], &flags, &[command]].concat());
    let ended = Running::start(&mut command).wait().expect(0);
    let user = &scene.user;
    assert_eq!(
        ended.stdout(),
        format!("{line} -> {user}\n{line} =: SSH exit code 4\n")
    );
}

#[test]
fn an_ssh_asks_nobody_even_where_there_is_a_terminal() {
    let scene = Scene::new(1);
    let list = scene.list(&format!("{}\n", scene.address(0)));
    let mut shell = scene.shoal.user.shell(
        "exec script -qec \"$MPSSH -S ssh -d 0 -H -u $U -O F$C -O 'o BatchMode=no' $ASKS -f $L true\" /dev/null",
    );
    shell
        .env("MPSSH", &scene.program)
        .env("U", &scene.user)
        .env("C", scene.config())
        .env("L", list)
        .env(
            "ASKS",
            "-O 'o StrictHostKeyChecking=ask' -O 'o UserKnownHostsFile=/dev/null'",
        );
    let ended = Running::start(&mut shell).wait().expect(0);
    let text = ended.stdout();
    assert!(text.contains("Host key verification failed."), "{text}");
    assert!(text.contains("SSH exit code 255"), "{text}");
}

#[test]
fn a_host_whose_configuration_requires_ssh_is_reached_by_it() {
    let scene = Scene::new(2);
    let config = scene.shoal.file("required");
    let usual = fs::read_to_string(scene.config()).unwrap();
    let required = "Host web1\n    PKCS11Provider /nonexistent/provider.so\n";
    fs::write(&config, format!("{required}{usual}")).unwrap();
    let list = scene.list("web1\nweb2\n");
    let config = format!("F{config}");
    let arguments = [
        "-d",
        "0",
        "-H",
        "-u",
        &scene.user,
        "-O",
        &config,
        "-f",
        &list,
    ];
    let mut command = scene.plain(&[&arguments[..], &["echo in; exit 3"]].concat());
    let text = Running::start(&mut command).wait().expect(0).stdout();
    let mut lines: Vec<&str> = text.lines().filter(|line| !line.contains("=>")).collect();
    lines.sort_unstable();
    let expected = [
        "web1 -> in",
        "web1 =: SSH exit code 3",
        "web2 -> in",
        "web2 =: SSH exit code 3",
    ];
    assert_eq!(lines, expected);
    let results = scene
        .shoal
        .user
        .home()
        .join(".local/state/sshoal/last-run.jsonl");
    let results = fs::read_to_string(results).unwrap();
    let by_ssh: Vec<&str> = results
        .lines()
        .filter(|line| line.contains("openssh"))
        .collect();
    assert!(by_ssh.len() == 1 && by_ssh[0].contains("web1"), "{results}");
}

#[test]
fn a_flag_that_only_ssh_has_starts_the_installed_one() {
    let scene = Scene::new(1);
    let programs = scene.shoal.dir.path().join("bin");
    fs::create_dir(&programs).unwrap();
    write_script(programs.join("ssh").to_str().unwrap(), "echo \"ssh $*\"");
    let path = std::env::var("PATH").unwrap();
    let list = scene.list("web1\n");
    let shown = |flag: &str| {
        let arguments = ["-d", "0", "-H", "-u", "me", "-O", flag, "-f", &list, "true"];
        let mut command = scene.plain(&arguments);
        command.env("PATH", format!("{}:{path}", programs.display()));
        Running::start(&mut command).wait().expect(0).stdout()
    };
    let words = "web1 -> ssh -o NumberOfPasswordPrompts=0";
    assert_eq!(shown("X"), format!("{words} -X me@web1 true\n"));
    assert_eq!(shown("L 1:a:1"), format!("{words} -L1:a:1 me@web1 true\n"));
    assert!(!shown("4").contains("-> ssh"));
}
