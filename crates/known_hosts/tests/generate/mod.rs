//! Random known_hosts files and names to look for in them, the same at each run.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub(crate) fn pick<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items[self.below(items.len() as u64) as usize]
    }
}

/// A key's type and base64.
fn key(random: &mut Random) -> String {
    let seed = random.below(6) as u8;
    let string = |bytes: &[u8]| [&(bytes.len() as u32).to_be_bytes(), bytes].concat();
    let (name, blob) = match random.below(4) {
        0 => (
            "ssh-rsa",
            [string(b"ssh-rsa"), string(&[3]), string(&[seed | 1; 256])].concat(),
        ),
        1 => {
            let mut point = [seed; 65];
            point[0] = 4;
            let name = b"ecdsa-sha2-nistp256";
            let blob = [string(name), string(b"nistp256"), string(&point)].concat();
            ("ecdsa-sha2-nistp256", blob)
        }
        _ => (
            "ssh-ed25519",
            [string(b"ssh-ed25519"), string(&[seed; 32])].concat(),
        ),
    };
    format!(
        "{name}{}{}",
        random.pick(&[" ", " ", " ", "\t", "  "]),
        STANDARD.encode(blob)
    )
}

/// A name, an address, or one of them with a port; the names are few, so that they meet.
pub(crate) fn name(random: &mut Random) -> String {
    let stem = random.pick(&["web", "DB", "a", "node-"]);
    let end = random.pick(&["", ".example.com", ".B.org"]);
    let name = format!("{stem}{}{end}", random.below(4));
    match random.below(8) {
        0 | 1 => format!("[{name}]:{}", random.pick(&["2222", "7999"])),
        2 => format!("10.0.0.{}", random.below(4)),
        3 => format!("2001:db8::{}", random.below(4)),
        4 => format!("[10.0.0.{}]:2222", random.below(3)),
        _ => name,
    }
}

fn hosts(random: &mut Random, wild: bool) -> String {
    let item = |random: &mut Random| match random.below(if wild { 9 } else { 5 }) {
        5 => {
            let end = random.pick(&["", ".example.com", "1", "?"]);
            format!("{}*{end}", random.pick(&["", "!", "w", "[web*"]))
        }
        6 => random
            .pick(&[
                "web?", "a?.*", "[*]:2222", "!web1*", "*,!a*", "10.0.0.?", "*.*.*", "!",
            ])
            .to_string(),
        7 => format!("!{}", name(random)),
        8 => format!(
            "{}{}",
            "x".repeat(1 + random.below(1200) as usize),
            random.pick(&["", "*"])
        ),
        _ => name(random),
    };
    let count = 1 + random.below(3);
    let items: Vec<String> = (0..count).map(|_| item(random)).collect();
    items.join(",")
}

/// Lines that nothing makes a key of. A line of a single word is not among them: ssh-keygen 9.2
/// reads on behind its end.
fn broken(random: &mut Random) -> String {
    let name = name(random);
    let key = key(random);
    match random.below(9) {
        0 => format!("{name} "),
        1 => format!("{name} ssh-ed25519"),
        2 => format!("{name} ssh-ed25519 # comment"),
        3 => format!("{name} ssh-unheard-of AAAA"),
        4 => format!("{name} 1024 35 123456"),
        5 => format!("@what {name} {key}"),
        6 => format!("@revoked @cert-authority {name} {key}"),
        7 => format!("|1|AAAA|BBBB {key}"),
        _ => format!("@revoked\t{name} {key}"),
    }
}

/// What goes into a file.
#[derive(Clone, Copy)]
pub(crate) struct Content {
    pub(crate) lines: u64,
    /// Of a hundred lines, how many are broken.
    pub(crate) broken: u64,
    /// Names of lines that are already hashed, as `ssh-keygen -H` made them.
    pub(crate) hashed: bool,
}

pub(crate) fn file(random: &mut Random, content: Content, pool: &[String]) -> String {
    let mut text = String::new();
    for _ in 0..content.lines {
        let end = random.pick(&[
            "\n",
            "\n",
            "\n",
            " me@there\n",
            "  # two words\n",
            "\r\n",
            "\t\n",
        ]);
        let start = random.pick(&["", "", "", "", " ", "\t "]);
        let line = match random.below(100) {
            0..4 => {
                text += random.pick(&["\n", "# a comment\n", "  #\n", "\t\n"]);
                continue;
            }
            4..12 => {
                let marker = random.pick(&["@revoked", "@cert-authority"]);
                format!("{marker} {} {}", hosts(random, true), key(random))
            }
            roll if roll >= 100 - content.broken => broken(random),
            roll if content.hashed && roll < 45 => {
                let names: Vec<&str> = pool.iter().map(String::as_str).collect();
                format!("{} {}", random.pick(&names), key(random))
            }
            roll => format!("{} {}", hosts(random, roll < 70), key(random)),
        };
        text += &format!("{start}{line}{end}");
    }
    if random.below(4) == 0 {
        text.truncate(text.trim_end().len());
    }
    text
}
