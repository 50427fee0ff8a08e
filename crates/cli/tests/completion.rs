//! What bash, zsh and fish complete, with the scripts of `sshoal completions`: each shell itself is asked.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::PathBuf;

use support::program::Running;
use support::terminal::Screen;
use support::{User, wait_until};

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

/// Keys that complete, and that end a line; the start-up files below bind them.
const COMPLETE: &str = "\x18e";

/// Puts all that is offered into the line (insert-completions); the line then goes into a file, a word a line.
const BASH: &str = r#"
source <(sshoal completions bash)
sshoal() {
    if [[ $1 == complete-hosts ]]; then
        command sshoal "$@"
    else
        printf '%s\n' "$@" >~/words
        mv ~/words ~/offered
    fi
}
bind '"\C-xe": "\C-xi\C-m"' '"\C-xi": insert-completions'
PS1='ready> '
"#;

/// Lists what is offered (list-choices), and writes it down where zsh is told of it.
const ZSH: &str = r#"
fpath=(~/functions $fpath)
autoload -Uz compinit
compinit -u -D
: >~/words
compadd() {
    if [[ " ${@[1,(i)-(-|)]} " != *" -"[OAD]" "* ]]; then
        local -a hits
        builtin compadd -A hits "$@"
        (($#hits)) && print -rl -- $hits >>~/words
    fi
    builtin compadd "$@"
}
written() { mv ~/words ~/offered }
zle -N written
bindkey '^Xi' list-choices '^Xw' written
bindkey -s '^Xe' '^Xi^Xw'
unsetopt zle_bracketed_paste
PS1='ready> '
"#;

/// Somebody whose files name hosts and groups.
fn user() -> User {
    let user = User::new();
    let home = user.home();
    let write = |name: &str, content: &str| {
        let path = home.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    write(
        ".ssh/known_hosts",
        &format!("web1,10.0.0.1 {KEY}\n[web2]:2222 {KEY}\n|1|aaaa|bbbb {KEY}\n"),
    );
    write(".ssh/config", "Host webmail db1 *.example\n");
    write(
        ".config/clustershell/groups.conf",
        "[Main]\ndefault: roles\nautodir: $CFGDIR/groups.d\n",
    );
    write(
        ".config/clustershell/groups.d/all.yaml",
        "roles:\n  web: a\n  worker: b\nracks:\n  r1: a\n",
    );
    write(".bashrc", BASH);
    write(".zshrc", ZSH);
    for (shell, path) in [
        ("zsh", "functions/_sshoal"),
        ("fish", ".config/fish/completions/sshoal.fish"),
    ] {
        let script = Running::start(&mut user.shell(&format!("sshoal completions {shell}")));
        write(path, &script.wait().expect(0).stdout());
    }
    user
}

/// What an interactive shell wrote down of a line that was typed as far as this.
fn typed(user: &User, shell: &str, line: &str) -> Vec<String> {
    let mut command = user.command(shell);
    command.arg("-i").env("PDSH_GENDERS_DIR", user.home());
    let mut screen = Screen::start(&command, 30, 200);
    screen.expect("ready> ");
    screen.type_in(line);
    screen.type_in(COMPLETE);
    let path: PathBuf = user.home().join("offered");
    wait_until("the shell has completed", || path.exists());
    let offered = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    // The line editor's own keys: delete the line, leave.
    screen.type_in("\x15exit\r");
    assert_eq!(screen.finish().0, Some(0));
    offered.lines().map(str::to_owned).collect()
}

/// All words of a line as bash completes them.
fn bash(user: &User, line: &str) -> Vec<String> {
    typed(user, "bash", line)
}

/// What zsh offers for the last word.
fn zsh(user: &User, line: &str) -> Vec<String> {
    typed(user, "zsh", line)
}

/// What fish offers for the last word, without descriptions.
fn fish(user: &User, line: &str) -> Vec<String> {
    let mut fish = user.command("fish");
    fish.args(["--command", "complete --do-complete=$LINE"])
        .env("PDSH_GENDERS_DIR", user.home())
        .env("LINE", line);
    let ended = Running::start(&mut fish).wait().expect(0);
    let stdout = ended.stdout();
    let words = stdout.lines().map(|line| line.split('\t').next().unwrap());
    words.map(str::to_owned).collect()
}

const ALL: [&str; 3] = ["web1", "web2:2222", "webmail"];

/// Where lists of hosts stand, with all of them to be offered.
const HOST_LINES: [&str; 11] = [
    "sshoal run -w we",
    "sshoal run --exclude we",
    "sshoal each -w a -x we",
    "sshoal run -J we",
    "sshoal explain --jump we",
    "sshoal explain we",
    "sshoal explain --json we",
    "sshoal hosts fold we",
    "sshoal hosts fold --json we",
    "sshoal known-hosts lookup we",
    "sshoal known-hosts forget -f x we",
];

#[test]
fn bash_completes_hosts_where_lists_stand() {
    let user = user();
    for line in HOST_LINES {
        let words = bash(&user, line);
        assert_eq!(words[words.len() - 3..], ALL, "{line}");
    }
    // A list is one word for readline, what stands behind a colon, an at sign or an equals sign another.
    for (line, last) in [
        ("sshoal run -w db1,webm", "db1,webmail"),
        ("sshoal run -w root@webm", "root@webmail"),
        ("sshoal run -w db1,root@webm", "db1,root@webmail"),
        ("sshoal run --hosts=webm", "--hosts=webmail"),
        ("sshoal run --hosts webm", "webmail"),
        ("sshoal run -w web2:2", "web2:2222"),
        ("sshoal run -J db1,root@webm", "db1,root@webmail"),
        ("sshoal run --retry-failed auth-d", "auth-denied"),
        (
            "sshoal run --retry-failed=timeout,auth-d",
            "--retry-failed=timeout,auth-denied",
        ),
        ("sshoal run -w 'db1,webm", "db1,webmail"),
        ("sshoal run -w nosuch", "nosuch"),
        ("sshoal explain -F Carg", "Cargo.toml"),
        // These are patterns of files there.
        ("sshoal put --exclude webm", "webm"),
        ("sshoal get --exclude=webm", "--exclude=webm"),
        ("sshoal put --exclude-hosts webm", "webmail"),
        ("sshoal put -x webm", "webmail"),
        ("sshoal ciphers webm", "webmail"),
        ("sshoal why webm", "webmail"),
    ] {
        assert_eq!(bash(&user, line).last().unwrap(), last, "{line}");
    }
}

/// Lines that end where steps of a plan stand, and what is offered.
fn step_lines(user: &User) -> [(String, Vec<&'static str>); 5] {
    let plan = user.home().join("deploy.toml");
    fs::write(
        &plan,
        "[step.restart]\nrun = 'true'\n[step.reload]\nrun = 'true'\n[step.verify]\nrun = 'true'\n",
    )
    .unwrap();
    let plan = plan.to_str().unwrap();
    let line = |words: &str| format!("sshoal plan {}", words.replace("PLAN", plan));
    [
        (line("run PLAN --only re"), vec!["reload", "restart"]),
        (line("run PLAN --from=ver"), vec!["--from=verify"]),
        (line("run PLAN --from reload,re"), vec!["reload,restart"]),
        (line("explain PLAN ver"), vec!["verify"]),
        (
            line("explain --json PLAN restart re"),
            vec!["reload", "restart"],
        ),
    ]
}

#[test]
fn the_steps_of_a_plan_are_completed() {
    let user = user();
    for (line, offered) in step_lines(&user) {
        let words = bash(&user, &line);
        assert_eq!(words[words.len() - offered.len()..], offered, "{line}");
        let plain: Vec<&str> = offered
            .iter()
            .map(|it| it.trim_start_matches("--from="))
            .collect();
        assert_eq!(zsh(&user, &line), plain, "{line}");
        let in_fish = fish(&user, &line);
        assert!(
            offered
                .iter()
                .all(|it| in_fish.iter().any(|word| word == it)),
            "{line}: {in_fish:?}"
        );
    }
}

#[test]
fn bash_completes_groups_flags_and_commands() {
    let user = user();
    for (line, end) in [
        ("sshoal run -w @w", ["@web", "@worker"].as_slice()),
        ("sshoal run -w @web,@wo", &["@web,@worker"]),
        ("sshoal run -g w", &["web", "worker"]),
        ("sshoal run -X racks:", &["racks:r1"]),
        ("sshoal run -w @racks:r", &["@racks:r1"]),
        ("sshoal run --inv", &["run", "--inventory"]),
        ("sshoal exp", &["explain"]),
        ("sshoal hosts exp", &["hosts", "expand"]),
    ] {
        let words = bash(&user, line);
        let last = &words[words.len() - end.len()..];
        assert_eq!(last, end, "{line}");
    }
    let commands = bash(&user, "sshoal ");
    assert!(commands.contains(&"hosts".to_owned()), "{commands:?}");
    assert!(!commands.contains(&"complete-hosts".to_owned()));
}

#[test]
fn zsh_completes_hosts_groups_flags_and_commands() {
    let user = user();
    for line in HOST_LINES {
        assert_eq!(zsh(&user, line), ALL, "{line}");
    }
    check(
        &[
            ("sshoal run -w db1,webm", &["db1,webmail"]),
            ("sshoal run -w root@webm", &["root@webmail"]),
            ("sshoal run --hosts=we", &ALL),
            ("sshoal run -wwe", &ALL),
            ("sshoal run -w web2:2", &["web2:2222"]),
            ("sshoal run -J db1,root@webm", &["db1,root@webmail"]),
            ("sshoal run --retry-failed auth-d", &["auth-denied"]),
            ("sshoal run --retry-failed all,not", &["all,not-started"]),
            ("sshoal run -w 'we", &ALL),
            ("sshoal run -w nosuch", &[]),
            ("sshoal run -w @w", &["@web", "@worker"]),
            ("sshoal run -g w", &["web", "worker"]),
            ("sshoal run -X racks:", &["racks:r1"]),
            ("sshoal run --inv", &["--inventory"]),
            ("sshoal exp", &["explain"]),
            ("sshoal hosts exp", &["expand"]),
        ],
        |line| zsh(&user, line),
    );
}

#[test]
fn fish_completes_hosts_groups_flags_and_commands() {
    let user = user();
    for line in HOST_LINES {
        assert_eq!(fish(&user, line), ALL, "{line}");
    }
    check(
        &[
            ("sshoal run -w db1,webm", &["db1,webmail"]),
            ("sshoal run -w root@webm", &["root@webmail"]),
            ("sshoal run --hosts=webm", &["--hosts=webmail"]),
            ("sshoal run -wwebm", &["-wwebmail"]),
            ("sshoal run -w web2:2", &["web2:2222"]),
            ("sshoal run -J db1,root@webm", &["db1,root@webmail"]),
            ("sshoal run --retry-failed auth-d", &["auth-denied"]),
            ("sshoal run --retry-failed all,not", &["all,not-started"]),
            ("sshoal run -w 'we", &ALL),
            ("sshoal run -w nosuch", &[]),
            ("sshoal run -w @w", &["@web", "@worker"]),
            ("sshoal run -g w", &["web", "worker"]),
            ("sshoal run -X racks:", &["racks:r1"]),
            ("sshoal run --inv", &["--inventory"]),
            ("sshoal exp", &["explain"]),
            ("sshoal hosts exp", &["expand"]),
        ],
        |line| fish(&user, line),
    );
    assert!(!fish(&user, "sshoal ").contains(&"complete-hosts".to_owned()));
}

#[track_caller]
fn check(cases: &[(&str, &[&str])], offered: impl Fn(&str) -> Vec<String>) {
    for (line, expected) in cases {
        assert_eq!(&offered(line), expected, "{line}");
    }
}
