//! Ten thousand command lines under the library and under /bin/sh alone: the same output, the same status; and those made
//! of plain words skip the shell.
//!
//! How the shell is seen to be skipped: the lines run without a variable PWD, and a shell hands one on in any case. So
//! what is started can tell by itself (`probe.c`), and without the library all of it must say "shell".

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use support::{Programs, library, run, text};

const LINES: usize = 10_000;
/// Which of the possible ten thousand.
const SEED: u64 = 0x5ee0_5a11;

/// A line, and whether it is made of plain words that name one of the probes.
struct Line {
    text: String,
    is_plain: bool,
}

/// Random choices: xorshift64*.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % sides
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }
}

/// Names by which a probe is found: in the first and the second folder of PATH, behind a namesake that may not be
/// executed or is a folder, by relative and absolute paths.
const PROBES: &[&str] = &[
    "probe",
    "probe-2.x",
    "second",
    "./probe",
    "BIN/probe",
    "'probe'",
    "pro\"be\"",
];
const WORDS: &[&str] = &[
    "a",
    "-x",
    "--long=value",
    "a=b",
    "1",
    "/tmp/x",
    "a,b",
    "x:y",
    "u@h",
    "+5",
    "50%",
    "a^b",
    "-",
    "--",
    "0.5",
    "if",
    "exit",
    "err",
    "kill",
];
const QUOTED: &[&str] = &[
    "''",
    "\"\"",
    "'a b'",
    "\"a b\"",
    "'$HOME `x` \\ \"'",
    "\"it's; here | & > < * ? [a] ~ # !\"",
    "a'b c'd",
    "'tab\there'",
    "'two\nlines'",
    "'{a,b}'",
    "\"(x)\"",
    "'~'x",
];
/// What only a shell can do; `P` is a probe and `A` an argument.
const SHELL: &[&str] = &[
    "echo A A",
    "P A; P A",
    "P A && P A || P",
    "P $X A",
    "X=1 P A",
    "X=A; P $X",
    "P ~ A",
    "P * A",
    "P ?",
    "P [a-i]n",
    "P 'A",
    "P \"A",
    "P A > out; cat out",
    "cat < in",
    "P A 2>/dev/null",
    "P err A 2>&1",
    "exit 7",
    "exit A",
    "kill -TERM $$",
    "true",
    "false",
    "! P A",
    "test -d . A",
    "[ -d . ]",
    "if true; then P A; fi",
    "for x in A A; do P $x; done",
    "case A in a) P;; *) P A;; esac",
    "P A | cat",
    "(P A)",
    "{ P A; }",
    "P A \\ b",
    "P \\$X",
    "P \"a $X\"",
    "# P A",
    "P A # b",
    "cd sub && P A; pwd",
    ". ./script",
    "exec P A",
    "P A\nP",
    "P `P A`",
    "P $(P A)",
    "P $((1 + 2))",
    "P A &&",
    "missing-program A",
    "./missing A",
    "./data A",
    "./sub A",
    "./script A",
    "script-in-path A",
    "./no-interpreter A",
    "denied A",
    "folder A",
    "",
    " ",
    "\n",
    "'' A",
    "then",
    "A=",
    "A=A",
    "while",
    "printf %s A",
    "unset X; P A",
    "umask",
    "P é",
    "P exit A",
    "eval P A",
    "command P A",
    " -x A",
    "P\tA\n",
    "\n P A",
    "type P",
    "read x",
    "shift 9",
    "set -- A; P $1",
];
/// Thrown together without sense, to see what is made of it.
const SOUP: &[&str] = &[
    "P", "A", " ", " ", " ", "'", "\"", "\\", "$", "$X", "`", "*", "?", "~", "=", "#", ";", "(",
    ")", "{", "}", "!", "%", "\t", "\n", "a", "if", "fi", "é", "[", "]", "&&", "||", ">out", "<in",
    "2>&1", "\u{1}", "-",
];

fn lines(bin: &str) -> Vec<Line> {
    let mut dice = Dice(SEED);
    (0..LINES)
        .map(|_| {
            let is_plain = dice.roll(100) < 45;
            let text = match (is_plain, dice.roll(3)) {
                (true, _) => plain(&mut dice),
                (false, 0) => soup(&mut dice),
                (false, _) => dice.pick(SHELL).to_owned(),
            };
            let text = filled_in(&text, &mut dice).replace("BIN", bin);
            // Before glibc 2.38 a shell took a line that begins so for an option.
            let text = if text.starts_with(['-', '+']) {
                format!(" {text}")
            } else {
                text
            };
            Line { text, is_plain }
        })
        .collect()
}

/// Without a shell's own number, which is another each time, and without what runs at the same time as something else: a
/// backslash before an operator of two bytes leaves one.
fn soup(dice: &mut Dice) -> String {
    let mut text: String = (0..1 + dice.roll(9)).map(|_| dice.pick(SOUP)).collect();
    for odd in ["$$", "\\&&", "\\||"] {
        while text.contains(odd) {
            text = text.replace(odd, &odd[1..]);
        }
    }
    text
}

