//! A kind with its number, as in `pam-account:200`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

use super::kind::{Kind, TABLE, Unit};

/// Something done to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Injection {
    /// What.
    pub kind: Kind,
    /// How much of it, in its row's unit; without a meaning where that is [`Unit::Nothing`].
    pub amount: u64,
}

/// What was meant to be injections is none.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum NoInjection {
    /// No kind has this name.
    #[error("no cause is called '{0}': `sshoal-testbed slow-hosts --list` prints them")]
    Name(String),
    /// The number is none, or nothing can be chosen here, or zero.
    #[error("'{0}': write NAME or NAME:NUMBER, a whole number above 0, where the cause has one")]
    Amount(String),
}

impl Injection {
    /// A kind with the number that its row gives.
    pub fn usual(kind: Kind) -> Injection {
        Injection {
            kind,
            amount: kind.row().usual,
        }
    }

    /// What one run of what is injected takes at least, where that is a time that was chosen.
    /// [`SlowHost::runs_of`](super::SlowHost::runs_of) tells how many runs there were.
    pub fn time(self) -> Option<Duration> {
        match self.kind.row().unit {
            Unit::Milliseconds => Some(Duration::from_millis(self.amount)),
            Unit::Seconds => Some(Duration::from_secs(self.amount)),
            _ => None,
        }
    }

    /// Several of one host, as in `pam-account:200+bashrc:50`; none for `clean`.
    ///
    /// # Errors
    /// The first that is none.
    pub fn several(text: &str) -> Result<Vec<Injection>, NoInjection> {
        match text {
            "clean" => Ok(Vec::new()),
            _ => text.split('+').map(str::parse).collect(),
        }
    }

    /// The number with its unit, as people write it; empty where there is nothing to choose.
    pub fn quantity(self) -> String {
        let amount = self.amount;
        match self.kind.row().unit {
            Unit::Milliseconds => format!("{amount} ms"),
            Unit::Seconds => format!("{amount} s"),
            Unit::Percent => format!("{amount} %"),
            Unit::Count(what) => format!("{amount} {what}"),
            Unit::Nothing => String::new(),
        }
    }
}

impl FromStr for Injection {
    type Err = NoInjection;

    fn from_str(text: &str) -> Result<Injection, NoInjection> {
        let (name, amount) = match text.split_once(':') {
            Some((name, amount)) => (name, Some(amount)),
            None => (text, None),
        };
        let row = TABLE.iter().find(|row| row.name == name);
        let row = row.ok_or_else(|| NoInjection::Name(name.to_owned()))?;
        let amount = match amount {
            None => row.usual,
            Some(amount) => amount
                .parse()
                .ok()
                .filter(|&amount| amount > 0 && row.unit != Unit::Nothing)
                .ok_or_else(|| NoInjection::Amount(text.to_owned()))?,
        };
        let kind = row.kind;
        Ok(Injection { kind, amount })
    }
}

impl fmt::Display for Injection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = self.kind.row();
        match row.unit {
            Unit::Nothing => f.write_str(row.name),
            _ => write!(f, "{}:{}", row.name, self.amount),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn names_and_numbers_are_read_and_written() {
        let pair = Injection::several("pam-account:20+kex-group18+lastlog").unwrap();
        let written: Vec<String> = pair.iter().map(Injection::to_string).collect();
        assert_eq!(
            written,
            ["pam-account:20", "kex-group18", "lastlog:1000000"]
        );
        assert_eq!(pair[0].time(), Some(Duration::from_millis(20)));
        assert_eq!(pair[0].quantity(), "20 ms");
        assert_eq!(pair[1].time(), None);
        assert_eq!(Injection::several("clean"), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_injection_is_refused() {
        for text in [
            "",
            "nothing",
            "motd+",
            "motd:",
            "motd:0",
            "motd:-1",
            "motd:20ms",
            "kex-group18:3",
        ] {
            assert!(Injection::several(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_kind_is_read_as_it_is_written() {
        for row in TABLE {
            let injection = Injection::usual(row.kind);
            assert_eq!(injection.to_string().parse(), Ok(injection));
        }
    }
}
