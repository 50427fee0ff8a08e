//! Cases put together at random, the same ones every time.

use std::fmt::Write as _;

use crate::Case;
use crate::lines::LINES;

/// Another number gives other cases.
const SEED: u64 = 20_261_121;

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

/// Lines that ssh refuses, or refuses unless an `IgnoreUnknown` covers them, or only warns of.
const WRONG: &[&str] = &[
    "AFSTokenPassing yes",
    "Protocol 1",
    "Cipher blowfish",
    "Ciphers aes128-crt",
    "HostKeyAlgorithms x*",
    "LocalForward 8080",
    "DynamicForward h:80:90",
    "TunnelDevice x",
    "EscapeChar ab",
    "StreamLocalBindMask 1000",
    "IPQoS 256",
    "ControlPersist Yes",
    "CanonicalDomains a..b",
    "CanonicalizePermittedCNAMEs a",
    "PermitRemoteOpen a:22 any",
    "AddKeysToAgent yes 5m",
    "SyslogFacility kern",
    "FingerprintHash crc32",
    "ControlMaster maybe",
    "ConnectionAttempts 0",
    "UserKnownHostsFile a none",
    "Match exec",
    "Host \"\"",
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

/// Cases without end; the n-th one is always the same.
pub(crate) fn cases() -> impl Iterator<Item = Case> {
    let mut random = Random(SEED);
    std::iter::repeat_with(move || case(&mut random))
}

fn case(random: &mut Random) -> Case {
    let included = random.below(3);
    let command = random.pick(&["", "", "true", "ls -l"]);
    let command: Vec<String> = command.split_whitespace().map(String::from).collect();
    let runs = !command.is_empty();
    let mut files = vec![("config".to_string(), file(random, included, runs))];
    for index in 0..included {
        files.push((format!("inc{index}"), file(random, 0, runs)));
    }
    let options = (0..random.below(4)).map(|_| {
        let (keyword, value) = line(random, runs);
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
        command,
    }
}

/// A line; seldom one that does not go together with a command, or its absence.
fn line<'a>(random: &mut Random, runs: bool) -> (&'a str, &'a str) {
    let (keyword, values) = LINES[random.below(LINES.len())];
    let value = random.pick(values);
    let conflicts = match (keyword, value) {
        ("RemoteCommand", _) => runs,
        ("ForkAfterAuthentication", "yes") => !runs,
        ("ProxyCommand", "-") => true,
        ("CanonicalizeFallbackLocal", "no") => random.below(3) > 0,
        _ => false,
    };
    if conflicts && random.below(10) > 0 {
        return line(random, runs);
    }
    (keyword, value)
}

fn file(random: &mut Random, included: usize, runs: bool) -> String {
    let mut text = String::new();
    let mut includes = 0;
    for _ in 0..10 + random.below(40) {
        let indent = random.pick(&["", "    ", "\t"]);
        let _ = match random.below(60) {
            0..5 => writeln!(text, "Host {}", patterns(random, " ")),
            5..9 => writeln!(text, "Match {}", criteria(random)),
            9..11 if includes < included => {
                includes += 1;
                let name = format!("inc{}", includes - 1);
                let name = random.pick(&[&name, &name, "inc*", "none*"]).to_string();
                writeln!(text, "{indent}Include @DIR@/{name}")
            }
            11 if random.below(8) == 0 => writeln!(text, "{indent}{}", random.pick(WRONG)),
            12 => writeln!(text, "{}", random.pick(&["", "# comment", "  \t", "#"])),
            _ => {
                let (keyword, value) = line(random, runs);
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
            .pick(&[
                "all",
                "final",
                "canonical",
                "!all",
                "final all",
                "final !canonical",
            ])
            .into();
    }
    let count = 1 + random.below(2);
    let criterion = |random: &mut Random| {
        let name = random.pick(&["host", "originalhost", "user", "localuser", "exec"]);
        let value = match name {
            "user" => random
                .pick(&["alice", "bob,carol", "*", "!alice,*", "query"])
                .to_string(),
            "localuser" => random.pick(&["*", "nobody"]).to_string(),
            "exec" => random
                .pick(&[
                    "true",
                    "false",
                    "\"test %n = web1\"",
                    "\"test %r%p = alice22\"",
                ])
                .to_string(),
            _ => patterns(random, ","),
        };
        format!("{}{name} {value}", random.pick(&["", "", "!"]))
    };
    (0..count)
        .map(|_| criterion(random))
        .collect::<Vec<_>>()
        .join(" ")
}
