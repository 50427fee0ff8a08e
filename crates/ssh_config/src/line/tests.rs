#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

/// Nothing at all, tabs, a blank at the end of the line, what looks like a comment or a separator.
fn must_be_quoted(argument: &str) -> bool {
    argument.is_empty()
        || argument.contains('\t')
        || argument.ends_with(' ')
        || argument.starts_with(['#', '='])
}

/// Writes a line that says a keyword and its arguments, each in one of three ways.
fn print(keyword: &str, arguments: &[(String, u8)]) -> String {
    let escape = |argument: &str, escaped: &[char]| -> String {
        let escape = |c| match escaped.contains(&c) {
            true => vec!['\\', c],
            false => vec![c],
        };
        argument.chars().flat_map(escape).collect()
    };
    let mut line = keyword.to_string();
    for (argument, way) in arguments {
        line.push_str(&match way % 3 {
            0 => format!(" \"{}\"", escape(argument, &['\\', '"'])),
            1 => format!("\t'{}'", escape(argument, &['\\', '\''])),
            _ if must_be_quoted(argument) => {
                format!(" '{}'", escape(argument, &['\\', '\'']))
            }
            _ => format!("  {}", escape(argument, &['\\', '"', '\'', ' '])),
        });
    }
    line
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn what_is_printed_is_read_again(
        name in "[A-Za-z][A-Za-z0-9]{0,8}",
        arguments in prop::collection::vec(("[ab \t\"'\\\\#=,!*%$ä]{0,6}", any::<u8>()), 1..5),
    ) {
        let line = print(&name, &arguments);
        let split = split_keyword(&line).unwrap().unwrap();
        prop_assert_eq!(&split.keyword, &name.to_ascii_lowercase());
        let read = split_arguments(&split.rest).unwrap();
        let written: Vec<&String> = arguments.iter().map(|(argument, _)| argument).collect();
        prop_assert_eq!(read.iter().collect::<Vec<_>>(), written);
        let ways = arguments.iter().map(|(_, way)| *way);
        let read: Vec<(String, u8)> = read.into_iter().zip(ways).collect();
        prop_assert_eq!(print(&name, &read), line);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
        if let Ok(Some(split)) = split_keyword(&text) {
            prop_assert!(!split.keyword.is_empty() && !split.rest.is_empty());
            let _ = split_arguments(&split.rest);
        }
    }
}

fn keyword(line: &str) -> Option<(String, String)> {
    split_keyword(line)
        .unwrap()
        .map(|split| (split.keyword, split.rest))
}

#[test]
fn a_keyword_ends_at_blanks_or_one_equals_sign() {
    let port = |rest: &str| Some(("port".to_string(), rest.to_string()));
    for line in [
        "Port 22",
        "PORT=22",
        "port = 22",
        " \tPort\t22 \r\n",
        "\"Port\" 22",
        "=Port 22",
    ] {
        assert_eq!(keyword(line), port("22"), "{line}");
    }
    assert_eq!(keyword("Port==22"), port("=22"));
    assert_eq!(keyword("Port = = 22"), port("= 22"));
    assert_eq!(keyword("Port \"2 2\" # x"), port("\"2 2\" # x"));
}

#[test]
fn lines_without_a_keyword_say_nothing() {
    for line in ["", "  ", "# x", "  # x", "\t\r\n", "\u{c}", "\"", "="] {
        assert_eq!(keyword(line), None, "{line:?}");
    }
    for line in ["Port", "Port ", "Port=", "Port = ", "\"\" x"] {
        assert!(split_keyword(line).is_err(), "{line}");
    }
}

#[test]
fn arguments_are_split_quoted_and_escaped() {
    let cases: &[(&str, &[&str])] = &[
        ("a b\tc", &["a", "b", "c"]),
        ("  a  ", &["a"]),
        ("a # b", &["a"]),
        ("a#b", &["a#b"]),
        ("\"a b\" 'c d'", &["a b", "c d"]),
        ("a\"b c\"d", &["ab cd"]),
        ("\"a'b\" 'c\"d'", &["a'b", "c\"d"]),
        (r#"a\ b "c\ d""#, &["a b", r"c\ d"]),
        (r#"\"a\' "\"" '\'' \\"#, &["\"a'", "\"", "'", r"\"]),
        (r"a\x \", &[r"a\x", r"\"]),
        ("\"\" ''", &["", ""]),
        ("", &[]),
        ("# x", &[]),
        ("ä \"ö\"", &["ä", "ö"]),
    ];
    for (text, expected) in cases {
        assert_eq!(split_arguments(text).unwrap(), *expected, "{text}");
    }
    for open in ["\"a", "a'", "a \"b' c", r#""\""#] {
        assert_eq!(split_arguments(open), None, "{open}");
        assert_eq!(split_command(open), None, "{open}");
    }
    assert_eq!(
        split_command("a #b '# c' # d#").unwrap(),
        ["a", "#b", "# c", "#", "d#"]
    );
}
