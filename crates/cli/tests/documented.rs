//! What is written about the program is true: flags, examples, links, manual pages, completions.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use sshoal_fleet::FailureKind;
use sshoal_testbed::sshd::key_files::{KeyType, generate};
use support::User;
use tempfile::TempDir;

/// Where the flags are explained, those of all commands in the first.
const RUN: &str = "docs/run.md";
const HOSTS: &str = "docs/hosts.md";
const EXPLAIN: &str = "docs/explain.md";
const MPSSH: &str = "docs/mpssh.md";
const PUT_GET: &str = "docs/put-get.md";
const CIPHERS: &str = "docs/ciphers.md";
const WHY: &str = "docs/why.md";
const WARM: &str = "docs/warm.md";
const RUNS: &str = "docs/runs.md";
const PLAN: &str = "docs/plan.md";
const KNOWN_HOSTS: &str = "docs/known-hosts.md";
const EXPLANATIONS: &[(&str, &str)] = &[
    ("hosts", HOSTS),
    ("explain", EXPLAIN),
    ("mpssh", MPSSH),
    ("put", PUT_GET),
    ("get", PUT_GET),
    ("ciphers", CIPHERS),
    ("why", WHY),
    ("runs", RUNS),
    ("show", RUNS),
    ("resume", RUNS),
    ("up", WARM),
    ("down", WARM),
    ("status", WARM),
];
/// Where the keys of the defaults file are.
const CONFIG: &str = "docs/config.md";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// `sshoal` with these arguments, which must succeed.
fn sshoal(arguments: &[&str]) -> String {
    let mut command = User::new().command(env!("CARGO_BIN_EXE_sshoal"));
    let output = command.args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// All commands, as `--help` lists them.
fn commands() -> Vec<String> {
    let help = sshoal(&["--help"]);
    let list = help.split("Commands:\n").nth(1).unwrap();
    let lines = list.lines().take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.split_whitespace().next());
    let names: Vec<String> = names.map(str::to_owned).collect();
    assert!(names.len() >= 4, "{names:?}");
    names
}

/// A command's flags, as its `--help` lists them: each a line that begins with one.
fn flags(command: &str) -> BTreeSet<String> {
    flags_of(&[command])
}

fn flags_of(command: &[&str]) -> BTreeSet<String> {
    let help = sshoal(&[command, &["--help"]].concat());
    let lines = help.lines().map(str::trim_start);
    let words = lines.filter(|line| line.starts_with('-')).flat_map(|line| {
        line.split_whitespace()
            .take_while(|word| word.starts_with('-'))
    });
    // A value that may be left out stands in brackets right behind its flag.
    let names = words.filter_map(|word| word.trim_end_matches([',', '.']).split('[').next());
    names.map(str::to_owned).collect()
}

fn all_flags() -> BTreeSet<String> {
    commands()
        .iter()
        .flat_map(|command| flags(command))
        .collect()
}

/// The text between backquotes, outside of fenced blocks.
fn spans(text: &str) -> Vec<String> {
    let outside = text.split("```").step_by(2);
    let spans = outside.flat_map(|part| part.split('`').skip(1).step_by(2));
    let words = |span: &str| span.split_whitespace().collect::<Vec<_>>().join(" ");
    spans.map(|span| words(span).replace("\\|", "|")).collect()
}

