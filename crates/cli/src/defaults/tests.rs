#![allow(clippy::unwrap_used)]

use super::*;

fn inserted(text: &str) -> Result<Vec<String>, String> {
    let arguments = ["sshoal", "run", "-w", "a", "true"]
        .map(OsString::from)
        .to_vec();
    insert(arguments, Path::new("config.toml"), text)
        .map(|arguments| {
            arguments
                .into_iter()
                .map(|argument| argument.into_string().unwrap())
                .collect()
        })
        .map_err(|error| error.to_string())
}

#[test]
fn flags_stand_before_the_users_own() {
    let text = "[run]\nparallel = 5\ngather = true\nquiet = false\nexclude = [\"x\", \"y\"]\n[each]\ndiff = true\n";
    let expected = [
        "sshoal",
        "run",
        "--exclude=x",
        "--exclude=y",
        "--gather",
        "--parallel=5",
        "-w",
        "a",
        "true",
    ];
    let mut found = inserted(text).unwrap();
    found[2..6].sort();
    assert_eq!(found, expected);
}

#[test]
fn a_default_that_means_nothing_beside_a_value_stands_back() {
    let text = "[run]\nkill-grace = 9\n";
    let never = with(&["--kill-where", "never", "true"], text);
    assert_eq!(never, ["sshoal", "run", "--kill-where", "never", "true"]);
    let always = with(&["--kill-where=always", "true"], text);
    assert_eq!(always[2], "--kill-grace=9");
}

/// `sshoal run` with what was typed, and the defaults of that text.
fn with(typed: &[&str], text: &str) -> Vec<String> {
    let arguments = ["sshoal", "run"]
        .iter()
        .chain(typed)
        .map(OsString::from)
        .collect();
    let arguments = insert(arguments, Path::new("config.toml"), text).unwrap();
    let arguments = arguments.into_iter();
    arguments.map(|it| it.into_string().unwrap()).collect()
}

#[test]
fn a_default_stands_back_for_flags_it_does_not_go_with() {
    for (typed, default) in [
        ("--json", "gather"),
        ("-b", "json"),
        ("-t", "sudo"),
        ("--lines", "diff"),
        ("-v", "quiet"),
    ] {
        let text = format!("[run]\n{default} = true\n");
        assert_eq!(
            with(&[typed, "true"], &text),
            ["sshoal", "run", typed, "true"]
        );
        let flag = format!("--{default}");
        assert_eq!(
            with(&["true", typed], &text),
            ["sshoal", "run", &flag, "true", typed]
        );
    }
}

#[test]
fn ssh_options_stand_where_the_users_own_come_first() {
    let found = inserted("[run]\noption = \"Port=1\"\n").unwrap();
    assert_eq!(found[2], "--default-option=Port=1");
}

#[test]
fn what_is_wrong_is_refused_by_name() {
    for (text, words) in [
        ("[run\n", &["config.toml", "TOML"][..]),
        (
            "[run]\ngather = true\njson = true\n",
            &["config.toml: [run] json", "'--gather' cannot be used"],
        ),
        (
            "parallel = 1\n",
            &["parallel: there is no such table", "as in [run]"],
        ),
        ("[rnu]\n", &["rnu: there is no such table"]),
        ("[run.parallel]\nx = 1\n", &["[run] parallel", "a table"]),
        (
            "[run]\nbanana = 1\n",
            &["[run] banana: sshoal run has no flag --banana"],
        ),
        (
            "[run]\nparallel = 0\n",
            &["[run] parallel", "invalid value '0'", "from 1"],
        ),
        (
            "[run]\nhosts = \"a\"\n",
            &["[run] hosts: no default can be given"],
        ),
    ] {
        let error = inserted(text).unwrap_err();
        for word in words {
            assert!(error.contains(word), "{word:?} is missing: {error}");
        }
    }
}

#[test]
fn nothing_is_deleted_that_nobody_typed() {
    for command in ["put", "get"] {
        let arguments = ["sshoal", command, "-r", "-w", "a", "x", "y"];
        let arguments = arguments.map(OsString::from).to_vec();
        let text = format!("[{command}]\ndelete = true\n");
        let error = insert(arguments, Path::new("config.toml"), &text).unwrap_err();
        let said = format!("[{command}] delete: no default can be given");
        assert!(error.to_string().contains(&said), "{error}");
    }
}

#[test]
fn commands_without_flags_do_not_read_the_file() {
    let arguments = ["sshoal", "completions", "bash"]
        .map(OsString::from)
        .to_vec();
    let found = insert(arguments.clone(), Path::new("config.toml"), "broken").unwrap();
    assert_eq!(found, arguments);
}
