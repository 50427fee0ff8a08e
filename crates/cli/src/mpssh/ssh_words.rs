//! What ssh says of a host that it does not get to, which mpssh.py shows as the host's standard error: people and their
//! scripts look for these words. Where ssh would not say more than we do, it is ours.

use sshoal_fleet::{Failure, FailureKind};
use sshoal_net::{HostPlan, NativePlan};

/// A host as ssh's messages have it.
pub(super) struct Reached {
    name: String,
    port: u16,
    user: String,
    /// Whether nothing stands between it and us: else ssh's words are about that.
    directly: bool,
}

impl Reached {
    pub(super) fn of(host: &HostPlan) -> Reached {
        let is_direct = |native: &NativePlan| {
            native.endpoint.via.is_none() && native.endpoint.proxy_command.is_none()
        };
        Reached {
            name: host.name().to_owned(),
            port: host.port(),
            user: host.user().to_owned(),
            directly: host.native().is_some_and(is_direct),
        }
    }

    /// The lines on a failure.
    pub(super) fn words(&self, failure: &Failure) -> String {
        match self.words_of_ssh(failure) {
            Some(words) => words,
            None => ours(failure),
        }
    }

    /// ssh_connect and resolve_host (sshconnect.c, ssh.c), userauth_failure (sshconnect2.c).
    fn words_of_ssh(&self, failure: &Failure) -> Option<String> {
        if !self.directly {
            return None;
        }
        let Reached {
            name, port, user, ..
        } = self;
        let connecting = |why: &str| format!("ssh: connect to host {name} port {port}: {why}");
        let detail = failure.detail.as_str();
        match failure.kind {
            FailureKind::Resolve => {
                let why = detail.split(": ").last().filter(|why| *why != detail)?;
                Some(format!("ssh: Could not resolve hostname {name}: {why}"))
            }
            FailureKind::Refused => Some(connecting("Connection refused")),
            FailureKind::ConnectTimeout => Some(connecting("Connection timed out")),
            FailureKind::Unreachable => {
                let (before, _) = detail.split_once(" (os error ")?;
                Some(connecting(before.rsplit(": ").next()?))
            }
            FailureKind::AuthDenied => {
                let (_, methods) = detail.split_once("the server takes ")?;
                let methods = methods.replace(", ", ",");
                Some(format!("{user}@{name}: Permission denied ({methods})."))
            }
            _ => None,
        }
    }
}

/// What ssh says last of a host whose key is not to be trusted (sshconnect.c).
const NOT_TRUSTED: &str = "\nHost key verification failed.";

/// The lines on a failure that ssh has no words for, or more than we have.
pub(super) fn ours(failure: &Failure) -> String {
    let last = match failure.kind {
        FailureKind::HostKeyUnknown | FailureKind::HostKeyChanged | FailureKind::HostKeyRevoked => {
            NOT_TRUSTED
        }
        _ => "",
    };
    format!("{}\nto do: {}{last}", failure.detail, failure.remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIRECT: fn() -> Reached = || Reached {
        name: "web1".to_owned(),
        port: 2222,
        user: "root".to_owned(),
        directly: true,
    };

    #[test]
    fn what_ssh_says_is_said_in_its_words() {
        for (kind, detail, words) in [
            (
                FailureKind::Resolve,
                "looking up web1: failed to lookup address information: Name or service not known",
                "ssh: Could not resolve hostname web1: Name or service not known",
            ),
            (
                FailureKind::Refused,
                "connecting to 10.0.0.1:2222: Connection refused (os error 111)",
                "ssh: connect to host web1 port 2222: Connection refused",
            ),
            (
                FailureKind::Unreachable,
                "connecting to [fe80::1]:22: No route to host (os error 113)",
                "ssh: connect to host web1 port 2222: No route to host",
            ),
            (
                FailureKind::ConnectTimeout,
                "no connection within 10s",
                "ssh: connect to host web1 port 2222: Connection timed out",
            ),
            (
                FailureKind::AuthDenied,
                "logging in as root: there was nothing to offer; the server takes publickey, password",
                "root@web1: Permission denied (publickey,password).",
            ),
        ] {
            assert_eq!(DIRECT().words(&Failure::new(kind, detail)), words);
        }
    }

    #[test]
    fn all_else_is_said_in_ours_with_what_to_do() {
        let failure = Failure::with_remedy(FailureKind::Lost, "it broke", "look there");
        assert_eq!(DIRECT().words(&failure), "it broke\nto do: look there");
        let behind = Reached {
            directly: false,
            ..DIRECT()
        };
        let failure = Failure::with_remedy(FailureKind::Refused, "jump host a: no", "start it");
        assert_eq!(behind.words(&failure), "jump host a: no\nto do: start it");
        let failure = Failure::with_remedy(FailureKind::Resolve, "web1 has no address", "x");
        assert_eq!(DIRECT().words(&failure), "web1 has no address\nto do: x");
    }
}
