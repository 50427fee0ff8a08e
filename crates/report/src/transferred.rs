//! What is said of files that are copied: on the status line, in JSON, at the end.

use serde::Serialize;

/// What became of files, folders and links.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Transferred {
    /// Those that are in place now.
    pub done: u64,
    /// Those that were there already, unchanged.
    pub unchanged: u64,
    /// Those that could not be copied.
    pub failed: u64,
    /// Those of which the contents were hashed at both ends when they had arrived.
    pub verified: u64,
    /// Those that were surplus, and were deleted.
    pub deleted: u64,
    /// Octets of contents that were moved.
    pub octets: u64,
}

/// How far the files of a host are, or those of all hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moving {
    /// Octets that have arrived.
    pub done: u64,
    /// Octets that are still to come, as far as is known.
    pub left: u64,
}

impl Transferred {
    /// With the attempt at the same host that was before: what moved then has moved, and the last one knows what there is.
    pub(crate) fn after(self, before: &Transferred) -> Transferred {
        Transferred {
            octets: self.octets + before.octets,
            ..self
        }
    }

    pub(crate) fn add(&mut self, other: &Transferred) {
        self.done += other.done;
        self.unchanged += other.unchanged;
        self.failed += other.failed;
        self.verified += other.verified;
        self.deleted += other.deleted;
        self.octets += other.octets;
    }

    /// Puts the member `transfer` into a JSON object that is not empty; into nothing if there is none.
    pub(crate) fn extend(&self, object: &mut Vec<u8>) {
        if object.pop() == Some(b'}') {
            object.extend_from_slice(b",\"transfer\":");
            let text = serde_json::to_string(self).expect("numbers are always serialisable");
            object.extend_from_slice(text.as_bytes());
            object.push(b'}');
        }
    }

    /// The line below the summary.
    pub(crate) fn text(&self) -> String {
        let mut line = format!("sshoal: {} copied ({})", self.done, amount(self.octets));
        for (count, what) in [
            (self.verified, "verified"),
            (self.unchanged, "unchanged"),
            (self.deleted, "deleted"),
            (self.failed, "failed"),
        ] {
            if count > 0 {
                line.push_str(&format!(", {count} {what}"));
            }
        }
        line.push('\n');
        line
    }
}

impl Moving {
    /// For the status line: `1.2 GiB of 3.4 GiB, 110.0 MiB/s, 0:21 left`.
    pub(crate) fn text(&self, octets_a_second: Option<f64>) -> String {
        let all = self.done.saturating_add(self.left);
        let mut text = format!("{} of {}", amount(self.done), amount(all));
        if let Some(rate) = octets_a_second {
            text.push_str(&format!(", {}/s", amount(rate as u64)));
            let seconds = self.left as f64 / rate;
            if seconds.is_finite() && seconds < 1e6 {
                let seconds = seconds.ceil() as u64;
                text.push_str(&match seconds / 3600 {
                    0 => format!(", {}:{:02} left", seconds / 60, seconds % 60),
                    hours => format!(", {hours} h {:02} min left", seconds / 60 % 60),
                });
            }
        }
        text
    }
}

/// Octets for people: binary units, one digit behind the point.
fn amount(octets: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if octets < 1024 {
        return format!("{octets} B");
    }
    let mut value = octets as f64 / 1024.0;
    let mut units = UNITS.iter();
    let mut unit = units.next();
    while value >= 1023.95
        && let Some(next) = units.next()
    {
        value /= 1024.0;
        unit = Some(next);
    }
    format!("{value:.1} {}", unit.unwrap_or(&""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_for_people() {
        for (octets, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1_048_575, "1.0 MiB"),
            (3 << 30, "3.0 GiB"),
        ] {
            assert_eq!(amount(octets), text);
        }
    }

    #[test]
    fn the_time_left_follows_from_the_rate() {
        let moving = Moving {
            done: 1 << 20,
            left: 60 << 20,
        };
        let rate = |octets| moving.text(Some(octets));
        assert_eq!(
            rate(1_048_576.0),
            "1.0 MiB of 61.0 MiB, 1.0 MiB/s, 1:00 left"
        );
        assert_eq!(rate(0.0), "1.0 MiB of 61.0 MiB, 0 B/s");
        assert_eq!(moving.text(None), "1.0 MiB of 61.0 MiB");
    }

    #[test]
    fn an_object_gets_one_member_more() {
        let transferred = Transferred {
            done: 1,
            unchanged: 2,
            failed: 0,
            verified: 1,
            deleted: 4,
            octets: 3,
        };
        let mut object = br#"{"a":1}"#.to_vec();
        transferred.extend(&mut object);
        let text = String::from_utf8(object).expect("text");
        assert_eq!(
            text,
            r#"{"a":1,"transfer":{"done":1,"unchanged":2,"failed":0,"verified":1,"deleted":4,"octets":3}}"#
        );
        let mut nothing = Vec::new();
        transferred.extend(&mut nothing);
        assert!(nothing.is_empty());
    }
}
