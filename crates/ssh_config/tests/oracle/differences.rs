//! Where sshoal says something else than Debian's ssh 9.2, and why. Whatever is not listed here
//! must be the same.
//!
//! Cases leave out what the two cannot agree on:
//! - what ssh 9.2 does not know yet: `Match tagged`, `command`, `sessiontype`, `localnetwork` and
//!   `version`, `Tag`, `ChannelTimeout`, `ObscureKeystrokeTiming`, `RefuseConnection`,
//!   `VersionAddendum`, `WarnWeakCrypto`, tokens and variables in `Include`, `User` and `SetEnv`,
//!   `%j`, fractions of seconds. Unit tests have them;
//! - what ssh 9.2 still does: a second pass for `Match !final`, blanks around the `=` of a `Match`
//!   criterion, lists without a word, exit status 0 after an algorithm list that cannot be used;
//! - what sshoal does not: names of services for ports other than ssh's own, lines that are not
//!   UTF-8, `~user` in an `Include`, a look at whether the socket of `ForwardAgent` is there;
//! - user and port given with the host, which with sshoal beat an option `-o`, since a list of
//!   hosts may give each of them its own;
//! - paths of keys that cannot be expanded: `ssh -G` does not try, ssh and sshoal refuse them.

use crate::Settings;

/// A difference that is meant.
pub(crate) struct Difference {
    /// The keyword whose values differ.
    keyword: &'static str,
    /// Why they do.
    pub(crate) reason: &'static str,
    /// Whether it explains what ssh and sshoal say.
    explains: fn(theirs: &Settings, ours: &Settings) -> bool,
}

/// The difference that explains why the values of a keyword are not the same.
pub(crate) fn reason(
    keyword: &str,
    theirs: &Settings,
    ours: &Settings,
) -> Option<&'static Difference> {
    DIFFERENCES
        .iter()
        .find(|row| row.keyword == keyword && (row.explains)(theirs, ours))
}

pub(crate) const DIFFERENCES: &[Difference] = &[
    Difference {
        keyword: "forwardx11trusted",
        reason: "Debian's default is yes, OpenSSH's own is no",
        explains: |theirs, ours| {
            theirs["forwardx11trusted"] == ["yes"] && ours["forwardx11trusted"] == ["no"]
        },
    },
    Difference {
        keyword: "serveraliveinterval",
        reason: "Debian's default is 300 with BatchMode, OpenSSH's own is 0",
        explains: |theirs, ours| {
            theirs["serveraliveinterval"] == ["300"]
                && ours["batchmode"] == ["yes"]
                && ours["serveraliveinterval"] == ["0"]
        },
    },
    Difference {
        keyword: "ipqos",
        reason: "the default is DSCP EF and CS0 since OpenSSH 10.1",
        explains: |theirs, ours| {
            theirs["ipqos"] == ["lowdelay throughput"] && ours["ipqos"] == ["ef cs0"]
        },
    },
    Difference {
        keyword: "ipqos",
        reason: "lowdelay and throughput mean none since OpenSSH 10.1",
        explains: |theirs, ours| {
            let old = ["lowdelay", "throughput"];
            let renamed = theirs["ipqos"][0]
                .split(' ')
                .map(|name| match old.contains(&name) {
                    true => "none",
                    false => name,
                });
            ours["ipqos"] == [renamed.collect::<Vec<_>>().join(" ")]
        },
    },
    Difference {
        keyword: "identityfile",
        reason: "id_xmss and id_dsa are gone from the defaults since OpenSSH 10.0",
        explains: |theirs, ours| {
            let (theirs, ours) = (&theirs["identityfile"], &ours["identityfile"]);
            theirs[..ours.len()] == ours[..]
                && theirs[ours.len()..] == ["~/.ssh/id_xmss", "~/.ssh/id_dsa"]
        },
    },
    Difference {
        keyword: "revokedhostkeys",
        reason: "a list since OpenSSH 9.9, printed even if it is empty",
        explains: |theirs, ours| {
            !theirs.contains_key("revokedhostkeys") && ours["revokedhostkeys"] == ["none"]
        },
    },
    Difference {
        keyword: "revokedhostkeys",
        reason: "tokens and ~ are expanded since OpenSSH 9.9",
        explains: |theirs, _| theirs["revokedhostkeys"][0].starts_with("~/"),
    },
    Difference {
        keyword: "warnweakcrypto",
        reason: "new in OpenSSH 10.1",
        explains: |theirs, _| !theirs.contains_key("warnweakcrypto"),
    },
    Difference {
        keyword: "obscurekeystroketiming",
        reason: "new in OpenSSH 9.5",
        explains: |theirs, _| !theirs.contains_key("obscurekeystroketiming"),
    },
    Difference {
        keyword: "channeltimeout",
        reason: "new in OpenSSH 9.6",
        explains: |theirs, _| !theirs.contains_key("channeltimeout"),
    },
    Difference {
        keyword: "loglevel",
        reason: "the level has two names; OpenSSH's own first one is QUIET",
        explains: |theirs, ours| theirs["loglevel"] == ["SILENT"] && ours["loglevel"] == ["QUIET"],
    },
    Difference {
        keyword: "forwardagent",
        reason: "ssh prints a path although an earlier no holds, and forwards nothing",
        explains: |theirs, ours| {
            theirs["forwardagent"][0].starts_with(['/', '$']) && ours["forwardagent"] == ["no"]
        },
    },
    Difference {
        keyword: "proxyjump",
        reason: "ssh prints all hops but the last one as they were written",
        explains: |theirs, ours| {
            let plain = theirs["proxyjump"][0].replace("ssh://", "");
            plain != theirs["proxyjump"][0] && ours["proxyjump"] == [plain]
        },
    },
    Difference {
        keyword: "dynamicforward",
        reason: "ssh prints a LocalForward to a path as a DynamicForward, too",
        explains: |theirs, ours| {
            let none = Vec::new();
            let ours = ours.get("dynamicforward").unwrap_or(&none);
            let local = &theirs["localforward"];
            let is_local = |listen: &String| {
                local
                    .iter()
                    .any(|line| line.starts_with(&format!("{listen} /")))
            };
            let theirs = theirs["dynamicforward"].iter();
            theirs.filter(|&line| !is_local(line)).eq(ours)
        },
    },
    Difference {
        keyword: "controlpath",
        reason: "the jump host is part of %C since OpenSSH 9.8",
        explains: |theirs, ours| {
            ours.contains_key("proxyjump")
                && theirs["controlpath"][0].len() == ours["controlpath"][0].len()
        },
    },
];
