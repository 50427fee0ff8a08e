//! `sshoal hosts`: on the command line and in pipes.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::process::Command;

use support::User;
use support::program::{Ended, Running};

fn hosts(user: &User, arguments: &[&str]) -> Command {
    let mut command = user.command(env!("CARGO_BIN_EXE_sshoal"));
    command.arg("hosts").args(arguments);
    command.env("PDSH_GENDERS_DIR", user.home());
    command
}

fn ended(user: &User, arguments: &[&str]) -> Ended {
    Running::start(&mut hosts(user, arguments)).wait()
}

#[track_caller]
fn said(user: &User, arguments: &[&str]) -> String {
    ended(user, arguments).expect(0).stdout()
}

/// What a line for /bin/sh prints.
#[track_caller]
fn piped(user: &User, line: &str) -> String {
    Running::start(&mut user.shell(line))
        .wait()
        .expect(0)
        .stdout()
}

#[test]
fn lists_are_expanded_folded_counted_and_split() {
    let user = User::new();
    let list = "web[3,1-2],root@db1:22!web2";
    assert_eq!(said(&user, &["expand", list]), "web3\nweb1\nroot@db1:22\n");
    assert_eq!(
        said(&user, &["expand", "-S", ", ", list]),
        "web3, web1, root@db1:22\n"
    );
    assert_eq!(said(&user, &["expand", "-S", "\\0", "a,b"]), "a\0b\n");
    assert_eq!(
        said(&user, &["fold", "web3", "web1,web2", "db1"]),
        "db1,web[1-3]\n"
    );
    assert_eq!(
        said(&user, &["fold", "n[008-010]", "-x", "n009"]),
        "n[008,010]\n"
    );
    assert_eq!(said(&user, &["count", "a[1-9]", "a[5-12]"]), "12\n");
    assert_eq!(
        said(&user, &["split", "-n", "3", "n[1-7]"]),
        "n[1-3]\nn[4-5]\nn[6-7]\n"
    );
    assert_eq!(said(&user, &["split", "-n", "9", "n[1-2]"]), "n1\nn2\n");
    assert_eq!(
        said(&user, &["expand", "-w", "a", "b", "--pick", "5"]),
        "a\nb\n"
    );
}

#[test]
fn hosts_go_through_pipes() {
    let user = User::new();
    assert_eq!(
        piped(
            &user,
            "printf 'web1 web2\\n# none\\nweb[3-4],db1 # or two\\n' | sshoal hosts fold"
        ),
        "db1,web[1-4]\n"
    );
    assert_eq!(
        piped(
            &user,
            "echo web2 | sshoal hosts expand 'web[1-3]' - | sshoal hosts expand -S ' ' - db1"
        ),
        "web1 web2 web3 db1\n"
    );
    let there_and_back =
        "sshoal hosts expand 'n[001-100,7]-[1-3]' | sshoal hosts fold | sshoal hosts count";
    assert_eq!(piped(&user, there_and_back), "303\n");
    let many = piped(
        &user,
        "seq -f n%06.0f 0 99999 | sort -R | sshoal hosts fold",
    );
    assert_eq!(many, "n[000000-099999]\n");
    assert_eq!(
        piped(&user, "sshoal hosts expand 'n[1-100000]' | tail -n 1"),
        "n100000\n"
    );
    // A reader that has seen enough is no error.
    piped(&user, "sshoal hosts expand 'n[1-100000]' | head -n 1");
}

#[test]
fn no_hosts_are_an_answer() {
    let user = User::new();
    assert_eq!(piped(&user, "sshoal hosts count </dev/null"), "0\n");
    assert_eq!(said(&user, &["count", "a", "-x", "a"]), "0\n");
    for action in ["expand", "fold"] {
        assert_eq!(said(&user, &[action, "a!a"]), "");
    }
    assert_eq!(said(&user, &["split", "-n", "2", ""]), "");
    assert_eq!(said(&user, &["expand", "--json", ""]), "[]\n");
    assert_eq!(said(&user, &["fold", "--json", ""]), "\"\"\n");
}

#[test]
fn json_can_be_read_back() {
    let user = User::new();
    let file = user.home().join("hosts");
    fs::write(&file, "a User=root HostName=10.0.0.1\nb:23\n").unwrap();
    let expected =
        r#"[{"host":"a","user":"root","options":{"HostName":"10.0.0.1"}},{"host":"b","port":23}]"#;
    let path = file.to_str().unwrap();
    let json = said(&user, &["expand", "--json", "-f", path]);
    assert_eq!(json.trim_end(), expected);
    fs::write(&file, &json).unwrap();
    assert_eq!(said(&user, &["expand", "--json", "-f", path]), json);
    assert_eq!(
        said(&user, &["split", "-n", "2", "--json", "n[1-3]"]),
        "[\"n[1-2]\",\"n3\"]\n"
    );
    assert_eq!(said(&user, &["count", "--json", "n[1-3]"]), "3\n");
}

#[test]
fn groups_are_listed_with_and_without_their_hosts() {
    let user = User::new();
    let folder = user.home().join(".config/clustershell");
    fs::create_dir_all(folder.join("groups.d")).unwrap();
    let conf = "[Main]\ndefault: racks\nautodir: $CFGDIR/groups.d\n";
    fs::write(folder.join("groups.conf"), conf).unwrap();
    let yaml = "racks:\n  r1: 'web[1-2]'\n  r2: 'web3'\nroles:\n  db: 'web2'\n";
    fs::write(folder.join("groups.d/all.yaml"), yaml).unwrap();
    assert_eq!(said(&user, &["list"]), "@r1\n@r2\n");
    assert_eq!(said(&user, &["list", "-m"]), "@r1 web[1-2]\n@r2 web3\n");
    assert_eq!(said(&user, &["list", "-s", "roles"]), "@roles:db\n");
    assert_eq!(said(&user, &["list", "web2"]), "@r1\n");
    assert_eq!(said(&user, &["list", "--json"]), "[\"@r1\",\"@r2\"]\n");
    assert_eq!(
        said(&user, &["list", "--json", "-m", "-s", "roles"]),
        "{\"@roles:db\":[\"web2\"]}\n"
    );
    assert_eq!(said(&user, &["fold", "@roles:db,@r2"]), "web[2-3]\n");
    ended(&user, &["list", "-s", "none"])
        .expect(2)
        .says(&["none", "racks, roles"]);
}

#[test]
fn a_list_that_is_too_long_is_refused_and_not_cut_off() {
    let user = User::new();
    let octets = 256 * 1024 * 1024 + 1;
    let line = format!("yes web1 | head -c {octets} | sshoal hosts count");
    let ended = Running::start(&mut user.shell(&line)).wait();
    assert_eq!(ended.stdout(), "");
    ended.expect(2).says(&["the host list - is larger than"]);
}

#[test]
fn what_is_wrong_is_said() {
    let user = User::new();
    ended(&user, &["expand", "web[1-"])
        .expect(2)
        .says(&["web[1-"]);
    ended(&user, &["split", "web1"])
        .expect(2)
        .says(&["--parts"]);
    ended(&user, &["split", "-n", "0", "web1"])
        .expect(2)
        .says(&["from 1 on"]);
    ended(&user, &["grow", "web1"])
        .expect(2)
        .says(&["grow", "expand"]);
}