#[test]
fn every_flag_is_explained() {
    let explained = |file| {
        let spans = spans(&read(file));
        let flags = spans.iter().filter_map(|span| span.split(' ').next());
        flags.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let in_run = explained(RUN);
    for command in commands() {
        let own = EXPLANATIONS.iter().find(|(name, _)| *name == command);
        let (_, file) = own.unwrap_or(&("", RUN));
        let in_own = explained(file);
        for flag in flags(&command) {
            assert!(
                in_run.contains(&flag) || in_own.contains(&flag),
                "{file} does not explain {flag} of {command}"
            );
        }
    }
}

#[test]
fn every_flag_that_is_explained_exists() {
    let known = all_flags();
    let files = EXPLANATIONS.iter().map(|(_, file)| *file);
    for file in files.chain([RUN]) {
        let spans = spans(&read(file));
        for span in spans.iter().filter(|span| span.starts_with('-')) {
            let flag = span.split([' ', '=']).next().unwrap();
            // -vv is -v, twice; what other programs call theirs stands behind their names.
            let flag = if flag.starts_with("-vv") { "-v" } else { flag };
            assert!(
                flag == "-" || known.contains(flag),
                "{file} speaks of {span}"
            );
        }
    }
}

/// The flags of all commands below a command.
fn flags_below(command: &str) -> BTreeSet<String> {
    let help = sshoal(&[command, "--help"]);
    let list = help.split("Commands:\n").nth(1).unwrap();
    let lines = list.lines().take_while(|line| !line.is_empty());
    let commands: Vec<&str> = lines
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(commands.len() >= 3, "{commands:?}");
    let flags = |below: &&str| flags_of(&[command, below]);
    commands.iter().flat_map(flags).collect()
}

/// The flags that a page speaks of.
fn flags_in(file: &str) -> BTreeSet<String> {
    let spans = spans(&read(file));
    let words = spans.iter().filter_map(|span| span.split(' ').next());
    let flags = words.filter(|word| word.starts_with('-') && *word != "-");
    flags.map(str::to_owned).collect()
}

#[test]
fn the_flags_of_known_hosts_are_explained_and_exist() {
    let exist = flags_below("known-hosts");
    let explained = flags_in(KNOWN_HOSTS);
    assert_eq!(exist, explained, "left: --help, right: {KNOWN_HOSTS}");
}

#[test]
fn the_flags_of_plans_are_explained_and_exist() {
    let exist = flags_below("plan");
    let (explained, of_all) = (flags_in(PLAN), all_flags());
    for flag in exist.difference(&of_all) {
        assert!(explained.contains(flag), "{PLAN} does not explain {flag}");
    }
    for flag in &explained {
        let is_known = exist.contains(flag) || of_all.contains(flag);
        assert!(is_known, "{PLAN} speaks of {flag}");
    }
}

#[test]
fn every_key_of_the_defaults_file_is_listed() {
    let spans = spans(&read(CONFIG));
    for command in ["run", "each", "put", "get"] {
        for flag in flags(command) {
            let Some(key) = flag.strip_prefix("--") else {
                continue;
            };
            if !["help", "version"].contains(&key) {
                assert!(
                    spans.iter().any(|span| span == key),
                    "{CONFIG} does not list {key}"
                );
            }
        }
    }
}

#[test]
fn remedies_name_what_there_is() {
    let (flags, commands) = (all_flags(), commands());
    for remedy in FailureKind::all().map(FailureKind::remedy) {
        for span in spans(remedy) {
            let ours = span.strip_prefix("sshoal ");
            let command = ours.map(|words| words.split(' ').next().unwrap().to_owned());
            assert!(
                command.is_none_or(|name| commands.contains(&name)),
                "{remedy}"
            );
        }
        // Outside of backquotes a flag is one of ours.
        let outside: String = remedy.split('`').step_by(2).collect();
        let words = outside.split([' ', '(', ')', ',', ':']);
        for flag in words.filter(|word| word.starts_with('-')) {
            assert!(flags.contains(flag), "{flag}: {remedy}");
        }
    }
}

/// A folder in which the examples can be tried: nobody is connected to, and no other program does anything.
struct Desk {
    user: User,
    programs: TempDir,
}

/// Stands before sshoal: has runs shown only, and notes what was refused.
const SHOWN_ONLY: &str = r#"#!/bin/sh
command=$1; shift
case $command$1 in
    known-hostsfetch) set -- "$@" --help;;
    planrun) shift; set -- run --dry-run "$@";;
    run*|each*|put*|get*)
        # What would be deleted is seen only on the hosts.
        for word; do shift; [ "$word" = --delete ] || set -- "$@" "$word"; done
        set -- --dry-run "$@";;
    known-hosts*) cp "$HOME/colleague.known_hosts" "$HOME/.ssh/known_hosts";;
esac
"$SSHOAL" "$command" "$@" 2>"$HOME/said" || { cat "$HOME/said"; echo "$command $*"; } >>"$HOME/refused"
"#;

/// The same for `mpssh`.
const NOTHING_STARTED: &str = r#"#!/bin/sh
"$SSHOAL" mpssh "$@" -S /bin/true >/dev/null 2>"$HOME/said" || { cat "$HOME/said"; echo "mpssh $*"; } >>"$HOME/refused"
"#;

/// A line of known_hosts.
const WEB1: &str =
    "web1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB\n";
/// Every group that the examples name.
const GROUPS: &str = "[Main]\ndefault: some\n[some,racks,genders]\nmap: echo $GROUP[1-9]\nall: echo web[1-9] db1 db-db\nlist: echo web db\n";

