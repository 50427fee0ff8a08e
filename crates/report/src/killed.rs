//! What is said of commands that had to end: whether they are gone.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sshoal_fleet::KillVerdict;

use crate::{sanitise::visible, summary::named};

/// How many reasons the summary quotes.
const MAX_REASONS: usize = 5;

/// The verdicts of a run, by the hosts' positions.
#[derive(Default)]
pub(crate) struct Killed {
    verdicts: BTreeMap<usize, KillVerdict>,
}

impl Killed {
    pub(crate) fn add(&mut self, host: usize, verdict: KillVerdict) {
        self.verdicts.insert(host, verdict);
    }

    /// Puts the members `kill` and, if there is a reason, `kill_detail` into a host's JSON object, if its command had to end.
    pub(crate) fn extend(&self, host: usize, object: &mut Vec<u8>) {
        let Some(verdict) = self.verdicts.get(&host) else {
            return;
        };
        push_member(object, "kill", &json!(verdict.name()));
        if let KillVerdict::NotConfirmed(why) = verdict {
            push_member(object, "kill_detail", &json!(visible(why)));
        }
    }

    /// Puts the member `kill` into the closing JSON object: how many hosts have which verdict.
    pub(crate) fn extend_summary(&self, object: &mut Vec<u8>) {
        if self.verdicts.is_empty() {
            return;
        }
        let mut counts = [0; 3];
        for verdict in self.verdicts.values() {
            counts[rank(verdict)] += 1;
        }
        let [gone, gone_after_kill, not_confirmed] = counts;
        let value = json!({
            "gone": gone,
            "gone_after_kill": gone_after_kill,
            "not_confirmed": not_confirmed,
        });
        push_member(object, "kill", &value);
    }

    /// Lines below the summary: a verdict each, under folded names. Empty if no command had to end.
    pub(crate) fn text(&self, labels: &[String]) -> String {
        let mut hosts: [Vec<&str>; 3] = Default::default();
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (host, verdict) in &self.verdicts {
            hosts[rank(verdict)].push(&labels[*host]);
            if let KillVerdict::NotConfirmed(why) = verdict {
                reasons.entry(why).or_default().push(&labels[*host]);
            }
        }
        let [gone, gone_after_kill, not_confirmed] = &hosts;
        let mut text = String::new();
        for (what, hosts) in [
            ("ended there, and gone", gone),
            ("ended there by SIGKILL, and gone", gone_after_kill),
            ("whether it still runs is not known", not_confirmed),
        ] {
            if !hosts.is_empty() {
                text.push_str(&format!("{what}: {}\n", visible(&named(hosts))));
            }
        }
        for (why, hosts) in reasons.iter().take(MAX_REASONS) {
            let line = format!("    {}: {}\n", visible(&named(hosts)), visible(why));
            text.push_str(&line);
        }
        if reasons.len() > MAX_REASONS {
            text.push_str("    on others for other reasons: --json tells of each\n");
        }
        text
    }
}

fn rank(verdict: &KillVerdict) -> usize {
    match verdict {
        KillVerdict::Gone => 0,
        KillVerdict::GoneAfterKill => 1,
        KillVerdict::NotConfirmed(_) => 2,
    }
}

/// Into an object that is not empty; into nothing if there is none.
fn push_member(object: &mut Vec<u8>, name: &str, value: &Value) {
    if object.pop() == Some(b'}') {
        object.extend_from_slice(format!(",\"{name}\":{value}}}").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_told_under_folded_names_and_with_their_reasons() {
        let labels: Vec<String> = (0..4).map(|host| format!("web{host}")).collect();
        let mut killed = Killed::default();
        killed.add(0, KillVerdict::Gone);
        killed.add(1, KillVerdict::Gone);
        killed.add(2, KillVerdict::GoneAfterKill);
        killed.add(3, KillVerdict::NotConfirmed("a \u{1b}reason".to_owned()));
        assert_eq!(
            killed.text(&labels),
            format!(
                "ended there, and gone: web[0-1] (2)\nended there by SIGKILL, and gone: web2\n\
                 whether it still runs is not known: web3\n    web3: {}\n",
                visible("a \u{1b}reason")
            )
        );
        let mut object = br#"{"a":1}"#.to_vec();
        killed.extend(3, &mut object);
        let text = String::from_utf8(object).expect("text");
        assert!(
            text.starts_with(r#"{"a":1,"kill":"not-confirmed","kill_detail":"a "#)
                && !text.contains('\u{1b}'),
            "{text}"
        );
        let mut object = br#"{"a":1}"#.to_vec();
        killed.extend_summary(&mut object);
        let text = String::from_utf8(object).expect("text");
        assert_eq!(
            text,
            r#"{"a":1,"kill":{"gone":2,"gone_after_kill":1,"not_confirmed":1}}"#
        );
    }

    #[test]
    fn nothing_is_told_where_no_command_had_to_end() {
        let killed = Killed::default();
        let mut object = b"{\"a\":1}".to_vec();
        killed.extend(0, &mut object);
        killed.extend_summary(&mut object);
        assert_eq!(object, b"{\"a\":1}");
        assert_eq!(killed.text(&[]), "");
    }
}
