//! The arithmetic of a key exchange: exchange hash, the host key's signature of it, keys drawn from it.

use sshoal_crypto::kex::GexGroup;
use sshoal_crypto::{
    Digest, HostCertificate, Mac, Opener, Sealer, SharedSecret, derive_key, verify_with_minimum,
};
use sshoal_wire::{Decoder, KexDialect, Put};
use zeroize::Zeroizing;

use super::{Agreed, GROUP_MAX, GROUP_MIN, GROUP_PREFERRED, client_identification, dialect};
use crate::connection::Connection;
use crate::error::{ConnectionError, Misbehaviour, printable};
use crate::negotiation::{Chosen, Protection};

/// What the exchange hash covers beside the KEXINITs and the secret.
pub(super) struct Halves<'a> {
    pub(super) host_key: &'a [u8],
    pub(super) client: &'a [u8],
    pub(super) server: &'a [u8],
    pub(super) group: Option<&'a GexGroup>,
}

/// Both directions' keys, before they are used.
pub(super) struct NextKeys {
    pub(super) sealer: Sealer,
    pub(super) opener: Opener,
    /// Octets after which the ciphers want new keys: sending, receiving (RFC 4344 section 3.2).
    pub(super) limits: [u64; 2],
}

impl Connection {
    /// H of RFC 4253 section 8; RFC 4419 section 3 with a group, RFC 5656 section 4 for curves.
    pub(super) fn exchange_hash(
        &self,
        agreed: &Agreed,
        halves: &Halves<'_>,
        secret: &SharedSecret,
    ) -> Vec<u8> {
        let client = client_identification(&self.settings);
        let server = self
            .server
            .as_ref()
            .map(|server| server.as_str())
            .unwrap_or_default();
        let mut fields = Vec::with_capacity(8 * 1024);
        fields.put_string(client.as_bytes());
        fields.put_string(server.as_bytes());
        fields.put_string(&agreed.client_kex_init);
        fields.put_string(&agreed.server_kex_init);
        fields.put_string(halves.host_key);
        if let Some(group) = halves.group {
            for bits in [GROUP_MIN, GROUP_PREFERRED, GROUP_MAX] {
                fields.put_u32(bits);
            }
            fields.put_mpint(&group.p);
            fields.put_mpint(&group.g);
        }
        match dialect(agreed.chosen.kex.method) {
            KexDialect::Ecdh => {
                fields.put_string(halves.client);
                fields.put_string(halves.server);
            }
            KexDialect::Dh | KexDialect::GroupExchange => {
                fields.put_mpint(halves.client);
                fields.put_mpint(halves.server);
            }
        }
        let mut digest = Digest::new(agreed.chosen.kex.hash);
        digest.update(&fields);
        digest.update(secret.encoded());
        digest.finish().as_ref().to_vec()
    }

    /// The signature of the exchange hash by the host key, or by the key inside a host certificate.
    pub(super) fn verify_host_key(
        &self,
        negotiated: &'static str,
        blob: &[u8],
        signature: &[u8],
        hash: &[u8],
    ) -> Result<(), ConnectionError> {
        let found = Decoder::new(blob).string()?;
        let wanted = match negotiated {
            "rsa-sha2-256" | "rsa-sha2-512" => "ssh-rsa",
            "rsa-sha2-256-cert-v01@openssh.com" | "rsa-sha2-512-cert-v01@openssh.com" => {
                "ssh-rsa-cert-v01@openssh.com"
            }
            other => other,
        };
        if found != wanted.as_bytes() {
            return Err(Misbehaviour::HostKeyType {
                found: printable(found),
                negotiated,
            }
            .into());
        }
        if crate::CRYPTO_IS_OFF {
            return Ok(());
        }
        let minimum = self.settings.required_rsa_size;
        match negotiated.strip_suffix("-cert-v01@openssh.com") {
            Some(algorithm) => {
                // Whether it is of use as a certificate is the caller's to judge: its plain key may be known.
                let certificate =
                    HostCertificate::read(blob).map_err(ConnectionError::HostCertificate)?;
                verify_with_minimum(
                    algorithm,
                    certificate.public_key(),
                    signature,
                    hash,
                    minimum,
                )
            }
            None => verify_with_minimum(negotiated, blob, signature, hash, minimum),
        }
        .map_err(ConnectionError::HostKeySignature)
    }
}

impl NextKeys {
    /// RFC 4253 section 7.2: letters A and B for initialisation vectors, C and D for keys, E and F for MACs.
    pub(super) fn derive(
        chosen: &Chosen,
        secret: &SharedSecret,
        hash: &[u8],
        session_id: &[u8],
    ) -> Result<NextKeys, ConnectionError> {
        let sending = chosen.client_to_server;
        let receiving = chosen.server_to_client;
        let limits = [sending.cipher.rekey_bytes(), receiving.cipher.rekey_bytes()];
        if crate::CRYPTO_IS_OFF {
            return Ok(NextKeys {
                sealer: Sealer::plain(),
                opener: Opener::plain(),
                limits,
            });
        }
        let draw = |letter: u8, len: usize| {
            let mut key = Zeroizing::new(vec![0; len]);
            derive_key(chosen.kex.hash, secret, hash, session_id, letter, &mut key);
            key
        };
        let draw_three = |[iv, key, mac_key]: [u8; 3], Protection { cipher, mac }: Protection| {
            [
                draw(iv, cipher.iv_len()),
                draw(key, cipher.key_len()),
                draw(mac_key, mac.map_or(0, Mac::key_len)),
            ]
        };
        let [iv, key, mac_key] = draw_three(*b"ACE", sending);
        let sealer = Sealer::new(sending.cipher, sending.mac, &key, &iv, &mac_key)?;
        let [iv, key, mac_key] = draw_three(*b"BDF", receiving);
        let opener = Opener::new(receiving.cipher, receiving.mac, &key, &iv, &mac_key)?;
        Ok(NextKeys {
            sealer,
            opener,
            limits,
        })
    }
}