/// Programs in the examples that are not everywhere, or had better not be run.
const OTHERS: &[&str] = &["tar", "zfs", "jq", "dshbak", "man"];

impl Desk {
    fn new() -> Desk {
        let desk = Desk {
            user: User::new(),
            programs: tempfile::tempdir().unwrap(),
        };
        let home = desk.user.home();
        for (name, text) in [
            ("hosts.txt", "web[1-9]\n"),
            ("hosts", "web[1-9]\n"),
            ("bmcs.txt", "bmc[1-9]\n"),
            ("check.sh", "#!/bin/sh\nexit 0\n"),
            ("motd", "Hello.\n"),
            ("disk.img", "an image\n"),
            ("fleet.conf", "Host *\n    User admin\n"),
            ("colleague.known_hosts", WEB1),
            ("inventory.ini", "[web]\nweb[1:9]\n"),
            (".config/clustershell/groups.conf", GROUPS),
        ] {
            let path = home.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir(home.join("site")).unwrap();
        let page = read(PLAN);
        let plan = page.split("```toml\n").nth(1).unwrap();
        let plan = plan.split("```").next().unwrap();
        fs::write(home.join("deploy.toml"), plan).unwrap();
        fs::create_dir(home.join(".ssh")).unwrap();
        generate(&home.join(".ssh/fleet"), KeyType::Ed25519, "").unwrap();
        // What --retry-failed finds: a port at which nobody listens.
        let mut run = desk.user.run(&["-F", "none", "-w", "127.0.0.1:1", "true"]);
        assert_eq!(run.output().unwrap().status.code(), Some(3));
        desk.program("sshoal", SHOWN_ONLY);
        desk.program("mpssh", NOTHING_STARTED);
        for name in OTHERS {
            desk.program(name, "#!/bin/sh\ncat >/dev/null\n");
        }
        desk
    }

    fn program(&self, name: &str, text: &str) {
        let path = self.programs.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Types the line; returns what sshoal refused.
    fn refusal(&self, line: &str) -> Option<String> {
        let path = std::env::var("PATH").unwrap();
        let mut shell = self.user.shell(line);
        let hosts = fs::File::open(self.user.home().join("hosts.txt")).unwrap();
        shell
            .stdin(hosts)
            .current_dir(self.user.home())
            .env("SSHOAL", env!("CARGO_BIN_EXE_sshoal"))
            .env("PDSH_GENDERS_DIR", self.user.home())
            .env("PATH", format!("{}:{path}", self.programs.path().display()));
        let output = shell.output().unwrap();
        let refused = self.user.home().join("refused");
        let text = fs::read_to_string(&refused).ok();
        if text.is_some() {
            fs::remove_file(refused).unwrap();
        }
        let failed = format!("{output:?}");
        text.or_else(|| (!output.status.success()).then_some(failed))
    }
}

/// Command lines with sshoal: in blocks of shell commands, behind a prompt, and between backquotes.
fn examples(text: &str) -> Vec<String> {
    let fenced = text.split("```").skip(1).step_by(2);
    let lines = fenced.flat_map(|block| {
        let prompt = if block.starts_with("sh\n") { "" } else { "$ " };
        block
            .lines()
            .filter_map(move |line| line.strip_prefix(prompt))
    });
    let lines: Vec<String> = lines.map(str::to_owned).collect();
    // Between backquotes the name is that of the other program.
    let of_mpssh = lines.iter().filter(|line| line.starts_with("mpssh "));
    let of_mpssh: Vec<String> = of_mpssh.cloned().collect();
    let all = lines.into_iter().chain(spans(text));
    let is_example = |line: &String| {
        let arguments = line
            .split_once("sshoal ")
            .map_or("", |(_, arguments)| arguments);
        [
            "run ",
            "each ",
            "put ",
            "get ",
            "hosts ",
            "explain ",
            "plan ",
            "known-hosts ",
            "man ",
            "completions ",
        ]
        .iter()
        .any(|command| arguments.starts_with(command))
    };
    all.filter(is_example).chain(of_mpssh).collect()
}

#[test]
fn every_example_is_understood() {
    let desk = Desk::new();
    let mut wrong = String::new();
    for file in documents() {
        for line in examples(&fs::read_to_string(&file).unwrap()) {
            if let Some(said) = desk.refusal(&line) {
                wrong.push_str(&format!("{}: {line}\n{said}\n", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn an_example_with_a_mistake_would_be_noticed() {
    let desk = Desk::new();
    let refused = desk
        .refusal("sshoal run -w web1 --jsn true | jq .")
        .unwrap();
    assert!(refused.contains("--jsn"), "{refused}");
    let refused = desk.refusal("mpssh -f hosts.txt --jsn true").unwrap();
    assert!(refused.contains("--jsn"), "{refused}");
    assert!(
        desk.refusal("nosuchprogram | sshoal run -w web1 true")
            .is_none()
    );
    assert!(desk.refusal("sshoal run -w web1 true").is_none());
}

/// All Markdown files of the repository.
fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                folders.push(path);
            } else if path.extension() == Some(OsStr::new("md")) {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 8, "{found:?}");
    found
}

/// What a heading is called in a link, as the usual renderers have it.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let name: String = heading.trim().to_lowercase().chars().filter(kept).collect();
    name.replace(' ', "-")
}

#[test]
fn every_link_leads_somewhere() {
    let mut wrong = Vec::new();
    for file in documents() {
        let text = fs::read_to_string(&file).unwrap();
        let outside: String = text.split("```").step_by(2).collect();
        for link in outside.split("](").skip(1) {
            let link = link.split(')').next().unwrap();
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => file.clone(),
                path => file.parent().unwrap().join(path),
            };
            let has_heading = || {
                let text = fs::read_to_string(&target).unwrap_or_default();
                let headings = text.lines().filter(|line| line.starts_with('#'));
                headings
                    .map(|line| anchor(line.trim_start_matches('#')))
                    .any(|name| name == heading)
            };
            if !target.exists() || !(heading.is_empty() || has_heading()) {
                wrong.push(format!("{}: {link}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A program that reads `text`; `None` if it is not installed.
fn fed(program: &str, arguments: &[&str], text: &str) -> Option<Output> {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().ok()?;
    let mut stdin = child.stdin.take().unwrap();
    let text = text.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    Some(output)
}

#[test]
fn manual_pages_have_all_flags_and_render_without_warnings() {
    let mut pages = vec![(BTreeSet::new(), sshoal(&["man"]))];
    for command in commands() {
        pages.push((flags(&command), sshoal(&["man", &command])));
    }
    for (flags, page) in pages {
        assert!(page.contains(".SH NAME"), "{page}");
        for flag in flags {
            let escaped = flag.replace('-', "\\-");
            assert!(page.contains(&escaped), "{flag} is missing: {page}");
        }
        for (program, arguments) in [
            ("groff", ["-man", "-ww", "-z", "-Tutf8"].as_slice()),
            ("mandoc", &["-Tlint", "-Wwarning"]),
        ] {
            if let Some(output) = fed(program, arguments, &page) {
                assert!(
                    output.status.success() && output.stderr.is_empty(),
                    "{program}: {output:?}"
                );
            }
        }
    }
}

#[test]
fn completions_know_all_flags_and_parse() {
    let of_both = ["bash", "zsh", "fish"].map(|shell| {
        let scripts = |program, flags| (shell, sshoal(&["completions", shell, program]), flags);
        [
            scripts("sshoal", all_flags()),
            scripts("mpssh", flags("mpssh")),
        ]
    });
    for (shell, text, flags) in of_both.into_iter().flatten() {
        for flag in flags {
            // fish has flags without their dashes.
            let name = if shell == "fish" {
                flag.trim_start_matches('-')
            } else {
                &flag
            };
            assert!(text.contains(name), "{shell}: {flag} is missing");
        }
        // Absent shells cannot be asked; bash is there wherever the scripts of this repository run.
        let output = fed(shell, &["-n"], &text);
        assert!(output.is_some() || shell != "bash");
        if let Some(output) = output {
            assert!(
                output.status.success() && output.stderr.is_empty(),
                "{shell}: {output:?}"
            );
        }
    }
}

#[test]
fn every_keyword_of_ssh_config_stands_in_one_table_with_what_a_run_does_with_it() {
    let text = read(CONFIG);
    let section = text.split("\n## ssh_config\n").nth(1).unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| "));
    let cells = rows.filter_map(|row| row.split(" | ").next());
    let names = cells.filter(|cell| !matches!(*cell, "keywords" | "---"));
    let names: Vec<String> = names
        .flat_map(|cell| cell.split(", "))
        .map(str::to_ascii_lowercase)
        .collect();
    let mut known: Vec<&str> = sshoal_ssh_config::keywords().collect();
    let mut written: Vec<&str> = names.iter().map(String::as_str).collect();
    known.sort_unstable();
    written.sort_unstable();
    assert_eq!(written, known);
}
