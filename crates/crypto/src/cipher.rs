//! Names, sizes and limits of ciphers and MACs.

use aws_lc_rs::{aead, cipher as block_cipher, hmac};

/// One name of KEXINIT's lists of encryption algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cipher {
    /// AES-128 in Galois/counter mode, as OpenSSH negotiates RFC 5647 (PROTOCOL section 1.6).
    Aes128Gcm,
    /// AES-256 in Galois/counter mode.
    Aes256Gcm,
    /// ChaCha20 with Poly1305 and an encrypted length (PROTOCOL.chacha20poly1305).
    ChaCha20Poly1305,
    /// AES-128 in counter mode (RFC 4344 section 4).
    Aes128Ctr,
    /// AES-192 in counter mode.
    Aes192Ctr,
    /// AES-256 in counter mode.
    Aes256Ctr,
}

impl Cipher {
    /// All ciphers in the order of preference for a CPU with AES instructions.
    pub const ALL: &'static [Cipher] = &[
        Cipher::Aes128Gcm,
        Cipher::Aes256Gcm,
        Cipher::ChaCha20Poly1305,
        Cipher::Aes128Ctr,
        Cipher::Aes192Ctr,
        Cipher::Aes256Ctr,
    ];

    /// The order without them: there AES is slow.
    const WITHOUT_AES_INSTRUCTIONS: &'static [Cipher] = &[
        Cipher::ChaCha20Poly1305,
        Cipher::Aes128Gcm,
        Cipher::Aes256Gcm,
        Cipher::Aes128Ctr,
        Cipher::Aes192Ctr,
        Cipher::Aes256Ctr,
    ];

    /// All ciphers, the fastest on this CPU first.
    pub fn preferred() -> &'static [Cipher] {
        if has_aes_instructions() {
            Cipher::ALL
        } else {
            Cipher::WITHOUT_AES_INSTRUCTIONS
        }
    }

    /// The cipher of this name, if this crate has it.
    pub fn by_name(name: &str) -> Option<Cipher> {
        Cipher::ALL
            .iter()
            .copied()
            .find(|cipher| cipher.name() == name)
    }

    /// As negotiated.
    pub const fn name(self) -> &'static str {
        match self {
            Cipher::Aes128Gcm => "aes128-gcm@openssh.com",
            Cipher::Aes256Gcm => "aes256-gcm@openssh.com",
            Cipher::ChaCha20Poly1305 => "chacha20-poly1305@openssh.com",
            Cipher::Aes128Ctr => "aes128-ctr",
            Cipher::Aes192Ctr => "aes192-ctr",
            Cipher::Aes256Ctr => "aes256-ctr",
        }
    }

    /// Octets of key to derive.
    pub const fn key_len(self) -> usize {
        match self {
            Cipher::Aes128Gcm | Cipher::Aes128Ctr => 16,
            Cipher::Aes192Ctr => 24,
            Cipher::Aes256Gcm | Cipher::Aes256Ctr => 32,
            Cipher::ChaCha20Poly1305 => 64,
        }
    }

    /// Octets of initialisation vector to derive.
    pub const fn iv_len(self) -> usize {
        match self {
            Cipher::Aes128Gcm | Cipher::Aes256Gcm => 12,
            Cipher::ChaCha20Poly1305 => 0,
            Cipher::Aes128Ctr | Cipher::Aes192Ctr | Cipher::Aes256Ctr => 16,
        }
    }

    /// Octets to a multiple of which a packet is padded; at least 8 (RFC 4253 section 6).
    pub const fn block_len(self) -> usize {
        match self {
            Cipher::ChaCha20Poly1305 => 8,
            _ => 16,
        }
    }

    /// Whether the cipher authenticates by itself, so that no MAC is negotiated.
    pub const fn is_aead(self) -> bool {
        matches!(
            self,
            Cipher::Aes128Gcm | Cipher::Aes256Gcm | Cipher::ChaCha20Poly1305
        )
    }

    /// Octets of tag that an AEAD cipher appends; none for others, whose MAC appends one.
    pub const fn tag_len(self) -> usize {
        if self.is_aead() { 16 } else { 0 }
    }

    /// Octets in one direction after which OpenSSH wants new keys (packet.c, `ssh_set_newkeys`): 2^32 blocks
    /// of AES as RFC 4344 section 3.2 says, 2^30 octets with smaller blocks.
    pub const fn rekey_bytes(self) -> u64 {
        match self.block_len() {
            16 => 16 << 32,
            _ => 1 << 30,
        }
    }

    pub(crate) fn aead(self) -> Option<&'static aead::Algorithm> {
        match self {
            Cipher::Aes128Gcm => Some(&aead::AES_128_GCM),
            Cipher::Aes256Gcm => Some(&aead::AES_256_GCM),
            _ => None,
        }
    }

    pub(crate) fn counter_mode(self) -> Option<&'static block_cipher::Algorithm> {
        match self {
            Cipher::Aes128Ctr => Some(&block_cipher::AES_128),
            Cipher::Aes192Ctr => Some(&block_cipher::AES_192),
            Cipher::Aes256Ctr => Some(&block_cipher::AES_256),
            _ => None,
        }
    }
}

