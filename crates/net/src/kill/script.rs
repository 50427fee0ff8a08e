//! The session that the script runs in, and what it answers.

use std::time::{Duration, Instant};

use sshoal_fleet::KillVerdict;
use sshoal_proto::{Connection, ConnectionError, Event, LocalChannel, SessionRequest};
use zeroize::Zeroizing;

use super::{KillPlan, SCRIPT};

/// Whatever shell the user has: a POSIX shell takes its place, and reads the script from standard input, so that nothing
/// of it need be quoted for the first.
const COMMAND: &str = "exec /bin/sh -s";
/// What it reads, behind lines that set what is said at its beginning.
pub const TEXT: &str = include_str!("kill.sh");
/// What the answer begins with.
const MARK: &str = "sshoal-kill ";
/// Most octets of output that are kept: the last ones.
const MAX_OUTPUT: usize = 16 * 1024;
/// Most characters of a list of processes that are told.
const MAX_TOLD: usize = 200;

/// The session of the script.
pub(super) struct ScriptSession {
    channel: LocalChannel,
    text: Zeroizing<Vec<u8>>,
    sent: usize,
    is_open: bool,
    has_ended: bool,
    begun: Instant,
    grace: Duration,
    output: Vec<u8>,
    /// Octets that have come and that the server has not been told of.
    owed: usize,
    verdict: Option<KillVerdict>,
}

impl ScriptSession {
    pub(super) fn begin(
        plan: &KillPlan,
        told_group: bool,
        connection: &mut Connection,
    ) -> Result<ScriptSession, ConnectionError> {
        let channel = connection.open_session(SessionRequest {
            standard_input: true,
            ..SessionRequest::exec(COMMAND)
        })?;
        let mut session = ScriptSession {
            channel,
            text: text(plan, told_group),
            sent: 0,
            is_open: false,
            has_ended: false,
            begun: Instant::now(),
            grace: plan.grace,
            output: Vec::new(),
            owed: 0,
            verdict: None,
        };
        if channel == LocalChannel::REFUSED {
            session.decide("too many sessions on one connection");
        }
        Ok(session)
    }

    pub(super) fn begun(&self) -> Instant {
        self.begun
    }

    pub(super) fn wake(&self) -> Instant {
        self.begun + self.grace + SCRIPT
    }

    pub(super) fn verdict(&mut self) -> Option<KillVerdict> {
        self.verdict.take()
    }

    pub(super) fn handle(&mut self, event: Event, input: &[u8]) -> Option<Event> {
        let ours = self.channel;
        match event {
            Event::ChannelOpened(channel) if channel == ours => self.is_open = true,
            Event::Data { channel, range, .. } if channel == ours => {
                self.owed += range.len();
                self.keep(&input[range]);
            }
            Event::ChannelRefused {
                channel,
                description,
                ..
            } if channel == ours => self.decide(&format!(
                "the server opened no second session (MaxSessions): {description}"
            )),
            Event::StartRefused(channel) if channel == ours => {
                self.decide("the server refused to run a second command");
            }
            Event::Eof(channel) | Event::Closed(channel) if channel == ours => {
                let verdict = answer(&self.output);
                self.verdict.get_or_insert(verdict);
            }
            Event::Started(channel)
            | Event::Writable(channel)
            | Event::ExitStatus { channel, .. }
            | Event::ExitSignal { channel, .. }
                if channel == ours => {}
            other => return Some(other),
        }
        None
    }

    /// Sends the script, and gives the server the room for more output.
    pub(super) fn advance(&mut self, connection: &mut Connection) -> Result<(), ConnectionError> {
        let owed = std::mem::take(&mut self.owed);
        if self.verdict.is_some() || !self.is_open {
            return Ok(());
        }
        if owed > 0 {
            connection.consumed(self.channel, owed)?;
        }
        if !self.has_ended {
            self.sent += connection.send_data(self.channel, &self.text[self.sent..])?;
            if self.sent == self.text.len() {
                self.has_ended = true;
                connection.send_eof(self.channel)?;
            }
        }
        Ok(())
    }

