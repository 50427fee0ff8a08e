//! What bash completes, with the script of `sshoal completions bash`.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;

use support::User;
use support::program::Running;

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

/// Completes its first argument as bash does: words end where readline ends them.
const COMPLETE: &str = r#"
source <(sshoal completions bash)
COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9 COMP_KEY=9
COMP_WORDBREAKS=$' \t\n"\'@><=;|&(:'
read -ra COMP_WORDS <<<"$COMP_LINE"
[[ $COMP_LINE == *' ' ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_sshoal_names sshoal "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
"#;

fn user() -> User {
    let user = User::new();
    let home = user.home();
    fs::create_dir_all(home.join(".ssh")).unwrap();
    fs::create_dir_all(home.join(".config/clustershell/groups.d")).unwrap();
    let known = format!("web1,10.0.0.1 {KEY}\n[web2]:2222 {KEY}\n|1|aaaa|bbbb {KEY}\n");
    fs::write(home.join(".ssh/known_hosts"), known).unwrap();
    fs::write(home.join(".ssh/config"), "Host webmail db1 *.example\n").unwrap();
    let conf = "[Main]\ndefault: roles\nautodir: $CFGDIR/groups.d\n";
    fs::write(home.join(".config/clustershell/groups.conf"), conf).unwrap();
    let yaml = "roles:\n  web: a\n  worker: b\nracks:\n  r1: a\n";
    fs::write(home.join(".config/clustershell/groups.d/all.yaml"), yaml).unwrap();
    user
}

/// What bash is offered for a line.
#[track_caller]
fn offered(user: &User, line: &str) -> Vec<String> {
    let mut bash = user.command("bash");
    bash.args(["--norc", "-c", COMPLETE, "bash", line]);
    bash.env("PDSH_GENDERS_DIR", user.home());
    let ended = Running::start(&mut bash).wait().expect(0);
    let stdout = ended.stdout();
    stdout
        .lines()
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn hosts_are_completed_where_lists_stand() {
    let user = user();
    let all = ["web1", "web2:2222", "webmail"];
    for line in [
        "sshoal run -w we",
        "sshoal run --exclude we",
        "sshoal each -w a -x we",
        "sshoal explain we",
        "sshoal hosts fold we",
        "sshoal run -w 'we",
    ] {
        assert_eq!(offered(&user, line), all, "{line}");
    }
    // A list is one word for readline, what stands behind a colon or an at sign another.
    assert_eq!(
        offered(&user, "sshoal run -w db1,we"),
        all.map(|name| format!("db1,{name}"))
    );
    assert_eq!(offered(&user, "sshoal run -w root@we"), all);
    assert_eq!(offered(&user, "sshoal run --hosts=we"), all);
    assert_eq!(offered(&user, "sshoal run -w web2:2"), ["2222"]);
    assert_eq!(offered(&user, "sshoal run -w ").len(), 4);
    assert!(offered(&user, "sshoal run -w nosuch").is_empty());
}

#[test]
fn groups_are_completed_in_lists_and_by_themselves() {
    let user = user();
    assert_eq!(offered(&user, "sshoal run -w @w"), ["web", "worker"]);
    assert_eq!(offered(&user, "sshoal run -w @web,@wo"), ["worker"]);
    assert_eq!(offered(&user, "sshoal run -g w"), ["web", "worker"]);
    assert_eq!(offered(&user, "sshoal run -X racks:"), ["r1"]);
    assert_eq!(offered(&user, "sshoal run -w @racks:r"), ["r1"]);
}

#[test]
fn flags_and_commands_are_completed_as_before() {
    let user = user();
    assert_eq!(offered(&user, "sshoal run --inv"), ["--inventory"]);
    assert!(offered(&user, "sshoal exp").contains(&"explain".to_owned()));
    let commands = offered(&user, "sshoal ");
    assert!(commands.contains(&"hosts".to_owned()), "{commands:?}");
    assert!(
        !commands.contains(&"complete-hosts".to_owned()),
        "{commands:?}"
    );
}
