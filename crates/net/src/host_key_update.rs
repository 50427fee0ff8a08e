//! UpdateHostKeys on one connection: what a server says of its host keys after the login, and whether it is true
//! (OpenSSH's PROTOCOL section 2.5; clientloop.c, client_input_hostkeys and client_global_hostkeys_prove_confirm).
//!
//! ```text
//!   hostkeys-00 comes unasked -> handle_offer -+-> all is known: nothing to do, the usual case
//!                                              +-> keys are gone: noted for the end of the run
//!                                              +-> new keys: prove_host_keys -> handle_proof -> noted
//! ```
//!
//! What is noted is looked at once more, and written, when the run is over: see `known_hosts/key_updates.rs`.

use sshoal_crypto::verify_with_minimum;
use sshoal_known_hosts::{OfferedKeys, parse_proofs, prove_request};
use sshoal_proto::{Connection, Event};

use crate::known_hosts::{KeyUpdate, NewKeys};
use crate::plan::HostTrust;
use crate::trust::AddressName;

/// What is left to do about a server's host keys.
pub(crate) struct HostKeyUpdate<'a> {
    trust: &'a HostTrust,
    address: Option<AddressName>,
    stage: Stage,
}

enum Stage {
    /// The server has been trusted, and has not told its keys.
    Open,
    /// The server is to prove those at these places.
    Asked {
        offered: OfferedKeys,
        places: Vec<usize>,
    },
    Over,
}

impl<'a> HostKeyUpdate<'a> {
    /// For a server whose key vouches for others; `address` is that which known_hosts is asked for besides.
    pub(crate) fn new(trust: &'a HostTrust, address: Option<AddressName>) -> Self {
        HostKeyUpdate {
            trust,
            address,
            stage: Stage::Open,
        }
    }

    /// Whether the server owes a proof.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Asked { .. })
    }

    /// Waits no longer.
    pub(crate) fn give_up(&mut self) {
        self.stage = Stage::Over;
    }

    /// What the server says of its keys; other events are not for here.
    pub(crate) fn handle(&mut self, connection: &mut Connection, event: &Event, news: &NewKeys) {
        match event {
            Event::HostKeysOffered(data) => self.handle_offer(connection, data, news),
            Event::HostKeysProven(reply) => self.handle_proof(connection, reply.as_deref(), news),
            _ => {}
        }
    }

    fn handle_offer(&mut self, connection: &mut Connection, data: &[u8], new_keys: &NewKeys) {
        if !matches!(self.stage, Stage::Open) {
            return;
        }
        self.stage = Stage::Over;
        let HostTrust {
            algorithms,
            required_rsa_size,
            ..
        } = self.trust;
        let offered = match OfferedKeys::parse(data, algorithms, *required_rsa_size) {
            Ok(offered) => offered,
            Err(error) => return tracing::debug!(%error, "host keys are not updated"),
        };
        let address = self.address.as_ref().map(AddressName::host_name);
        let name = self.trust.host_name();
        let known = &self.trust.known;
        let files = known.leading_files(&self.trust.user_files);
        let plan = match known.plan_update(files, &name, address.as_ref(), &offered) {
            Ok(plan) => plan,
            Err(why) => return tracing::debug!(?why, "host keys are not updated"),
        };
        if plan.prove.is_empty() {
            return self.note(offered, Vec::new(), new_keys);
        }
        let keys: Vec<&[u8]> = keys_at(&offered, &plan.prove);
        // An error stays the connection's answer and comes back from its next call.
        drop(connection.prove_host_keys(&prove_request(&keys)));
        self.stage = Stage::Asked {
            offered,
            places: plan.prove,
        };
    }

    fn handle_proof(&mut self, connection: &Connection, reply: Option<&[u8]>, new_keys: &NewKeys) {
        let Stage::Asked { offered, places } = std::mem::replace(&mut self.stage, Stage::Over)
        else {
            return;
        };
        let keys = keys_at(&offered, &places);
        match proven(connection, &keys, reply, self.trust.required_rsa_size) {
            Ok(proven) => self.note(offered.clone(), proven, new_keys),
            Err(why) => {
                let host = self.trust.host_name().written();
                tracing::warn!(host, why, "the server did not prove its host keys");
            }
        }
    }

    fn note(&self, offered: OfferedKeys, proven: Vec<Vec<u8>>, new_keys: &NewKeys) {
        new_keys.note_update(
            self.trust,
            KeyUpdate {
                name: self.trust.name.clone(),
                port: self.trust.port,
                address: self.address.clone(),
                offered,
                proven,
            },
        );
    }
}

fn keys_at<'o>(offered: &'o OfferedKeys, places: &[usize]) -> Vec<&'o [u8]> {
    let keys = offered.keys();
    places.iter().map(|&at| keys[at].as_slice()).collect()
}

/// The keys whose signatures are right: all that must be there, or none.
fn proven(
    connection: &Connection,
    keys: &[&[u8]],
    reply: Option<&[u8]>,
    minimum_rsa_bits: usize,
) -> Result<Vec<Vec<u8>>, String> {
    let reply = reply.ok_or("it refused to")?;
    let (Some(session_id), Some(algorithm)) =
        (connection.session_id(), connection.host_key_algorithm())
    else {
        return Err("there is no session".to_owned());
    };
    let proofs =
        parse_proofs(keys, reply, session_id, algorithm).map_err(|error| error.to_string())?;
    let mut proven = Vec::new();
    for proof in proofs {
        verify_with_minimum(
            proof.algorithm,
            proof.key,
            proof.signature,
            &proof.signed,
            minimum_rsa_bits,
        )
        .map_err(|error| error.to_string())?;
        proven.push(proof.key.to_vec());
    }
    Ok(proven)
}
