//! The table. In its texts HOST stands for `[address]:port`, ADDRESS and PORT for its parts, KEY for the server's key,
//! and OTHER, ECDSA and AUTHORITY for keys that it does not have; FILES is a folder with lists of revoked keys.

/// Nobody can be asked. `ask` is then another word for `yes`, and `off` is one for `no`.
const STRICTNESS: [&str; 5] = ["yes", "accept-new", "no", "ask", "off"];

#[derive(Clone, Copy)]
pub(crate) enum Which {
    Plain,
    Certified,
    WrongPrincipal,
    Expired,
    Future,
}

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) server: Which,
    pub(crate) known: &'static str,
    pub(crate) global: &'static str,
    pub(crate) options: &'static [&'static str],
    pub(crate) is_hashed: bool,
    /// Where ssh goes on and sshoal does not.
    pub(crate) stricter_with: &'static [&'static str],
}

const fn plain(name: &'static str, known: &'static str) -> Case {
    on(Which::Plain, name, known)
}

const fn on(server: Which, name: &'static str, known: &'static str) -> Case {
    Case {
        name,
        server,
        known,
        global: "",
        options: &[],
        is_hashed: false,
        stricter_with: &[],
    }
}

impl Case {
    /// What it is judged with: with the other words only where they matter most.
    pub(crate) fn strictness(&self) -> &'static [&'static str] {
        match self.name {
            "unknown" | "known" | "changed" => &STRICTNESS,
            _ => &STRICTNESS[..3],
        }
    }

    const fn with(self, options: &'static [&'static str]) -> Case {
        Case { options, ..self }
    }

    const fn global(self, global: &'static str) -> Case {
        Case { global, ..self }
    }

    const fn hashed(self) -> Case {
        Case {
            is_hashed: true,
            ..self
        }
    }

    const fn stricter(self, stricter_with: &'static [&'static str]) -> Case {
        Case {
            stricter_with,
            ..self
        }
    }
}

const ALIAS: &[&str] = &["HostKeyAlias=web1.example.com"];
/// ssh goes on with a revoked key then, though without passwords.
const OFF: &[&str] = &["no", "off"];

pub(crate) fn cases() -> Vec<Case> {
    [names(), keys(), revocations(), certificates()]
        .into_iter()
        .flatten()
        .collect()
}

fn names() -> Vec<Case> {
    let alias = |name, known| plain(name, known).with(ALIAS);
    vec![
        plain("unknown", "# mine\nother KEY\n"),
        plain("known", "HOST KEY\n"),
        plain("known in the global file", "# mine\n").global("HOST KEY\n"),
        plain("another key in the global file", "").global("HOST OTHER\n"),
        plain("known by the bare name", "ADDRESS KEY\n"),
        plain("the bare name has another key", "ADDRESS OTHER\nHOST KEY\n"),
        plain(
            "the key is the bare name's only",
            "ADDRESS KEY\nHOST OTHER\n",
        ),
        plain("another key, and that for the bare name", "ADDRESS OTHER\n"),
        plain("another port", "[ADDRESS]:1 KEY\n"),
        plain("two ports of one name", "[ADDRESS]:1 OTHER\nHOST KEY\n"),
        plain(
            "an authority's line of its own key",
            "@cert-authority HOST KEY\n",
        ),
        plain("hashed", "HOST KEY\n").hashed(),
        plain("hashed, changed", "HOST OTHER\n").hashed(),
        plain("hashed, by the bare name", "ADDRESS KEY\n").hashed(),
        plain("a list", "web9,HOST KEY\n"),
        plain("a pattern with a port", "[127.2.*]:PORT KEY\n"),
        plain("a pattern without a port", "127.2.* KEY\n"),
        plain("negated", "HOST,!HOST KEY\n"),
        plain("negated by pattern", "*,![127.2.*]:* KEY\n"),
        alias("alias", "web1.example.com KEY\n"),
        alias("alias, in capitals", "WEB1.Example.COM KEY\n"),
        alias(
            "alias, not with the port",
            "[web1.example.com]:PORT KEY\nHOST KEY\n",
        ),
        alias("alias, other key", "web1.example.com OTHER\nHOST KEY\n"),
        alias("alias, wildcard", "*.example.com KEY\n"),
        alias("alias, question mark", "web?.example.com KEY\n"),
        alias(
            "alias, wildcard that does not fit",
            "*.example.org,web?? KEY\n",
        ),
        alias("alias, negated", "*.example.com,!web1.example.com KEY\n"),
        alias(
            "alias, another one negated",
            "!web2.example.com,*.example.com KEY\n",
        ),
        alias("alias, hashed", "web1.example.com KEY\n").hashed(),
    ]
}

