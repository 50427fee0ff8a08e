//! The list of what is otherwise by ssh, and why. A test for native hosts that has a row here ends so by ssh.

/// A host in trouble, and how it ends.
pub(crate) struct Difference {
    pub(crate) fault: &'static str,
    /// The kind of failure natively and by ssh; of no name is none.
    pub(crate) failure: [&'static str; 2],
    pub(crate) fate: [&'static str; 2],
    /// Why ssh does not let it be the same.
    pub(crate) why: &'static str,
}

/// Differences that are about more than one host's end stand in docs/transports.md.
pub(crate) const DIFFERENCES: &[Difference] = &[
    Difference {
        fault: "reset-at:auth+1500",
        failure: ["lost", "lost"],
        fate: ["ran", "may-have-run"],
        why: "ssh does not tell that the server has confirmed the command; only output proves it",
    },
    Difference {
        fault: "slow-output:200",
        failure: ["command-timeout", "command-timeout"],
        fate: ["ran", "may-have-run"],
        why: "ssh does not tell that the server has confirmed the command; only output proves it",
    },
    Difference {
        fault: "never-close",
        failure: ["", "command-timeout"],
        fate: ["ran", "ran"],
        why: "ssh tells a command's status by its own end, and it waits for the channel's",
    },
];

#[test]
fn every_difference_has_its_reason_and_is_one() {
    for difference in DIFFERENCES {
        assert!(!difference.why.is_empty());
        let same = difference.failure[0] == difference.failure[1]
            && difference.fate[0] == difference.fate[1];
        assert!(!same, "{}", difference.fault);
    }
}
