//! Programs that other people have built: they import popen and system, and do their work under the library.

#![allow(clippy::unwrap_used)]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use support::{Programs, library, run, text};

/// Which of our functions a program, or a library of its own, imports.
fn imports(program: &str) -> Vec<String> {
    let path = found(program);
    let libraries = text(&run(Command::new("ldd").arg(&path)).stdout);
    let own = libraries
        .split_whitespace()
        .filter(|word| word.starts_with('/') && word.contains(program))
        .map(PathBuf::from);
    let mut imported = Vec::new();
    for file in own.chain([path.clone()]) {
        let names = text(
            &run(Command::new("nm")
                .args(["-D", "--undefined-only"])
                .arg(file))
            .stdout,
        );
        let names = names
            .split_whitespace()
            .map(|name| name.split('@').next().unwrap_or(name));
        imported.extend(
            names
                .filter(|name| ["popen", "pclose", "system"].contains(name))
                .map(str::to_owned),
        );
    }
    imported.sort();
    imported.dedup();
    imported
}

fn found(program: &str) -> PathBuf {
    ["/usr/bin", "/bin"]
        .map(|folder| Path::new(folder).join(program))
        .into_iter()
        .find(|path| path.exists())
        .unwrap_or_else(|| panic!("{program}: make setup installs it"))
}

/// What the program prints, with the probe as its `command` and without PWD.
fn output(programs: &Programs, words: &[&str], preload: bool) -> (String, String) {
    let evidence = programs.folder().join("evidence");
    let _ = std::fs::remove_file(&evidence);
    let mut command = Command::new(found(words[0]));
    command
        .args(&words[1..])
        .env_remove("PWD")
        .env("EVIDENCE", &evidence)
        .env("LINE", "0")
        .env("PROBE", programs.folder().join("probe"));
    if preload {
        command.env("LD_PRELOAD", library());
    }
    let printed = text(&run(&mut command).stdout);
    (printed, std::fs::read_to_string(evidence).unwrap())
}

const AWK: &str = r#"BEGIN {
    probe = ENVIRON["PROBE"]
    print "status", system(probe " exit 3")
    print "written" | "cat"
    close("cat")
    print "shell", system("exit 4; " probe)
    print "last", system(probe " a 'b c'")
}"#;
const LUA: &str = r#"
    local probe = os.getenv("PROBE")
    print(os.execute(probe .. " exit 3"))
    local stream = io.popen(probe .. " a 'b c'")
    print(stream:read("a"))
    print(stream:close())
    local writer = io.popen("cat", "w")
    writer:write("written\n")
    print(writer:close())
    print(os.execute("exit 4"))
"#;

#[test]
fn gawk_lua_and_busybox_import_popen_and_system_and_work_the_same_without_the_shell() {
    let programs = Programs::new();
    programs.build("probe", &["-static"]);
    for (words, wanted) in [
        (vec!["gawk", AWK], ["popen", "system"]),
        (vec!["lua5.4", "-e", LUA], ["popen", "system"]),
        (vec!["busybox", "awk", AWK], ["popen", "system"]),
    ] {
        let imported = imports(words[0]);
        assert!(
            wanted
                .iter()
                .all(|name| imported.iter().any(|found| found == name)),
            "{}: {imported:?}",
            words[0]
        );
        let (alone, by_shell) = output(&programs, &words, false);
        let (preloaded, by_us) = output(&programs, &words, true);
        assert_eq!(preloaded, alone, "{}", words[0]);
        assert!(alone.contains("[a][b c]"), "{alone}");
        assert!(
            by_shell.lines().all(|line| line == "0 shell"),
            "{}: {by_shell}",
            words[0]
        );
        assert!(
            by_us.lines().all(|line| line == "0 direct"),
            "{}: {by_us}",
            words[0]
        );
    }
}
