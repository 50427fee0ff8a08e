//! Cases put together at random, the same ones every time.

use std::fmt::Write as _;

use crate::Case;

/// Another number gives other cases.
const SEED: u64 = 20_261_121;
const CASES: usize = 400;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }

    fn pick<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items[self.below(items.len())]
    }
}

/// Keywords and values that ssh takes.
const LINES: &[(&str, &[&str])] = &[
    (
        "HostName",
        &["real.example.com", "%h.Example.org", "10.0.0.1", "%h%%"],
    ),
    ("User", &["alice", "bob", "\"carol\""]),
    ("Port", &["2222", "22", "8022"]),
    ("AddressFamily", &["inet", "inet6", "any"]),
    ("BindAddress", &["127.0.0.1", "::1"]),
    (
        "ProxyJump",
        &["jump", "u@j1:2222,j2", "[::1]:23", "ssh://v@j3"],
    ),
    (
        "ProxyCommand",
        &["nc %h %p", "none", "sh -c 'nc %h 22' # no comment"],
    ),
    ("ConnectTimeout", &["10", "1m", "none", "2h3"]),
    ("ConnectionAttempts", &["1", "5"]),
    ("ServerAliveInterval", &["0", "15", "1m30s"]),
    ("ServerAliveCountMax", &["2", "9"]),
    ("TCPKeepAlive", &["yes", "no", "TRUE", "False"]),
    ("Compression", &["yes", "no"]),
    (
        "UserKnownHostsFile",
        &[
            "~/kh",
            "/kh/%h /kh2/%p/%r",
            "none",
            "/a/%n/%k",
            "\"/a b\" /c",
        ],
    ),
    ("GlobalKnownHostsFile", &["/gkh", "none", "/g1 /g2"]),
    (
        "StrictHostKeyChecking",
        &["yes", "no", "ask", "accept-new", "off"],
    ),
    ("HostKeyAlias", &["alias", "other.example.com"]),
    ("CheckHostIP", &["yes", "no"]),
    ("RequiredRSASize", &["2048", "3072"]),
    (
        "IdentityFile",
        &["~/.ssh/one", "/keys/two", "\"/keys/th ree\"", "~/four"],
    ),
    ("CertificateFile", &["~/.ssh/one-cert.pub", "/certs/two"]),
    ("IdentitiesOnly", &["yes", "no"]),
    (
        "IdentityAgent",
        &[
            "none",
            "SSH_AUTH_SOCK",
            "~/agent.sock",
            "$SSHOAL_TEST",
            "/a/%h/%r",
        ],
    ),
    (
        "PreferredAuthentications",
        &["publickey", "publickey,keyboard-interactive"],
    ),
    (
        "PubkeyAuthentication",
        &["yes", "no", "unbound", "host-bound"],
    ),
    ("PasswordAuthentication", &["yes", "no"]),
    ("KbdInteractiveAuthentication", &["yes", "no"]),
    ("NumberOfPasswordPrompts", &["1", "0"]),
    ("BatchMode", &["yes", "no"]),
    (
        "KexAlgorithms",
        &[
            "curve25519-sha256",
            "-diffie*",
            "+diffie-hellman-group14-sha1",
            "^ecdh-sha2-nistp256",
        ],
    ),
    (
        "Ciphers",
        &[
            "aes128-ctr,aes256-ctr",
            "-chacha20*",
            "+aes128-cbc",
            "^aes256-gcm@openssh.com",
        ],
    ),
    (
        "MACs",
        &["hmac-sha2-256", "-umac*", "+hmac-md5", "^hmac-sha2-512"],
    ),
    (
        "HostKeyAlgorithms",
        &[
            "ssh-ed25519",
            "-*cert*",
            "+ssh-rsa",
            "^rsa-sha2-512,rsa-sha2-256",
        ],
    ),
    (
        "PubkeyAcceptedAlgorithms",
        &["ssh-ed25519", "-sk-*", "+ssh-rsa", "^rsa-sha2-256"],
    ),
    (
        "CASignatureAlgorithms",
        &["ssh-ed25519", "-sk-*,rsa*", "^rsa-sha2-256"],
    ),
    (
        "RekeyLimit",
        &["1G", "default 1h", "500M none", "1.5M 90", "0"],
    ),
    ("SendEnv", &["LANG", "LC_*", "-LC_*", "A B -L*"]),
    ("SetEnv", &["A=1", "B=2 C=\"3 4\"", "A=2 A=3"]),
    ("RequestTTY", &["yes", "no", "force", "auto"]),
    ("RemoteCommand", &["uptime", "echo %h %p %r # x", "none"]),
    ("ForwardAgent", &["yes", "no", "/agent/%r", "$SSHOAL_TEST"]),
    ("LogLevel", &["QUIET", "error", "Debug2", "DEBUG1"]),
    ("IgnoreUnknown", &["Frob*", "wibble"]),
    // Without a field.
    ("ForwardX11", &["yes", "no"]),
    ("ControlPath", &["~/.ssh/%C", "none"]),
    ("ControlPersist", &["10m", "yes"]),
    ("GSSAPIAuthentication", &["yes", "no"]),
    ("HashKnownHosts", &["yes"]),
    ("EscapeChar", &["none", "~"]),
];

