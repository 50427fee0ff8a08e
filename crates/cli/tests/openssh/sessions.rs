//! What a session by ssh has besides: a ControlMaster, a password, the agent, sudo, a terminal, a proxy.

use std::fs;
use std::path::Path;
use std::process::Command;

use sshoal_testbed::sshd::SshdSpec;
use sshoal_testbed::sshd::account::password_account;

use crate::agent_process::Agent;
use crate::by_ssh;
use crate::support::program::Running;
use crate::support::terminal::Screen;
use crate::support::{Shoal, wait_until, write_program};

#[test]
fn a_master_that_is_there_is_used_and_one_that_persists_is_left_running() {
    let shoal = Shoal::real(&SshdSpec::new(2));
    let folder = tempfile::tempdir().unwrap();
    let socket = format!("ControlPath={}/%h", folder.path().display());
    let persist = [
        "-o",
        &socket,
        "-o",
        "ControlMaster=auto",
        "-o",
        "ControlPersist=60",
    ];
    let logins = || {
        (0..2)
            .map(|host| shoal.hosts.log(host).matches("Accepted publickey").count())
            .sum::<usize>()
    };
    shoal
        .run(&by_ssh(&[&persist[..], &["true"]].concat()))
        .expect(0);
    assert_eq!(logins(), 2);
    let records = shoal
        .run(&by_ssh(
            &[&["-o", &socket], &["--json", "echo hi; exit 3"][..]].concat(),
        ))
        .expect(1)
        .records();
    assert_eq!(logins(), 2, "the second run has logged in nowhere");
    for record in &records.hosts {
        assert_eq!(record.stdout.as_deref(), Some("hi\n"));
        assert_eq!((record.failure(), record.fate.as_str()), ("exit", "ran"));
    }
    for host in 0..2 {
        let name = shoal.name(host);
        let socket = folder.path().join(&name);
        let exit = Command::new("ssh")
            .args(["-F", &shoal.file("ssh_config"), "-O", "exit", "-S"])
            .arg(&socket)
            .arg(&name)
            .output();
        assert!(exit.unwrap().status.success(), "a master was left running");
        wait_until("the master is gone", || !socket.exists());
    }
}

