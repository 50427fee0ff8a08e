//! Reading fault rules.

use super::{
    Action, Cut, Duration, FLOOD_DEFAULT, Fault, FaultError, FaultRule, FromStr, Position,
    RangeInclusive, Side,
};

impl FromStr for FaultRule {
    type Err = FaultError;

    /// Reads `HOSTS=FAULT` or `HOSTS=FAULT@N`.
    fn from_str(text: &str) -> Result<FaultRule, FaultError> {
        let (hosts, fault) = text
            .split_once('=')
            .ok_or_else(|| FaultError::NoHosts(text.to_owned()))?;
        let (fault, first) = match fault.rsplit_once('@') {
            Some((fault, first)) => (fault, Some(number(first)?)),
            None => (fault, None),
        };
        let rule = FaultRule {
            hosts: host_ranges(hosts)?,
            fault: fault.parse()?,
            first_connections: first,
        };
        if rule.fault.is_of_the_host() && first.is_some() {
            return Err(FaultError::EveryConnection(fault.to_owned()));
        }
        Ok(rule)
    }
}

fn host_ranges(text: &str) -> Result<Vec<RangeInclusive<u32>>, FaultError> {
    if text == "*" {
        return Ok(vec![0..=u32::MAX]);
    }
    let wrong = || FaultError::Hosts(text.to_owned());
    text.split(',')
        .map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first: u32 = first.parse().map_err(|_| wrong())?;
            let last: u32 = last.parse().map_err(|_| wrong())?;
            (first <= last).then_some(first..=last).ok_or_else(wrong)
        })
        .collect()
}

impl FromStr for Fault {
    type Err = FaultError;

    /// Reads a fault as its variant's documentation spells it. A position P is `N` (bytes from the
    /// start), `auth+N` (bytes after authentication) or `message+N` (binary packets).
    fn from_str(text: &str) -> Result<Fault, FaultError> {
        let (name, value) = match text.split_once(':') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        if let Some(fault) = fault_without_value(name) {
            return match value {
                None => Ok(fault),
                Some(_) => Err(FaultError::Superfluous(name.to_owned())),
            };
        }
        let needs = |needs: &'static str| {
            let fault = name.to_owned();
            value.ok_or(FaultError::Missing { fault, needs })
        };
        match name {
            "changed-host-key" => Ok(Fault::ChangedHostKey(number(needs("a number")?)?)),
            "slow-output" => Ok(Fault::SlowOutput(number(needs("bytes a second")?)?.max(1))),
            "flood" => Ok(Fault::Flood(value.map_or(Ok(FLOOD_DEFAULT), number)?)),
            "exit-signal" => Ok(Fault::ExitSignal(needs("a signal's name")?.to_owned())),
            "latency" => Ok(Fault::Latency(Duration::from_millis(number(needs(
                "milliseconds",
            )?)?))),
            "silent-after-message" => Ok(Fault::Cut(Cut {
                side: Side::Output,
                action: Action::Silence,
                at: Position::Message(number(needs("a number")?)?),
            })),
            _ => {
                let (action, side) = cut_name(name)?;
                let at = position(needs("a position")?)?;
                Ok(Fault::Cut(Cut { side, action, at }))
            }
        }
    }
}

fn fault_without_value(name: &str) -> Option<Fault> {
    Some(match name {
        "refuse" => Fault::Refuse,
        "connect-hang" => Fault::ConnectHang,
        "silent-after-connect" => Fault::SilentAfterConnect,
        "garbage-banner" => Fault::GarbageBanner,
        "endless-banner" => Fault::EndlessBanner,
        "max-startups" => Fault::MaxStartups,
        "not-allowed" => Fault::NotAllowed,
        "wrong-host-key" => Fault::WrongHostKey,
        "unknown-host-key" => Fault::UnknownHostKey,
        "revoked-host-key" => Fault::RevokedHostKey,
        "auth-denied" => Fault::AuthDenied,
        "never-close" => Fault::NeverClose,
        _ => return None,
    })
}

fn cut_name(name: &str) -> Result<(Action, Side), FaultError> {
    Ok(match name {
        "reset-at" => (Action::Reset, Side::Output),
        "close-at" => (Action::Close, Side::Output),
        "silent-at" => (Action::Silence, Side::Output),
        "reset-input-at" => (Action::Reset, Side::Input),
        "close-input-at" => (Action::Close, Side::Input),
        "silent-input-at" => (Action::Silence, Side::Input),
        _ => return Err(FaultError::Name(name.to_owned())),
    })
}

fn position(text: &str) -> Result<Position, FaultError> {
    if let Some(bytes) = text.strip_prefix("auth+") {
        Ok(Position::AfterAuthentication(number(bytes)?))
    } else if let Some(packets) = text.strip_prefix("message+") {
        Ok(Position::Message(number(packets)?))
    } else {
        Ok(Position::Byte(number(text)?))
    }
}

fn number(text: &str) -> Result<u64, FaultError> {
    text.parse().map_err(|source| FaultError::Number {
        text: text.to_owned(),
        source,
    })
}
