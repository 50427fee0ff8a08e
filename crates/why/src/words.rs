//! How times, counts and foreign text are told.

use std::fmt::Write as _;
use std::time::Duration;

/// No more characters of a foreign text are told in one place.
const MAX_FOREIGN: usize = 200;

/// A time for a reader: `0.1 ms`, `7.3 ms`, `217 ms`, `11.03 s`.
pub(crate) fn time(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1000.0;
    if ms < 9.95 {
        format!("{ms:.1} ms")
    } else if ms < 999.5 {
        format!("{ms:.0} ms")
    } else {
        format!("{:.2} s", time.as_secs_f64())
    }
}

/// A number as it is written: no fraction where there is none.
pub(crate) fn number(number: f64) -> String {
    if number.fract() == 0.0 {
        format!("{number:.0}")
    } else {
        format!("{number:.1}")
    }
}

/// Foreign text made harmless for a terminal, on one line, and not endless.
pub(crate) fn foreign(text: &str) -> String {
    let mut out = String::new();
    for (count, c) in text.trim().chars().enumerate() {
        if count == MAX_FOREIGN {
            out.push_str("...");
            break;
        }
        match c {
            '\t' => out.push(' '),
            '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{feff}' => push_code(&mut out, c),
            _ if c.is_control() => push_code(&mut out, c),
            _ => out.push(c),
        }
    }
    out
}

fn push_code(out: &mut String, c: char) {
    write!(out, "\\u{{{:x}}}", u32::from(c)).expect("writing to a String cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_told_in_their_own_measure() {
        let told = |us| time(Duration::from_micros(us));
        assert_eq!(told(94), "0.1 ms");
        assert_eq!(told(9_940), "9.9 ms");
        assert_eq!(told(9_960), "10 ms");
        assert_eq!(told(999_400), "999 ms");
        assert_eq!(told(999_600), "1.00 s");
    }

    #[test]
    fn foreign_text_steers_no_terminal_and_has_an_end() {
        assert_eq!(
            foreign("\u{1b}[2Ja\tb\u{202e}c\n"),
            "\\u{1b}[2Ja b\\u{202e}c"
        );
        assert_eq!(foreign(&"x".repeat(10_000)).len(), MAX_FOREIGN + 3);
    }

    proptest! {
        #[test]
        fn foreign_text_becomes_one_line(text: String) {
            prop_assert!(!foreign(&text).chars().any(char::is_control));
        }
    }
}
