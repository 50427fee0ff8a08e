//! What ssh says of itself, line by line (LogLevel DEBUG1).
//!
//! The words are those of OpenSSH's sources since 7.4, which are named where they are looked for. What a server or a
//! command says may stand in a line, too, and be made to look like one of ssh's: it can change no more than what is
//! thought of its own host, and never takes back that a command was sent.

use std::collections::VecDeque;

use sshoal_fleet::Fate;

/// A message of ssh's is cut off at so many octets, and its line feed with it (log.c, MSGBUFSIZ less the NUL).
const MAX_MESSAGE: usize = 1023;
/// Messages that are kept for the verdict, the last ones.
const MAX_WORDS: usize = 64;

/// How far an ssh is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progress {
    /// It has begun to tell what it does, of which reading its configuration and looking up names are the first.
    Telling,
    /// It connects, or asks a ControlMaster.
    Connecting,
    /// Connected.
    Connected,
    /// The host's key is trusted, and all that follows is encrypted.
    KeysExchanged,
    /// Authenticated.
    LoggedIn,
    /// The command is sent next, or has been.
    CommandSent,
}

/// What an ssh has said so far.
#[derive(Debug, Default)]
pub struct Log {
    unfinished: Vec<u8>,
    words: VecDeque<String>,
    progress: Option<Progress>,
    facts: Facts,
}

/// What the lines add up to.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Facts {
    /// Whether it writes what DEBUG1 has it write: then what is missing has not happened.
    pub(crate) speaks: bool,
    /// Whether the server has identified itself.
    pub(crate) identified: bool,
    /// Whether the server's KEXINIT has come.
    pub(crate) proposed: bool,
    /// Whether a ControlMaster was asked for the session.
    pub(crate) multiplexed: bool,
    /// Whether that master has opened it.
    pub(crate) opened: bool,
    /// Whether the session was refused, or the command in it.
    pub(crate) refused: bool,
    /// Whether the command has written something.
    pub(crate) wrote: bool,
    pub(crate) status: bool,
    pub(crate) signal: bool,
}

impl Log {
    /// Takes what was read of the log. Each step forward is told once.
    pub fn handle(&mut self, octets: &[u8], mut tell: impl FnMut(Progress)) {
        for &octet in octets {
            if octet != b'\n' {
                self.unfinished.push(octet);
            }
            if octet == b'\n' || self.unfinished.len() == MAX_MESSAGE {
                let line = std::mem::take(&mut self.unfinished);
                self.line(&line, &mut tell);
            }
        }
    }

    /// ssh has said something of its own on its standard error: see [`farewell`].
    pub fn handle_farewell(&mut self, octets: &[u8]) {
        if !octets.is_empty() {
            self.say(String::from_utf8_lossy(octets).trim());
        }
    }

    /// Whether the command's status or signal has come.
    pub fn has_end(&self) -> bool {
        self.facts.status || self.facts.signal || self.facts.opened
    }

    /// The command has written something: it runs.
    pub fn handle_output(&mut self) {
        self.facts.wrote = true;
    }

    /// How far it is; `None` before it has done anything.
    pub fn progress(&self) -> Option<Progress> {
        self.progress
    }

    /// Whether it has a session on a connection that was there before.
    pub fn is_multiplexed(&self) -> bool {
        self.facts.multiplexed
    }

    /// What is known of the command, should ssh end now.
    pub fn fate(&self) -> Fate {
        let facts = &self.facts;
        let sent = self.progress >= Some(Progress::CommandSent) || facts.multiplexed;
        match () {
            () if facts.wrote || facts.status || facts.signal => Fate::Ran,
            () if facts.refused => Fate::ProvenDiscarded,
            () if sent || !facts.speaks => Fate::MayHaveRun,
            () => Fate::NotSent,
        }
    }

    pub(crate) fn facts(&self) -> Facts {
        self.facts
    }

    pub(crate) fn words(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.words.iter().map(String::as_str)
    }

    fn line(&mut self, line: &[u8], tell: &mut impl FnMut(Progress)) {
        let line = String::from_utf8_lossy(line.trim_ascii());
        if is_detail(&line) {
            self.facts.speaks = true;
            return;
        }
        if let Some(step) = self.facts.learn(&line)
            && self.progress < Some(step)
        {
            self.progress = Some(step);
            tell(step);
        }
        let is_said = match line.strip_prefix("debug1: ") {
            None => !line.is_empty() && !is_statistics(&line),
            // What a server says in place of its identification (kex.c).
            Some(rest) => rest.contains("banner line"),
        };
        if is_said {
            self.say(&line);
        }
    }

    fn say(&mut self, line: &str) {
        if self.words.len() == MAX_WORDS {
            self.words.pop_front();
        }
        self.words.push_back(line.to_owned());
    }
}

