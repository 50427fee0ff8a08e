//! The words that dash and bash keep for themselves.

/// Builtins and reserved words of dash 0.5.12 and bash 5.3 together, in order. Those that are no plain command anyway,
/// such as `[` and `!`, are left out.
const KEPT: &[&str] = &[
    ".",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "case",
    "cd",
    "chdir",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "coproc",
    "declare",
    "dirs",
    "disown",
    "do",
    "done",
    "echo",
    "elif",
    "else",
    "enable",
    "esac",
    "eval",
    "exec",
    "exit",
    "export",
    "false",
    "fc",
    "fg",
    "fi",
    "for",
    "function",
    "getopts",
    "hash",
    "help",
    "history",
    "if",
    "in",
    "jobs",
    "kill",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "printf",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readonly",
    "return",
    "select",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "test",
    "then",
    "time",
    "times",
    "trap",
    "true",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "until",
    "wait",
    "while",
];

/// Whether a shell does not look for a program of this name, but knows it itself.
pub(crate) fn keeps_for_itself(command: &[u8]) -> bool {
    KEPT.binary_search_by(|kept| kept.as_bytes().cmp(command))
        .is_ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_list_is_in_order_without_doubles() {
        assert!(KEPT.windows(2).all(|pair| pair[0] < pair[1]));
    }

    fn output(shell: &str, text: &str) -> String {
        let ended = Command::new(shell).args(["-c", text]).output().unwrap();
        String::from_utf8(ended.stdout).unwrap()
    }

    #[test]
    fn bash_has_no_builtin_and_no_reserved_word_that_is_not_listed() {
        let names = output("bash", "compgen -b; compgen -k");
        assert!(names.lines().count() > 60, "{names}");
        let missing: Vec<&str> = names
            .lines()
            .filter(|name| crate::line::words(name.as_bytes()).is_ok())
            .collect();
        assert!(
            missing.is_empty(),
            "bash keeps them for itself: {missing:?}"
        );
    }

    #[test]
    fn dash_says_of_no_name_but_the_listed_ones_that_it_is_its_own() {
        // All its builtins are in its binary, as strings that end with a NUL.
        let binary = std::fs::read("/bin/dash").unwrap();
        let mut words: Vec<&str> = binary
            .split(|byte| *byte == 0)
            .filter(|word| (1..=10).contains(&word.len()))
            .filter(|word| word.iter().all(u8::is_ascii_lowercase) || **word == *b".")
            .map(|word| std::str::from_utf8(word).unwrap())
            .collect();
        words.sort_unstable();
        words.dedup();
        assert!(
            words.contains(&"getopts") && words.contains(&"chdir"),
            "{words:?}"
        );
        for word in words {
            let told = output("dash", &format!("type {word}"));
            let own = told.contains("shell builtin") || told.contains("shell keyword");
            assert!(!own || keeps_for_itself(word.as_bytes()), "{told}");
        }
    }
}
