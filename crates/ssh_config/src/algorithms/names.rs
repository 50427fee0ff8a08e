//! The names that OpenSSH 9.2 to 10.5 takes for algorithms, whether or not sshoal has them.

use crate::pattern;

/// What an algorithm list is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// `ciphers` (cipher.c)
    Cipher,
    /// `macs` (mac.c)
    Mac,
    /// `kexalgs` (kex-names.c)
    Kex,
    /// `keyimpls` (sshkey.c); patterns may stand for names.
    Key,
    /// Those of `Key` that are no certificates.
    PlainKey,
    /// `gss_kexalgs` of the key exchange patch that Debian and Fedora carry; names are prefixes.
    GssKex,
}

const CIPHERS: &[&str] = &[
    "3des-cbc",
    "aes128-cbc",
    "aes192-cbc",
    "aes256-cbc",
    "aes128-ctr",
    "aes192-ctr",
    "aes256-ctr",
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "chacha20-poly1305@openssh.com",
];

const MACS: &[&str] = &[
    "hmac-sha1",
    "hmac-sha1-96",
    "hmac-sha2-256",
    "hmac-sha2-512",
    "hmac-md5",
    "hmac-md5-96",
    "umac-64@openssh.com",
    "umac-128@openssh.com",
    "hmac-sha1-etm@openssh.com",
    "hmac-sha1-96-etm@openssh.com",
    "hmac-sha2-256-etm@openssh.com",
    "hmac-sha2-512-etm@openssh.com",
    "hmac-md5-etm@openssh.com",
    "hmac-md5-96-etm@openssh.com",
    "umac-64-etm@openssh.com",
    "umac-128-etm@openssh.com",
];

const KEXES: &[&str] = &[
    "diffie-hellman-group1-sha1",
    "diffie-hellman-group14-sha1",
    "diffie-hellman-group14-sha256",
    "diffie-hellman-group16-sha512",
    "diffie-hellman-group18-sha512",
    "diffie-hellman-group-exchange-sha1",
    "diffie-hellman-group-exchange-sha256",
    "ecdh-sha2-nistp256",
    "ecdh-sha2-nistp384",
    "ecdh-sha2-nistp521",
    "curve25519-sha256",
    "curve25519-sha256@libssh.org",
    "sntrup761x25519-sha512",
    "sntrup761x25519-sha512@openssh.com",
    "mlkem768x25519-sha256",
    "mlkem768nistp256-sha256",
];

const KEYS: &[&str] = &[
    "ssh-ed25519",
    "ssh-ed25519-cert-v01@openssh.com",
    "sk-ssh-ed25519@openssh.com",
    "sk-ssh-ed25519-cert-v01@openssh.com",
    "ssh-mldsa44-ed25519@openssh.com",
    "ssh-mldsa44-ed25519-cert-v01@openssh.com",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp256-cert-v01@openssh.com",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp384-cert-v01@openssh.com",
    "ecdsa-sha2-nistp521",
    "ecdsa-sha2-nistp521-cert-v01@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
    "sk-ecdsa-sha2-nistp256-cert-v01@openssh.com",
    "webauthn-sk-ecdsa-sha2-nistp256@openssh.com",
    "webauthn-sk-ecdsa-sha2-nistp256-cert-v01@openssh.com",
    "ssh-dss",
    "ssh-dss-cert-v01@openssh.com",
    "ssh-rsa",
    "ssh-rsa-cert-v01@openssh.com",
    "rsa-sha2-256",
    "rsa-sha2-256-cert-v01@openssh.com",
    "rsa-sha2-512",
    "rsa-sha2-512-cert-v01@openssh.com",
];

const GSS_KEXES: &[&str] = &[
    "gss-gex-sha1-",
    "gss-group1-sha1-",
    "gss-group14-sha1-",
    "gss-group14-sha256-",
    "gss-group16-sha512-",
    "gss-nistp256-sha256-",
    "gss-curve25519-sha256-",
];

impl Family {
    /// Why a list cannot be one of this family: an algorithm that no release knows. An empty
    /// name ends the list, and what is removed need not be known (`ciphers_valid` and its like).
    pub(crate) fn check(self, text: &str) -> Result<(), String> {
        if text.starts_with('-') && self != Family::GssKex {
            return Ok(());
        }
        let names = text.strip_prefix(['+', '^']).unwrap_or(text);
        for name in names.split(',').take_while(|name| !name.is_empty()) {
            if !self.knows(name) {
                return Err(format!("OpenSSH has no algorithm \"{name}\" to use here"));
            }
        }
        Ok(())
    }

    fn knows(self, name: &str) -> bool {
        match self {
            Family::Cipher => CIPHERS.contains(&name),
            Family::Mac => MACS.contains(&name),
            Family::Kex => KEXES.contains(&name),
            Family::Key => is_key(name),
            Family::PlainKey => {
                is_key(name) && !(KEYS.contains(&name) && name.contains("-cert-v01@"))
            }
            Family::GssKex => GSS_KEXES.iter().any(|prefix| name.starts_with(prefix)),
        }
    }
}

/// `sshkey_names_valid2` (sshkey.c)
fn is_key(name: &str) -> bool {
    let matches = |key: &&str| pattern::matches(name.as_bytes(), key.as_bytes());
    KEYS.iter().any(matches)
}