    fn keep(&mut self, octets: &[u8]) {
        self.output.extend_from_slice(octets);
        let excess = self.output.len().saturating_sub(MAX_OUTPUT);
        self.output.drain(..excess);
    }

    fn decide(&mut self, why: &str) {
        self.verdict = Some(KillVerdict::NotConfirmed(why.to_owned()));
    }
}

/// The script behind its settings.
fn text(plan: &KillPlan, told_group: bool) -> Zeroizing<Vec<u8>> {
    let grace = plan.grace.as_secs() + u64::from(plan.grace.subsec_nanos() > 0);
    let told = if told_group { "group" } else { "" };
    let sudo = if plan.by_sudo { "yes" } else { "" };
    let run = plan.run.as_deref().unwrap_or_default();
    let password = plan.sudo_password.as_ref();
    let password = password.map_or(&b""[..], |password| password.expose());
    let mut text = Zeroizing::new(Vec::with_capacity(TEXT.len() + 4 * password.len() + 100));
    text.extend_from_slice(
        format!("grace={grace} told={told} sudo={sudo} run={run} mark='{MARK}' password='")
            .as_bytes(),
    );
    for &octet in password {
        match octet {
            b'\'' => text.extend_from_slice(b"'\\''"),
            other => text.push(other),
        }
    }
    text.extend_from_slice(b"'\n");
    text.extend_from_slice(TEXT.as_bytes());
    text
}

/// What the script's output says. A login shell may have said something before it.
fn answer(output: &[u8]) -> KillVerdict {
    let output = String::from_utf8_lossy(output);
    let said = output
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix(MARK));
    let (word, rest) = said
        .map(|said| said.split_once(' ').unwrap_or((said, "")))
        .unwrap_or_default();
    let processes: String = rest.chars().take(MAX_TOLD).collect();
    KillVerdict::NotConfirmed(match word {
        "gone" => return KillVerdict::Gone,
        "killed" => return KillVerdict::GoneAfterKill,
        "left" => format!("still there after SIGKILL: {processes}"),
        "foreign" => format!("still there, and not ours to end: {processes}"),
        "doubt" => format!("a sudo is left, of this connection or of another one: {processes}"),
        "hidden" => "other users' processes are hidden there (hidepid)".to_owned(),
        "unknown" => "the server's own process was not recognised there".to_owned(),
        "blind" => "there is no /proc on the host".to_owned(),
        _ => "the script that looks gave no answer: no POSIX shell there, or a forced command"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(password: &str) -> KillPlan {
        KillPlan {
            grace: Duration::from_millis(1500),
            condition: super::super::KillCondition::Always,
            by_sudo: true,
            run: None,
            sudo_password: Some(sshoal_proto::Secret::new(password.as_bytes().to_vec())),
        }
    }

    #[test]
    fn settings_come_before_the_script_and_a_password_is_quoted() {
        let text = text(&plan("it's $(id)"), true);
        let first = text.split(|&octet| octet == b'\n').next();
        assert_eq!(
            String::from_utf8_lossy(first.expect("a line")),
            r"grace=2 told=group sudo=yes run= mark='sshoal-kill ' password='it'\''s $(id)'"
        );
    }

    #[test]
    fn the_last_answer_counts_whatever_a_login_shell_says() {
        assert_eq!(answer(b"welcome\nsshoal-kill gone\n"), KillVerdict::Gone);
        assert_eq!(answer(b"sshoal-kill killed\n"), KillVerdict::GoneAfterKill);
        for (said, told) in [
            (&b"sshoal-kill left 7(a b)\n"[..], "7(a b)"),
            (b"sshoal-kill foreign 7(sudo)\n", "not ours"),
            (b"", "no answer"),
            (b"sshoal-kill", "no answer"),
            (b"\xff\nsshoal-kill hidden\n", "hidepid"),
        ] {
            match answer(said) {
                KillVerdict::NotConfirmed(why) => assert!(why.contains(told), "{why}"),
                other => panic!("{other:?}"),
            }
        }
    }
}