/// `P A A`, with blanks of all kinds between.
fn plain(dice: &mut Dice) -> String {
    let mut text = dice.pick(&["", "", "", " ", "\t", "\n"]).to_owned() + "P";
    if dice.roll(4) == 0 {
        text += dice.pick(&[" exit 3", " exit 255", " kill 15", " kill 9", " err x"]);
    }
    for _ in 0..dice.roll(6) {
        text += dice.pick(&[" ", " ", "  ", "\t", " \t "]);
        text += "A";
    }
    text + dice.pick(&["", "", "", " ", "\n", " \n"])
}

fn filled_in(text: &str, dice: &mut Dice) -> String {
    let fill = |character| match character {
        'P' => dice.pick(PROBES).to_owned(),
        'A' if dice.roll(2) == 0 => dice.pick(QUOTED).to_owned(),
        'A' => dice.pick(WORDS).to_owned(),
        other => String::from(other),
    };
    text.chars().map(fill).collect()
}

fn executable(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The folder in which the lines run, and the two folders of its PATH.
fn make_folder(folder: &Path, probe: &Path) {
    let [first, second, work] = ["bin", "bin2", "work"].map(|name| folder.join(name));
    for path in [
        &first,
        &second,
        &work,
        &first.join("folder"),
        &work.join("sub"),
    ] {
        fs::create_dir_all(path).unwrap();
    }
    for place in [
        first.join("probe"),
        first.join("probe-2.x"),
        second.join("second"),
        second.join("denied"),
        second.join("folder"),
        work.join("probe"),
    ] {
        symlink(probe, place).unwrap();
    }
    fs::write(first.join("denied"), "may not be executed").unwrap();
    executable(&first.join("script-in-path"), "echo \"script: $*\"\n");
    executable(&work.join("script"), "echo \"script: $*\"\n");
    executable(&work.join("no-interpreter"), "#!/no/such/interpreter\n");
    fs::write(work.join("data"), "no program").unwrap();
    fs::write(work.join("in"), "what is read\n").unwrap();
}

/// What `replay` writes, a piece a line, and who has started each line's probes.
struct Replayed {
    outputs: Vec<String>,
    starters: BTreeMap<usize, Vec<String>>,
}

fn replay(
    programs: &Programs,
    folder: &Path,
    lines: &[Line],
    preload: Option<PathBuf>,
) -> Replayed {
    make_folder(folder, &programs.folder().join("probe"));
    let file = folder.join("lines");
    let all: Vec<u8> = lines
        .iter()
        .flat_map(|line| [line.text.as_bytes(), b"\0"].concat())
        .collect();
    fs::write(&file, all).unwrap();
    let (evidence, output) = (folder.join("evidence"), folder.join("output"));
    let log = fs::File::create(&output).unwrap();
    let mut command = Command::new(programs.folder().join("replay"));
    command
        .arg(&file)
        .current_dir(folder.join("work"))
        .env_clear()
        .env(
            "PATH",
            format!("{0}/bin:{0}/bin2:/usr/bin:/bin", folder.display()),
        )
        .env("HOME", "/home/of/nobody")
        .env("EVIDENCE", &evidence)
        .envs(preload.map(|library| ("LD_PRELOAD", library)))
        .stdin(std::process::Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log);
    run(&mut command);

    let mut outputs = vec![String::new()];
    for line in text(&fs::read(&output).unwrap()).split_inclusive('\n') {
        outputs.last_mut().unwrap().push_str(line);
        if line.starts_with("== ") {
            outputs.push(String::new());
        }
    }
    let mut starters: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for entry in fs::read_to_string(&evidence).unwrap().lines() {
        let (line, starter) = entry.split_once(' ').unwrap();
        starters
            .entry(line.parse().unwrap())
            .or_default()
            .push(starter.to_owned());
    }
    Replayed { outputs, starters }
}

#[test]
fn ten_thousand_lines_do_the_same_as_under_the_shell_and_plain_ones_skip_it() {
    let programs = Programs::new();
    programs.build("probe", &["-static"]);
    programs.build("replay", &[]);
    // Both in a folder of the same path, so that all that is printed is the same.
    let folder = programs.folder().join("here");
    let lines = lines(&folder.join("bin").display().to_string());
    let by_shell = replay(&programs, &folder, &lines, None);
    fs::remove_dir_all(&folder).unwrap();
    let by_us = replay(&programs, &folder, &lines, Some(library()));

    assert_eq!(by_shell.outputs.len(), LINES + 1);
    let differ: Vec<String> = (0..LINES)
        .filter(|number| by_us.outputs[*number] != by_shell.outputs[*number])
        .map(|number| {
            let (wanted, found) = (&by_shell.outputs[number], &by_us.outputs[number]);
            format!(
                "{number}: {:?}: {wanted:?}, under the library {found:?}\n",
                lines[number].text
            )
        })
        .collect();
    assert!(differ.is_empty(), "{}", differ.concat());
    assert!(
        by_shell
            .starters
            .values()
            .flatten()
            .all(|starter| starter == "shell")
    );

    let skipped = |number: &usize| {
        by_us.starters[number]
            .iter()
            .all(|starter| starter == "direct")
    };
    let plain: Vec<usize> = (0..LINES)
        .filter(|number| lines[*number].is_plain)
        .collect();
    let (count, direct) = (
        plain.len(),
        plain.iter().filter(|number| skipped(number)).count(),
    );
    println!("{direct} of {count} plain lines skipped the shell");
    assert!(
        count > LINES / 3 && direct * 100 >= count * 95,
        "{direct} of {count}"
    );
}