/// What ssh says besides at LogLevel DEBUG3 (log.c, do_log): nothing depends on it.
fn is_detail(line: &str) -> bool {
    line.starts_with("debug2: ") || line.starts_with("debug3: ")
}

/// What ssh says at every end (clientloop.c, client_loop).
fn is_statistics(line: &str) -> bool {
    line.starts_with("Transferred: sent ") || line.starts_with("Bytes per second: ")
}

/// How many octets at the end of a piece of standard error look like ssh's own farewell, which it writes there whatever
/// its log is (clientloop.c, quit_message). If no status has come when ssh has ended, they are.
pub fn farewell(octets: &[u8]) -> usize {
    let Some(line) = octets.strip_suffix(b"\r\n") else {
        return 0;
    };
    let begin = line.iter().rposition(|octet| *octet == b'\n');
    let line = &line[begin.map_or(0, |at| at + 1)..];
    let is_farewell = line.starts_with(b"Connection to ")
        && line.ends_with(b" closed by remote host.")
        || line.starts_with(b"Read from remote host ");
    match is_farewell {
        true => line.len() + 2,
        false => 0,
    }
}

impl Facts {
    fn learn(&mut self, line: &str) -> Option<Progress> {
        let Some(debug) = line.strip_prefix("debug1: ") else {
            return self.learn_of_words(line);
        };
        self.speaks = true;
        let begins = |word: &str| debug.starts_with(word);
        // mux.c, muxclient: where no master answers, ssh goes on as without one.
        if begins("auto-mux: Trying existing master") {
            self.multiplexed = true;
            return Some(Progress::Connecting);
        }
        // sshconnect.c, ssh_connect_direct and ssh_proxy_connect.
        if begins("Connecting to ") || begins("Executing proxy") {
            self.multiplexed = false;
            return Some(Progress::Connecting);
        }
        if begins("Connection established") {
            return Some(Progress::Connected);
        }
        // kex.c, kex_exchange_identification.
        if begins("Remote protocol version") {
            self.identified = true;
            return Some(Progress::Connected);
        }
        if begins("SSH2_MSG_KEXINIT received") {
            self.proposed = true;
            return Some(Progress::Telling);
        }
        if begins("SSH2_MSG_NEWKEYS received") {
            return Some(Progress::KeysExchanged);
        }
        // sshconnect2.c, ssh_userauth2, before 8.9.
        if begins("Authentication succeeded") {
            return Some(Progress::LoggedIn);
        }
        // mux.c, mux_client_request_session.
        if begins("mux_client_request_session: master session id") {
            self.multiplexed = true;
            self.opened = true;
            return Some(Progress::CommandSent);
        }
        if begins("Sending command: ") || begins("Sending subsystem: ") {
            // clientloop.c, client_session2_setup.
            return Some(Progress::CommandSent);
        }
        self.learn_of_end(debug);
        Some(Progress::Telling)
    }

    /// clientloop.c, client_input_channel_req. Where the command's own text was cut off, this stands in the same line.
    fn learn_of_end(&mut self, debug: &str) {
        let Some((_, request)) = debug.rsplit_once("client_input_channel_req: channel ") else {
            return;
        };
        self.status |= request.ends_with("rtype exit-status reply 0");
        self.signal |= request.ends_with("rtype exit-signal reply 0");
    }

    fn learn_of_words(&mut self, line: &str) -> Option<Progress> {
        // A message that was cut off has no line feed: what follows is joined to what is left of it.
        if line.contains("debug1: client_input_channel_req: ") {
            self.learn_of_end(line);
            return None;
        }
        // sshconnect2.c, ssh_userauth2.
        if line.starts_with("Authenticated to ") {
            return Some(Progress::LoggedIn);
        }
        // channels.c, channel_input_open_failure; clientloop.c, client_status_confirm; mux.c.
        let is_refused = line.starts_with("channel ") && line.contains(": open failed: ")
            || line.contains(" request failed on channel ")
            || line.contains("mux_client_request_session: session request failed");
        self.refused |= is_refused;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Log, Vec<Progress>) {
        let mut log = Log::default();
        let mut steps = Vec::new();
        // In pieces, as a pipe gives them.
        for piece in text.as_bytes().chunks(7) {
            log.handle(piece, |step| steps.push(step));
        }
        (log, steps)
    }

    const LOGIN: &str = "debug1: Reading configuration data /etc/ssh/ssh_config\r\n\
        debug1: Connecting to web1 [10.0.0.1] port 22.\r\n\
        debug1: Connection established.\r\n\
        debug1: Remote protocol version 2.0, remote software version OpenSSH_9.2p1\r\n\
        debug1: SSH2_MSG_KEXINIT received\r\n\
        debug1: SSH2_MSG_NEWKEYS received\r\n\
        Authenticated to web1 ([10.0.0.1]:22) using \"publickey\".\r\n";