/// Lines that ssh refuses, or refuses unless an `IgnoreUnknown` covers them.
const WRONG: &[&str] = &[
    "Port many",
    "BatchMode perhaps",
    "Frobnicate yes",
    "User",
    "ConnectTimeout 5x",
    "IdentitiesOnly yes no",
    "Host \"open",
    "Match user",
    "RekeyLimit 3",
    "SendEnv A=B",
];

const HOSTS: &[&str] = &["web1", "web2.example.com", "db", "DB", "10.0.0.7"];
const PATTERNS: &[&str] = &[
    "*",
    "web*",
    "web?",
    "db",
    "!web1",
    "!db",
    "*.example.com",
    "10.0.0.?",
    "D*",
    "nobody",
];

pub(crate) fn cases() -> impl Iterator<Item = Case> {
    let mut random = Random(SEED);
    (0..CASES).map(move |_| case(&mut random))
}

fn case(random: &mut Random) -> Case {
    let included = random.below(3);
    let mut files = vec![("config".to_string(), file(random, included))];
    for index in 0..included {
        files.push((format!("inc{index}"), file(random, 0)));
    }
    let options = (0..random.below(4)).map(|_| {
        let (keyword, value) = line(random);
        format!("{keyword}{}{value}", random.pick(&["=", " ", " = "]))
    });
    let mut options: Vec<String> = options.collect();
    let user = (random.below(4) == 0).then(|| "query".to_string());
    let port = (random.below(4) == 0).then_some(77);
    // With ssh an option beats what is given with the host; here it is the other way round.
    options.retain(|option| {
        !(option.starts_with("User") && user.is_some()
            || option.starts_with("Port") && port.is_some())
    });
    Case {
        options,
        files,
        host: random.pick(HOSTS).into(),
        user,
        port,
    }
}

fn line<'a>(random: &mut Random) -> (&'a str, &'a str) {
    let (keyword, values) = LINES[random.below(LINES.len())];
    (keyword, random.pick(values))
}

fn file(random: &mut Random, included: usize) -> String {
    let mut text = String::new();
    let mut includes = 0;
    for _ in 0..10 + random.below(40) {
        let indent = random.pick(&["", "    ", "\t"]);
        let _ = match random.below(60) {
            0..5 => writeln!(text, "Host {}", patterns(random, " ")),
            5..9 => writeln!(text, "Match {}", criteria(random)),
            9..11 if includes < included => {
                includes += 1;
                writeln!(text, "{indent}Include @DIR@/inc{}", includes - 1)
            }
            11 if random.below(8) == 0 => writeln!(text, "{indent}{}", random.pick(WRONG)),
            12 => writeln!(text, "{}", random.pick(&["", "# comment", "  \t", "#"])),
            _ => {
                let (keyword, value) = line(random);
                let keyword = match random.below(3) {
                    0 => keyword.to_lowercase(),
                    1 => keyword.to_uppercase(),
                    _ => keyword.to_string(),
                };
                let separator = random.pick(&[" ", "=", "\t", " = "]);
                writeln!(text, "{indent}{keyword}{separator}{value}")
            }
        };
    }
    text
}

fn patterns(random: &mut Random, separator: &str) -> String {
    let count = 1 + random.below(3);
    (0..count)
        .map(|_| random.pick(PATTERNS))
        .collect::<Vec<_>>()
        .join(separator)
}

fn criteria(random: &mut Random) -> String {
    if random.below(6) == 0 {
        return random
            .pick(&["all", "final", "canonical", "!all", "final all"])
            .into();
    }
    let count = 1 + random.below(2);
    let criterion = |random: &mut Random| {
        let name = random.pick(&["host", "originalhost", "user", "localuser"]);
        let value = match name {
            "user" => random
                .pick(&["alice", "bob,carol", "*", "!alice,*", "query"])
                .to_string(),
            "localuser" => random.pick(&["*", "nobody"]).to_string(),
            _ => patterns(random, ","),
        };
        format!("{}{name} {value}", random.pick(&["", "", "!"]))
    };
    (0..count)
        .map(|_| criterion(random))
        .collect::<Vec<_>>()
        .join(" ")
}
