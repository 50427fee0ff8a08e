#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

fn texts(line: &str) -> Result<Vec<String>, NeedsShell> {
    let words = words(line.as_bytes())?;
    Ok(words
        .into_iter()
        .map(|word| String::from_utf8(word).unwrap())
        .collect())
}

fn some(words: &[&str]) -> Result<Vec<String>, NeedsShell> {
    Ok(words.iter().map(|word| (*word).to_owned()).collect())
}

#[test]
fn blanks_divide_and_newlines_around_the_command_are_nothing() {
    assert_eq!(texts(" ls\t-la  /tmp "), some(&["ls", "-la", "/tmp"]));
    assert_eq!(texts("\n ls\n\t\n"), some(&["ls"]));
    assert_eq!(texts("ls\n-la"), Err(NeedsShell::Byte(b'\n')));
}

#[test]
fn quotes_keep_what_is_in_them_and_join_with_what_is_beside_them() {
    assert_eq!(
        texts("printer 'a  b' \"c\td\ne\""),
        some(&["printer", "a  b", "c\td\ne"])
    );
    assert_eq!(texts("a'b c'd\"e f\""), some(&["ab cde f"]));
    assert_eq!(
        texts("a '$x `y` \\ \"*' \"it's; ~!\""),
        some(&["a", "$x `y` \\ \"*", "it's; ~!"])
    );
}

#[test]
fn empty_quotes_are_a_word() {
    assert_eq!(texts("a '' \"\" b''"), some(&["a", "", "", "b"]));
}

#[test]
fn each_byte_that_means_something_unquoted_is_the_shell_s() {
    for byte in "|&;<>()$`\\*?[]{}#~!\r\x01\x7f".bytes() {
        for line in [
            [b"ls a".as_slice(), &[byte]].concat(),
            [b"ls ", [byte].as_slice(), b"a"].concat(),
        ] {
            assert_eq!(words(&line), Err(NeedsShell::Byte(byte)), "{line:?}");
        }
    }
    for byte in 0x80..=0xff {
        assert_eq!(words(&[b'a', b' ', byte]), Err(NeedsShell::Byte(byte)));
        assert_eq!(
            words(&[b'a', b' ', b'\'', byte, b'\'']),
            Err(NeedsShell::Byte(byte))
        );
    }
}

#[test]
fn in_double_quotes_three_bytes_still_mean_something() {
    for byte in *b"$`\\" {
        let line = [b"ls \"".as_slice(), &[byte], b"\""].concat();
        assert_eq!(words(&line), Err(NeedsShell::Byte(byte)));
    }
}

#[test]
fn open_quotes_and_lines_without_a_word_are_the_shell_s() {
    for line in ["echo 'a", "ls a\"", "'"] {
        assert_eq!(texts(line), Err(NeedsShell::OpenQuote), "{line}");
    }
    for line in ["", "  \t \n"] {
        assert_eq!(texts(line), Err(NeedsShell::Empty), "{line}");
    }
}

#[test]
fn what_is_no_plain_command_is_the_shell_s() {
    for line in [
        "a=b", "a=b ls", "'a=b'", "a+=b ls", "a-b=c", "-x", "%1", "'' a", "@a", "'!' a", ",a",
    ] {
        assert_eq!(texts(line), Err(NeedsShell::Command), "{line}");
    }
    assert_eq!(texts("ls a=b --x=y"), some(&["ls", "a=b", "--x=y"]));
}

#[test]
fn builtins_and_reserved_words_are_the_shell_s_quoted_or_not() {
    for line in [
        "echo a",
        "'echo' a",
        "ec\"ho\" a",
        "if",
        "while a",
        ".",
        ". file",
        "exec ls",
        "true",
        "time ls",
        "cd /",
    ] {
        assert_eq!(texts(line), Err(NeedsShell::Builtin), "{line}");
    }
    assert_eq!(texts("/bin/echo if"), some(&["/bin/echo", "if"]));
}

#[test]
fn a_line_of_the_longest_length_is_read_and_one_more_byte_is_not() {
    let mut line = vec![b'a'; MAX_LINE_BYTES];
    assert_eq!(words(&line).map(|words| words.len()), Ok(1));
    line.push(b'a');
    assert_eq!(words(&line), Err(NeedsShell::TooLong));
}

/// One word, quoted in one of the ways that keep it.
fn quoted(word: &str, way: u8) -> String {
    match way % 3 {
        0 if !word.is_empty() && word.bytes().all(is_plain) => word.to_owned(),
        1 if !word.contains(['"', '$', '`', '\\']) => format!("\"{word}\""),
        _ => {
            let parts: Vec<String> = word.split('\'').map(|part| format!("'{part}'")).collect();
            parts.join("\"'\"")
        }
    }
}

proptest! {
    #[test]
    fn whatever_words_are_quoted_they_are_the_words_that_are_read(
        command in "[a-z0-9_./][a-z0-9_.-]{3,9}",
        arguments in proptest::collection::vec(("[ -~\t\n]{0,12}", any::<u8>()), 0..6),
        blank in "[ \t]{1,3}",
    ) {
        prop_assume!(!names::keeps_for_itself(command.as_bytes()));
        let mut line = command.clone();
        for (word, way) in &arguments {
            line.push_str(&blank);
            line.push_str(&quoted(word, *way));
        }
        let mut wanted = vec![command];
        wanted.extend(arguments.into_iter().map(|(word, _)| word));
        prop_assert_eq!(texts(&line), Ok(wanted));
    }

    #[test]
    fn no_line_makes_it_panic_and_words_are_never_longer_than_their_line(line in proptest::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(words) = words(&line) {
            prop_assert!(words.iter().map(Vec::len).sum::<usize>() <= line.len());
            prop_assert!(!words.is_empty());
        }
    }

    #[test]
    fn a_byte_that_means_something_is_never_accepted_outside_of_quotes(
        before in "[a-z]{4,8}", after in "[a-z ]{0,8}", byte in proptest::sample::select(b"|&;<>()$`\\*?[]{}#~!\n".to_vec()),
    ) {
        let line = [before.as_bytes(), b" ", &[byte], b"x", after.as_bytes()].concat();
        prop_assert!(words(&line).is_err());
    }
}