/// Whether AES and the carry-less multiplication of GCM are instructions of this CPU.
fn has_aes_instructions() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("aes")
            && std::arch::is_x86_feature_detected!("pclmulqdq")
    }
    #[cfg(target_arch = "aarch64")]
    {
        std::arch::is_aarch64_feature_detected!("aes")
            && std::arch::is_aarch64_feature_detected!("pmull")
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        false
    }
}

/// One name of KEXINIT's lists of MAC algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mac {
    /// HMAC with SHA-256 over the ciphertext (PROTOCOL section 1.5).
    HmacSha256Etm,
    /// HMAC with SHA-512 over the ciphertext.
    HmacSha512Etm,
    /// HMAC with SHA-1 over the ciphertext.
    HmacSha1Etm,
    /// HMAC with SHA-256 over the plaintext (RFC 6668).
    HmacSha256,
    /// HMAC with SHA-512 over the plaintext (RFC 6668).
    HmacSha512,
    /// HMAC with SHA-1 over the plaintext (RFC 4253 section 6.4).
    HmacSha1,
}

impl Mac {
    /// All MACs in order of preference: first those that are checked before anything is decrypted.
    pub const ALL: &'static [Mac] = &[
        Mac::HmacSha256Etm,
        Mac::HmacSha512Etm,
        Mac::HmacSha1Etm,
        Mac::HmacSha256,
        Mac::HmacSha512,
        Mac::HmacSha1,
    ];

    /// The MAC of this name, if this crate has it.
    pub fn by_name(name: &str) -> Option<Mac> {
        Mac::ALL.iter().copied().find(|mac| mac.name() == name)
    }

    /// As negotiated.
    pub const fn name(self) -> &'static str {
        match self {
            Mac::HmacSha256Etm => "hmac-sha2-256-etm@openssh.com",
            Mac::HmacSha512Etm => "hmac-sha2-512-etm@openssh.com",
            Mac::HmacSha1Etm => "hmac-sha1-etm@openssh.com",
            Mac::HmacSha256 => "hmac-sha2-256",
            Mac::HmacSha512 => "hmac-sha2-512",
            Mac::HmacSha1 => "hmac-sha1",
        }
    }

    /// Octets of key to derive.
    pub const fn key_len(self) -> usize {
        self.tag_len()
    }

    /// Octets of tag behind each packet.
    pub const fn tag_len(self) -> usize {
        match self {
            Mac::HmacSha256Etm | Mac::HmacSha256 => 32,
            Mac::HmacSha512Etm | Mac::HmacSha512 => 64,
            Mac::HmacSha1Etm | Mac::HmacSha1 => 20,
        }
    }

    /// Whether the MAC covers the ciphertext and the length travels in clear.
    pub const fn encrypt_then_mac(self) -> bool {
        matches!(
            self,
            Mac::HmacSha256Etm | Mac::HmacSha512Etm | Mac::HmacSha1Etm
        )
    }

    pub(crate) fn hmac(self) -> hmac::Algorithm {
        match self {
            Mac::HmacSha256Etm | Mac::HmacSha256 => hmac::HMAC_SHA256,
            Mac::HmacSha512Etm | Mac::HmacSha512 => hmac::HMAC_SHA512,
            Mac::HmacSha1Etm | Mac::HmacSha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        }
    }
}

#[cfg(test)]
mod tests;