/// A program that answers what sshoal asks, and notes the question.
fn asker(folder: &Path, answer: &str) -> String {
    let path = folder.join("asker");
    let asked = folder.join("asked");
    let text = format!(
        "#!/bin/sh\necho \"$1\" >> {}\necho '{answer}'\n",
        asked.display()
    );
    write_program(&path, text);
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_password_is_asked_for_once_and_tried_once_a_host() {
    let account = password_account().unwrap();
    for (pam, right) in [(false, true), (false, false), (true, true)] {
        let spec = SshdSpec::new(2);
        let shoal = Shoal::real(&match pam {
            true => spec
                .line("UsePAM yes")
                .line("KbdInteractiveAuthentication yes")
                .line("PasswordAuthentication no"),
            false => spec,
        });
        let folder = tempfile::tempdir().unwrap();
        let answer = if right { &account.password } else { "wrong" };
        let login = [
            "-l",
            &account.name,
            "-o",
            "BatchMode=no",
            "-o",
            "PubkeyAuthentication=no",
        ];
        let arguments = [&login[..], &["--ask-pass", "--json", "id -un"]].concat();
        let mut command = shoal.command(&by_ssh(&arguments));
        command
            .env("SSH_ASKPASS", asker(folder.path(), answer))
            .env("SSH_ASKPASS_REQUIRE", "force");
        let ended = Running::start(&mut command).wait();
        let asked = fs::read_to_string(folder.path().join("asked")).unwrap();
        assert_eq!(asked, "Password for 2 hosts: \n");
        let records = ended.expect(if right { 0 } else { 3 }).records();
        for record in &records.hosts {
            match right {
                true => assert_eq!(
                    record.stdout.as_deref(),
                    Some(format!("{}\n", account.name).as_str())
                ),
                false => assert_eq!(record.failure(), "auth-denied", "{record:?}"),
            }
        }
        if !right {
            // sshd writes its log behind the client's back.
            shoal.wait_for_sessions();
            let log = shoal.hosts.log(0);
            assert_eq!(log.matches("Failed password").count(), 1, "{log}");
        }
    }
}

#[test]
fn a_password_is_not_for_hosts_on_the_way_nor_for_other_questions() {
    let shoal = Shoal::real(&SshdSpec::new(2));
    let folder = tempfile::tempdir().unwrap();
    let asker = asker(folder.path(), "secret");
    let gate = shoal.name(0);
    let mut command = shoal.configured(&by_ssh(&[
        "-w",
        &shoal.name(1),
        "-J",
        &gate,
        "-o",
        "BatchMode=no",
        "--ask-pass",
        "true",
    ]));
    command
        .env("SSH_ASKPASS", &asker)
        .env("SSH_ASKPASS_REQUIRE", "force");
    let ended = Running::start(&mut command).wait().expect(2);
    let said = ended.stderr();
    assert!(
        said.contains(&shoal.name(1)) && said.contains("jump host"),
        "{said}"
    );
    assert!(
        !folder.path().join("asked").exists(),
        "nobody was asked in vain"
    );

    // A key with a passphrase: ssh may not ask for it, neither here nor on a terminal.
    let locked = Command::new("ssh-keygen")
        .args([
            "-q",
            "-p",
            "-P",
            "",
            "-N",
            "passphrase",
            "-f",
            &shoal.file("id_ed25519"),
        ])
        .output();
    assert!(locked.unwrap().status.success());
    let line = shoal.command(&by_ssh(&["-o", "BatchMode=no", "--json", "true"]));
    let screen = Screen::start(&line, 24, 80);
    let (status, shown) = screen.finish();
    assert_eq!(status, Some(3), "{shown}");
    assert!(!shown.contains("passphrase for"), "{shown}");
    assert!(shown.contains("auth-denied"), "{shown}");
}

#[test]
fn the_account_s_terminal_is_lent_and_its_status_is_ours() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let line = "stty size; read word; echo \"<$word>\"; exit 7";
    let mut screen = Screen::start(&shoal.command(&by_ssh(&["-t", line])), 30, 100);
    screen.expect("30 100");
    screen.type_in("fish\r");
    screen.expect("<fish>");
    let (status, rest) = screen.finish();
    assert_eq!(status, Some(7), "{rest}");
}

#[test]
fn a_proxy_is_started_by_ssh_and_its_words_are_told() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let relay = shoal.file("relay");
    fs::write(
        &relay,
        "echo by way of >&2\nexec 3<>/dev/tcp/$1/$2 || exit 1\ncat <&3 &\nexec cat >&3\n",
    )
    .unwrap();
    let proxy = format!("ProxyCommand=bash {relay} %h %p");
    let ended = shoal
        .run(&by_ssh(&["-o", &proxy, "--json", "echo hi"]))
        .expect(0);
    assert!(
        ended.stderr().contains("on the way: by way of"),
        "{}",
        ended.stderr()
    );
    let record = ended.records().hosts.remove(0);
    assert_eq!(record.stdout.as_deref(), Some("hi\n"));
    assert_eq!(record.stderr.as_deref(), Some(""));
}

#[test]
fn the_agent_is_forwarded_where_it_is_asked_for() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    shoal
        .run(&by_ssh(&["test -z \"$SSH_AUTH_SOCK\""]))
        .expect(0);
    let agent = Agent::holding(&[Path::new(&shoal.file("id_ed25519"))]);
    let mut command = shoal.command(&by_ssh(&["-A", "ssh-add -l"]));
    command.env("SSH_AUTH_SOCK", agent.socket());
    Running::start(&mut command).wait().expect(0);
}
