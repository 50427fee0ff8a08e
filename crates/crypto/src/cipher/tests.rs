use super::*;

#[test]
fn names_lead_back_to_their_algorithms() {
    for cipher in Cipher::ALL {
        assert_eq!(Cipher::by_name(cipher.name()), Some(*cipher));
    }
    for mac in Mac::ALL {
        assert_eq!(Mac::by_name(mac.name()), Some(*mac));
        assert_eq!(
            mac.name().ends_with("-etm@openssh.com"),
            mac.encrypt_then_mac()
        );
    }
    assert_eq!(Cipher::by_name("aes128-cbc"), None);
    assert_eq!(Mac::by_name("hmac-md5"), None);
}

#[test]
fn every_cpu_is_offered_every_cipher() {
    for order in [Cipher::preferred(), Cipher::WITHOUT_AES_INSTRUCTIONS] {
        assert_eq!(order.len(), Cipher::ALL.len());
        assert!(Cipher::ALL.iter().all(|cipher| order.contains(cipher)));
        assert!(order.iter().take(3).all(|cipher| cipher.is_aead()));
    }
}

/// packet.c, `ssh_set_newkeys`: 64 GiB for AES, 1 GiB for chacha20.
#[test]
fn keys_are_used_as_long_as_openssh_uses_them() {
    assert_eq!(Cipher::Aes256Gcm.rekey_bytes(), 64 << 30);
    assert_eq!(Cipher::Aes128Ctr.rekey_bytes(), 64 << 30);
    assert_eq!(Cipher::ChaCha20Poly1305.rekey_bytes(), 1 << 30);
}
