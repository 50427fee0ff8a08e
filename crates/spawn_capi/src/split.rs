//! How `popen_noshell_compat` divides a command line: at spaces and tabs, with quotes, and without a shell's other ways.

/// Characters that mean something to a shell. A line with one of them, quoted or not, is refused.
const META: &[u8] = b"!\\$`\n|&;()<>";

/// The words of a line; none if it is refused, if a quote is not closed, or if there is no word in it. Words of no
/// characters, such as `''`, are left out, as that function has always done.
pub(crate) fn words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut word = Vec::new();
    let mut quote = None;
    for byte in line.iter().copied() {
        match (byte, quote) {
            _ if META.contains(&byte) => return None,
            (b' ' | b'\t', None) => finish(&mut word, &mut words),
            (b'\'' | b'"', None) => quote = Some(byte),
            (_, Some(open)) if byte == open => quote = None,
            _ => word.push(byte),
        }
    }
    finish(&mut word, &mut words);
    (quote.is_none() && !words.is_empty()).then_some(words)
}

fn finish(word: &mut Vec<u8>, words: &mut Vec<Vec<u8>>) {
    if !word.is_empty() {
        words.push(std::mem::take(word));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Option<Vec<String>> {
        let words = words(line.as_bytes())?.into_iter();
        Some(
            words
                .map(|word| String::from_utf8_lossy(&word).into_owned())
                .collect(),
        )
    }

    fn some(words: &[&str]) -> Option<Vec<String>> {
        Some(words.iter().map(|word| (*word).to_owned()).collect())
    }

    #[test]
    fn blanks_divide_and_quotes_keep_them() {
        assert_eq!(texts(" ls\t-la  /tmp "), some(&["ls", "-la", "/tmp"]));
        assert_eq!(
            texts("echo 'a  b' \"c\td\""),
            some(&["echo", "a  b", "c\td"])
        );
        assert_eq!(texts("a'b c'd"), some(&["ab cd"]));
        assert_eq!(texts("a \"it's\" '\"'"), some(&["a", "it's", "\""]));
    }

    #[test]
    fn empty_words_are_left_out() {
        assert_eq!(texts("a '' \"\" b"), some(&["a", "b"]));
    }

    #[test]
    fn what_needs_a_shell_is_refused_even_in_quotes() {
        for meta in META {
            let mut line = b"echo 'x".to_vec();
            line.push(*meta);
            line.push(b'\'');
            assert_eq!(words(&line), None, "{}", *meta as char);
        }
    }

    #[test]
    fn open_quotes_and_empty_lines_are_refused() {
        for line in ["echo 'a", "echo a\"", "", "  \t ", "''"] {
            assert_eq!(texts(line), None, "{line}");
        }
    }
}
