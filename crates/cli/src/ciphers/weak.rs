//! What a server should not offer any more, and why.

use sshoal_proto::ServerLists;

/// Something weak that a server offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Weakness {
    /// `cipher`, `MAC`, `key exchange`, `host key`
    pub(super) kind: &'static str,
    /// The keyword of sshd_config that takes it away.
    pub(super) keyword: &'static str,
    pub(super) name: String,
    pub(super) why: &'static str,
}

/// Marks a server with strict key exchange (PROTOCOL of OpenSSH, section 1.10).
const STRICT: &str = "kex-strict-s-v00@openssh.com";
const SHA1: &str = "SHA-1 is broken";

/// Why a cipher should not be used.
pub(super) fn cipher(name: &str) -> Option<&'static str> {
    if name == "none" {
        return Some("nothing is encrypted");
    }
    if name.starts_with("arcfour") {
        return Some("RC4 leaks what it encrypts (RFC 8758)");
    }
    if name.starts_with("3des") || name.starts_with("blowfish") || name.starts_with("cast128") {
        return Some("blocks of 64 bits repeat after some gigabytes");
    }
    let is_cbc = name.ends_with("-cbc") || name.contains("rijndael-cbc");
    is_cbc.then_some("CBC mode lets an attacker guess plaintext")
}

/// Why a MAC should not be used.
pub(super) fn mac(name: &str) -> Option<&'static str> {
    if name == "none" {
        return Some("nothing is authenticated");
    }
    if name.contains("md5") {
        return Some("MD5 is broken");
    }
    if name.contains("sha1") {
        return Some(SHA1);
    }
    name.contains("-96").then_some("its tag is cut short")
}

/// Why a key exchange should not be used.
pub(super) fn key_exchange(name: &str) -> Option<&'static str> {
    if name == "diffie-hellman-group1-sha1" {
        return Some("a group of 1,024 bits can be computed (Logjam)");
    }
    name.ends_with("-sha1").then_some(SHA1)
}

/// Why a host key algorithm should not be used.
fn host_key(name: &str) -> Option<&'static str> {
    if name.starts_with("ssh-dss") {
        return Some("DSA has keys of 1,024 bits");
    }
    name.starts_with("ssh-rsa").then_some(SHA1)
}

/// Whether a cipher is weak with this server alone, which has no strict key exchange (CVE-2023-48795, Terrapin).
pub(super) fn is_exposed(cipher: &str, server: &ServerLists) -> bool {
    let is_strict = server.kex.iter().any(|name| name == STRICT);
    cipher.starts_with("chacha20-poly1305@") && !is_strict
}

/// All that the server should not offer.
pub(super) fn offered(server: &ServerLists) -> Vec<Weakness> {
    type Judge = fn(&str) -> Option<&'static str>;
    let lists: [(&'static str, &'static str, &[String], Judge); 4] = [
        ("cipher", "Ciphers", &server.ciphers, cipher),
        ("MAC", "MACs", &server.macs, mac),
        ("key exchange", "KexAlgorithms", &server.kex, key_exchange),
        ("host key", "HostKeyAlgorithms", &server.host_keys, host_key),
    ];
    let mut found: Vec<Weakness> = Vec::new();
    for (kind, keyword, names, why) in lists {
        let weak = names.iter().filter_map(|name| Some((name, why(name)?)));
        found.extend(weak.map(|(name, why)| Weakness {
            kind,
            keyword,
            name: name.clone(),
            why,
        }));
    }
    let exposed = |name: &&String| is_exposed(name, server);
    if let Some(name) = server.ciphers.iter().find(exposed) {
        found.push(Weakness {
            kind: "cipher",
            keyword: "Ciphers",
            name: name.clone(),
            why: "without strict key exchange, messages can be cut off its beginning (Terrapin): update the server",
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &str) -> Vec<String> {
        list.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn what_is_weak_is_named_and_what_is_not_is_not() {
        let server = ServerLists {
            kex: names(
                "curve25519-sha256 diffie-hellman-group1-sha1 diffie-hellman-group14-sha1 diffie-hellman-group14-sha256",
            ),
            host_keys: names("ssh-ed25519 ssh-rsa rsa-sha2-256 ssh-dss"),
            ciphers: names(
                "chacha20-poly1305@openssh.com aes128-ctr aes128-cbc 3des-cbc arcfour256 aes256-gcm@openssh.com",
            ),
            macs: names("umac-64-etm@openssh.com hmac-sha1 hmac-md5-etm@openssh.com hmac-sha2-256"),
        };
        let found = offered(&server);
        let found: Vec<&str> = found.iter().map(|weak| weak.name.as_str()).collect();
        assert_eq!(
            found,
            [
                "aes128-cbc",
                "3des-cbc",
                "arcfour256",
                "hmac-sha1",
                "hmac-md5-etm@openssh.com",
                "diffie-hellman-group1-sha1",
                "diffie-hellman-group14-sha1",
                "ssh-rsa",
                "ssh-dss",
                "chacha20-poly1305@openssh.com",
            ]
        );
    }

    #[test]
    fn a_server_of_today_offers_nothing_weak() {
        let server = ServerLists {
            kex: names("mlkem768x25519-sha256 kex-strict-s-v00@openssh.com"),
            host_keys: names("rsa-sha2-512 ssh-ed25519"),
            ciphers: names("chacha20-poly1305@openssh.com aes128-gcm@openssh.com aes128-ctr"),
            macs: names("umac-128-etm@openssh.com hmac-sha2-512"),
        };
        assert_eq!(offered(&server), []);
    }
}