fn keys() -> Vec<Case> {
    const LOOPBACK: &[&str] = &["NoHostAuthenticationForLocalhost=yes"];
    const LOOPBACK_ALIAS: &[&str] = &[
        "NoHostAuthenticationForLocalhost=yes",
        "HostKeyAlias=web1.example.com",
    ];
    vec![
        plain("changed", "HOST OTHER\n"),
        plain("changed, of another type", "HOST ECDSA\n"),
        plain("one of two", "HOST OTHER\nHOST KEY\n"),
        plain("one of two types", "HOST ECDSA\nHOST KEY\n"),
        plain("damaged", "HOST ssh-ed25519 AAAA\n"),
        plain(
            "damaged, then good",
            "HOST ssh-ed25519 AAAA\nwhat is this\nHOST KEY\n",
        ),
        plain(
            "a comment, and a line end of other systems",
            "HOST KEY me@there\r\n",
        ),
        plain("the type is wrong", "HOST ssh-rsa AAAAC3NzaC1lZDI1NTE5\n"),
        plain("any key on the loopback", "HOST OTHER\n").with(LOOPBACK),
        plain("no key on the loopback", "").with(LOOPBACK),
        plain("a revoked one on the loopback", "").with(&[
            "NoHostAuthenticationForLocalhost=yes",
            "RevokedHostKeys=FILES/own.list",
        ]),
        plain("an alias on the loopback", "web1.example.com OTHER\n").with(LOOPBACK_ALIAS),
        plain(
            "no address is checked on the loopback",
            "HOST KEY\nADDRESS OTHER\n",
        )
        .with(&["CheckHostIP=yes"]),
    ]
}

fn revocations() -> Vec<Case> {
    vec![
        plain("revoked", "HOST KEY\n@revoked HOST KEY\n").stricter(OFF),
        plain("revoked for all", "HOST KEY\n@revoked * KEY\n").stricter(OFF),
        plain("revoked, and not known", "@revoked * KEY\n").stricter(OFF),
        plain("revoked in the global file", "HOST KEY\n")
            .global("@revoked * KEY\n")
            .stricter(OFF),
        plain("revoked, hashed", "HOST KEY\n@revoked HOST KEY\n")
            .hashed()
            .stricter(OFF),
        plain("another key revoked", "HOST KEY\n@revoked * OTHER\n"),
        plain("revoked for others", "HOST KEY\n@revoked web9 KEY\n"),
        plain(
            "revoked for the bare name alone",
            "HOST KEY\n@revoked ADDRESS KEY\n",
        ),
        plain("listed", "HOST KEY\n").with(&["RevokedHostKeys=FILES/own.list"]),
        plain("listed in a KRL", "HOST KEY\n").with(&["RevokedHostKeys=FILES/own.krl"]),
        plain("another one listed", "HOST KEY\n").with(&["RevokedHostKeys=FILES/other.list"]),
        plain("another one in a KRL", "HOST KEY\n").with(&["RevokedHostKeys=FILES/other.krl"]),
        plain("no such list", "HOST KEY\n").with(&["RevokedHostKeys=FILES/nothing"]),
    ]
}

fn certificates() -> Vec<Case> {
    use Which::{Certified, Expired, Future, WrongPrincipal};
    const ANY: &str = "@cert-authority * AUTHORITY\n";
    const ANY_AND_KEY: &str = "@cert-authority * AUTHORITY\nHOST KEY\n";
    vec![
        on(Certified, "certified", "@cert-authority HOST AUTHORITY\n"),
        on(
            Certified,
            "certified, bare name",
            "@cert-authority ADDRESS AUTHORITY\n",
        ),
        on(Certified, "certified, pattern", ANY),
        on(
            Certified,
            "certified, alias",
            "@cert-authority *.example.com AUTHORITY\n",
        )
        .with(ALIAS),
        on(Certified, "another authority", "@cert-authority * OTHER\n"),
        on(
            Certified,
            "an authority of others",
            "@cert-authority web9 AUTHORITY\n",
        ),
        on(
            Certified,
            "the authority's key as the host's",
            "HOST AUTHORITY\n",
        ),
        on(Certified, "certified, and known", ANY_AND_KEY),
        on(Certified, "no authority, but known", "HOST KEY\n"),
        on(Certified, "no authority, and changed", "HOST OTHER\n"),
        on(
            Certified,
            "authority revoked",
            "@cert-authority * AUTHORITY\n@revoked * AUTHORITY\n",
        )
        .stricter(OFF),
        on(
            Certified,
            "certified key revoked",
            "@cert-authority * AUTHORITY\n@revoked * KEY\n",
        )
        .stricter(OFF),
        on(Certified, "authority listed", ANY).with(&["RevokedHostKeys=FILES/authority.list"]),
        on(Certified, "authority in a KRL", ANY).with(&["RevokedHostKeys=FILES/authority.krl"]),
        on(Certified, "serial in a KRL", ANY).with(&["RevokedHostKeys=FILES/serial.krl"]),
        on(Certified, "certified key listed", ANY).with(&["RevokedHostKeys=FILES/own.list"]),
        on(Certified, "another one listed", ANY).with(&["RevokedHostKeys=FILES/other.krl"]),
        on(WrongPrincipal, "wrong principal", ANY),
        on(WrongPrincipal, "wrong principal, known", ANY_AND_KEY),
        on(Expired, "expired", ANY),
        on(Expired, "expired, known", ANY_AND_KEY),
        on(Future, "not yet valid", ANY),
        on(Future, "not yet valid, known", ANY_AND_KEY),
    ]
}