    #[test]
    fn steps_are_told_in_order_and_once() {
        let (log, steps) = read(&format!("{LOGIN}debug1: Sending command: true\r\n"));
        assert_eq!(
            steps,
            [
                Progress::Telling,
                Progress::Connecting,
                Progress::Connected,
                Progress::KeysExchanged,
                Progress::LoggedIn,
                Progress::CommandSent
            ]
        );
        assert_eq!(log.fate(), Fate::MayHaveRun);
    }

    #[test]
    fn what_debug3_adds_changes_nothing() {
        let verbose: String = LOGIN
            .lines()
            .map(|line| {
                format!("{line}\r\ndebug3: receive packet: type 91\r\ndebug2: channel 0: x\r\n")
            })
            .collect();
        let (plain, steps) = read(LOGIN);
        let (log, verbose_steps) = read(&verbose);
        assert_eq!(verbose_steps, steps);
        assert_eq!(log.fate(), Fate::NotSent);
        assert!(log.words().eq(plain.words()));
    }

    #[test]
    fn a_command_counts_as_not_sent_only_where_its_absence_would_show() {
        assert_eq!(read(LOGIN).0.fate(), Fate::NotSent);
        assert_eq!(read("").0.fate(), Fate::MayHaveRun);
        assert_eq!(read("some other program\n").0.fate(), Fate::MayHaveRun);
        let master = "debug1: auto-mux: Trying existing master at '/tmp/s'\r\n";
        assert_eq!(read(master).0.fate(), Fate::MayHaveRun);
        let without = format!("{master}debug1: Connecting to web1 [10.0.0.1] port 22.\r\n");
        assert_eq!(read(&without).0.fate(), Fate::NotSent);
    }

    #[test]
    fn output_a_status_and_a_signal_prove_that_it_ran() {
        let sent = format!("{LOGIN}debug1: Sending command: true\r\n");
        for request in ["exit-status", "exit-signal"] {
            let line =
                format!("debug1: client_input_channel_req: channel 0 rtype {request} reply 0");
            assert_eq!(read(&format!("{sent}{line}\r\n")).0.fate(), Fate::Ran);
        }
        let (mut log, _) = read(&sent);
        log.handle_output();
        assert_eq!(log.fate(), Fate::Ran);
    }

    #[test]
    fn a_refused_session_has_run_nothing() {
        let refused = "channel 0: open failed: administratively prohibited: open failed\r\n";
        assert_eq!(
            read(&format!("{LOGIN}{refused}")).0.fate(),
            Fate::ProvenDiscarded
        );
        let request = "debug1: Sending command: x\r\nexec request failed on channel 0\r\n";
        assert_eq!(
            read(&format!("{LOGIN}{request}")).0.fate(),
            Fate::ProvenDiscarded
        );
    }

    #[test]
    fn a_command_that_is_cut_off_hides_nothing_behind_it() {
        let status = "debug1: client_input_channel_req: channel 0 rtype exit-status reply 0\r\n";
        for command in ["x".repeat(5000), "two\nlines\n".repeat(500)] {
            let mut message = format!("debug1: Sending command: {command}");
            message.truncate(MAX_MESSAGE);
            let (log, _) = read(&format!("{LOGIN}{message}{status}"));
            assert!(log.facts().status, "{command:.20}");
        }
    }

    #[test]
    fn a_farewell_is_ssh_s_own_last_line() {
        for (octets, length) in [
            ("Connection to h closed by remote host.\r\n", 40),
            ("out\nConnection to h closed by remote host.\r\n", 40),
            ("Connection to h closed by remote host.\n", 0),
            ("Connection to h closed by remote host.\r\nmore", 0),
            ("", 0),
            ("\r\n", 0),
        ] {
            assert_eq!(farewell(octets.as_bytes()), length, "{octets:?}");
        }
    }

    #[test]
    fn whatever_comes_little_of_it_is_kept() {
        let (log, _) = read(&"a line of words\n".repeat(1000));
        assert_eq!(log.words().count(), MAX_WORDS);
        let (log, _) = read(&"x".repeat(100_000));
        assert!(log.unfinished.len() < MAX_MESSAGE);
    }

    proptest::proptest! {
        #[test]
        fn no_log_takes_back_that_a_command_was_sent(rest in ".{0,300}") {
            let (log, _) = read(&format!("{LOGIN}debug1: Sending command: true\r\n{rest}\n"));
            proptest::prop_assert_ne!(log.fate(), Fate::NotSent);
        }
    }
}
