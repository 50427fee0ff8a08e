//! What is measured of a host's logins: the contract between who measures and who judges.

use std::collections::BTreeMap;
use std::time::Duration;

/// All that was measured of one host.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// What the user calls it.
    pub host: String,
    /// Where it was reached.
    pub address: Option<String>,
    /// Its identification string, `SSH-2.0-...` (RFC 4253 section 4.2).
    pub identification: Option<String>,
    /// The best tier that worked.
    pub tier: Tier,
    /// Why it is no better one, in words.
    pub tier_notes: Vec<String>,
    /// Round-trip times, measured apart from the logins.
    pub round_trips: Vec<Duration>,
    /// Our logins in order, interleaved with those of ssh.
    pub logins: Vec<Login>,
    /// What else was found out.
    pub facts: Facts,
}

/// By which rights things were found out; a later one knows all that an earlier one does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// From this side of the connection alone.
    Client,
    /// And by commands of the user on the host.
    NoRoot,
    /// And by tracing a login on the host.
    Root,
}

/// Which client has logged in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Client {
    /// Our own, one step after the other as ssh does it.
    Sshoal,
    /// The installed ssh.
    Ssh,
}

/// One login, from its start to the first output of a command that does nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Login {
    /// Who has logged in.
    pub by: Client,
    /// Its phases, in the order in which they began. A phase may come several times: a key probe for each key.
    pub spans: Vec<Span>,
    /// Why it has come no further, in words.
    pub failure: Option<String>,
}

/// One phase of one login.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Which one.
    pub phase: Phase,
    /// Counted from the start of that login.
    pub start: Duration,
    /// How long it took.
    pub duration: Duration,
    /// What it was about, for a reader: an address, an algorithm, a key.
    pub detail: String,
}

/// The phases of a login that is not pipelined, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// P0: this machine's own work, configuration and known_hosts.
    Local,
    /// P1: the name is looked up.
    Lookup,
    /// P2: TCP connects.
    Connect,
    /// P3: until the server's identification string.
    Banner,
    /// P4: until the server's KEXINIT.
    KeyExchangeInit,
    /// P5: until the reply of the key exchange has been judged, and NEWKEYS.
    KeyExchange,
    /// P6: SERVICE_REQUEST and the first authentication request (`none`).
    FirstRequest,
    /// P7: a key is offered without a signature.
    KeyProbe,
    /// P8: the signed request, or a password, until USERAUTH_SUCCESS.
    SignedRequest,
    /// P9: until the channel's confirmation.
    ChannelOpen,
    /// P10: from the exec request to the first octet of output.
    FirstOutput,
}

impl Phase {
    /// All of them, in order.
    pub const ALL: [Phase; 11] = [
        Phase::Local,
        Phase::Lookup,
        Phase::Connect,
        Phase::Banner,
        Phase::KeyExchangeInit,
        Phase::KeyExchange,
        Phase::FirstRequest,
        Phase::KeyProbe,
        Phase::SignedRequest,
        Phase::ChannelOpen,
        Phase::FirstOutput,
    ];

    /// Its name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Local => "local",
            Phase::Lookup => "lookup",
            Phase::Connect => "connect",
            Phase::Banner => "banner",
            Phase::KeyExchangeInit => "key-exchange-init",
            Phase::KeyExchange => "key-exchange",
            Phase::FirstRequest => "first-request",
            Phase::KeyProbe => "key-probe",
            Phase::SignedRequest => "signed-request",
            Phase::ChannelOpen => "channel-open",
            Phase::FirstOutput => "first-output",
        }
    }

    /// What a reader is told it is.
    pub const fn title(self) -> &'static str {
        match self {
            Phase::Local => "local work",
            Phase::Lookup => "name lookup",
            Phase::Connect => "TCP connect",
            Phase::Banner => "server's banner",
            Phase::KeyExchangeInit => "KEXINIT",
            Phase::KeyExchange => "key exchange",
            Phase::FirstRequest => "first auth request",
            Phase::KeyProbe => "key probe",
            Phase::SignedRequest => "signed request",
            Phase::ChannelOpen => "channel open",
            Phase::FirstOutput => "first output",
        }
    }
}

/// Named facts about this machine, the login and the host. A name is dotted and fixed: `local.agent.keys`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts(BTreeMap<String, Fact>);

/// One of them.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// How long something took.
    Time(Duration),
    /// A count, a size in octets, or a percentage, as its name says.
    Number(f64),
    /// Words, of a configuration or of a peer: foreign text.
    Text(String),
    /// Whether something is so.
    Yes(bool),
}

impl Facts {
    /// Notes a fact; what was noted under that name before is gone.
    pub fn insert(&mut self, name: impl Into<String>, fact: impl Into<Fact>) {
        self.0.insert(name.into(), fact.into());
    }

    /// A fact that is a time.
    pub fn time(&self, name: &str) -> Option<Duration> {
        match self.0.get(name)? {
            Fact::Time(time) => Some(*time),
            _ => None,
        }
    }

    /// A fact that is a number, if it is a finite one.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.0.get(name)? {
            Fact::Number(number) if number.is_finite() => Some(*number),
            _ => None,
        }
    }

    /// A fact in words.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.0.get(name)? {
            Fact::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A fact that is a yes or a no.
    pub fn yes(&self, name: &str) -> Option<bool> {
        match self.0.get(name)? {
            Fact::Yes(yes) => Some(*yes),
            _ => None,
        }
    }

    /// All facts, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Fact)> {
        self.0.iter().map(|(name, fact)| (name.as_str(), fact))
    }
}

impl From<Duration> for Fact {
    fn from(time: Duration) -> Fact {
        Fact::Time(time)
    }
}

impl From<f64> for Fact {
    fn from(number: f64) -> Fact {
        Fact::Number(number)
    }
}

impl From<String> for Fact {
    fn from(text: String) -> Fact {
        Fact::Text(text)
    }
}

impl From<&str> for Fact {
    fn from(text: &str) -> Fact {
        Fact::Text(text.to_owned())
    }
}

impl From<bool> for Fact {
    fn from(yes: bool) -> Fact {
        Fact::Yes(yes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_is_read_as_what_it_is_and_as_nothing_else() {
        let mut facts = Facts::default();
        facts.insert("local.agent.keys", 3.0);
        facts.insert("host.load", f64::NAN);
        facts.insert("host.shell", "/bin/sh");
        facts.insert("host.shell", "/bin/bash");
        assert_eq!(facts.number("local.agent.keys"), Some(3.0));
        assert_eq!(facts.time("local.agent.keys"), None);
        assert_eq!(facts.number("host.load"), None);
        assert_eq!(facts.text("host.shell"), Some("/bin/bash"));
        assert_eq!(facts.yes("host.rc"), None);
        assert_eq!(facts.iter().count(), 3);
    }

    #[test]
    fn phases_stand_in_their_order_and_have_names_of_their_own() {
        assert!(Phase::ALL.is_sorted());
        let mut names: Vec<_> = Phase::ALL.iter().map(|phase| phase.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Phase::ALL.len());
    }
}
