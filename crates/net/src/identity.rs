//! What a host's connection is: two runs that would make the same one may share it.
//!
//! Everything counts that decides where a connection goes, by which way, how the host's key is judged, as whom and with what
//! the user logs in, and what protects it. How long anything may take, or how much may be under way, does not (docs/warm.md).

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, absolute};
use std::sync::Arc;

use sshoal_crypto::{Digest, HashAlgorithm};
use sshoal_fleet::JumpId;
use sshoal_proto::Settings;
use sshoal_wire::Put;

use crate::interfaces::LocalAddresses;
use crate::known_hosts::KnownHostsCommand;
use crate::login::LoginPlan;
use crate::plan::{Endpoint, HostTrust, Strictness};

/// Stands for all that a connection is made of. Equal ones are of connections that are made in the same way.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity([u8; 32]);

impl Identity {
    /// As it goes from one process to another.
    pub fn octets(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|octet| write!(formatter, "{octet:02x}"))
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Identity({self})")
    }
}

/// Works identities out. What hosts share is looked at once.
pub struct Identities<'a> {
    jumps: &'a [Endpoint],
    ways: HashMap<JumpId, Identity>,
    /// By their addresses; what is held stays there.
    logins: HashMap<*const LoginPlan, (Arc<LoginPlan>, Identity)>,
    settings: HashMap<*const Settings, (Arc<Settings>, Identity)>,
    /// The network namespace in which all this is.
    network: u64,
    /// Where the fields are gathered.
    fields: Vec<u8>,
}

impl<'a> Identities<'a> {
    /// Of hosts that are reached through these jump hosts, if through any.
    pub fn new(jumps: &'a [Endpoint]) -> Identities<'a> {
        Identities {
            jumps,
            ways: HashMap::new(),
            logins: HashMap::new(),
            settings: HashMap::new(),
            network: fs::metadata("/proc/self/ns/net").map_or(0, |metadata| metadata.ino()),
            fields: Vec::new(),
        }
    }

    /// Whether it says all about the connection. What commands on this machine make of their environment and of the folder that
    /// they run in is not known.
    pub fn tells_all_of(&self, endpoint: &Endpoint) -> bool {
        let jump = endpoint.via.map(|jump| &self.jumps[jump.0 as usize]);
        endpoint.proxy_command.is_none()
            && endpoint.trust.command.is_none()
            && jump.is_none_or(|jump| self.tells_all_of(jump))
    }

    /// That of the connection to a host or jump host.
    pub fn of(&mut self, endpoint: &Endpoint) -> Identity {
        let way = endpoint.via.map(|jump| self.way(jump));
        let login = self.login(&endpoint.login);
        let settings = self.settings(&endpoint.settings);
        let fields = &mut self.fields;
        fields.clear();
        fields.put_u64(self.network);
        fields.put_string(endpoint.name.as_bytes());
        fields.put_u32(endpoint.port.into());
        fields.put_string(endpoint.user.as_bytes());
        put_option(endpoint.proxy_command.as_deref(), fields);
        put_option(way.as_ref().map(|way| &way.0), fields);
        fields.put_bytes(&login.0);
        fields.put_bytes(&settings.0);
        put_from(&endpoint.tcp.bind, fields);
        fields.put_string(format!("{:?}", endpoint.tcp.address_family).as_bytes());
        put_trust(&endpoint.trust, fields);
        digest(fields)
    }

    fn way(&mut self, jump: JumpId) -> Identity {
        if let Some(known) = self.ways.get(&jump) {
            return *known;
        }
        // A jump host's way is planned before itself, so there is no loop.
        let identity = self.of(&self.jumps[jump.0 as usize]);
        self.ways.insert(jump, identity);
        identity
    }

    fn login(&mut self, login: &Arc<LoginPlan>) -> Identity {
        let known = self.logins.entry(Arc::as_ptr(login));
        let (_, identity) = known.or_insert_with(|| {
            let mut fields = Vec::new();
            put_login(login, &mut fields);
            (login.clone(), digest(&fields))
        });
        *identity
    }

    fn settings(&mut self, settings: &Arc<Settings>) -> Identity {
        let known = self.settings.entry(Arc::as_ptr(settings));
        let (_, identity) = known.or_insert_with(|| {
            let mut fields = Vec::new();
            put_settings(settings, &mut fields);
            (settings.clone(), digest(&fields))
        });
        *identity
    }
}

fn digest(fields: &[u8]) -> Identity {
    let mut digest = Digest::new(HashAlgorithm::Sha256);
    digest.update(fields);
    let mut identity = [0; 32];
    identity.copy_from_slice(digest.finish().as_ref());
    Identity(identity)
}

fn put_option(field: Option<impl AsRef<[u8]>>, out: &mut Vec<u8>) {
    out.put_boolean(field.is_some());
    if let Some(field) = field {
        out.put_string(field.as_ref());
    }
}

fn put_list(list: impl ExactSizeIterator<Item = impl AsRef<[u8]>>, out: &mut Vec<u8>) {
    out.put_u32(list.len() as u32);
    for field in list {
        out.put_string(field.as_ref());
    }
}

/// Where the connection comes from.
fn put_from(bind: &Option<LocalAddresses>, out: &mut Vec<u8>) {
    put_option(bind.map(|bind| format!("{bind:?}")), out);
}

/// A path in the folder of this process, as octets.
fn from_root(path: impl AsRef<Path>) -> Vec<u8> {
    let path = path.as_ref();
    let path = absolute(path).unwrap_or_else(|_| path.to_owned());
    path.into_os_string().into_encoded_bytes()
}

/// How the host is known to be the right one.
fn put_trust(trust: &HostTrust, out: &mut Vec<u8>) {
    out.put_string(trust.name.as_bytes());
    out.put_u32(trust.port.into());
    out.put_u8(match trust.strictness {
        Strictness::Yes => 0,
        Strictness::Ask => 1,
        Strictness::AcceptNew => 2,
        Strictness::No => 3,
    });
    for is_set in [
        trust.checks_address,
        trust.trusts_loopback,
        trust.wants_dns,
        trust.updates_keys,
    ] {
        out.put_boolean(is_set);
    }
    put_list(trust.files.iter().map(from_root), out);
    put_list(trust.revoked.iter().map(|(path, _)| from_root(path)), out);
    put_list(trust.algorithms.iter(), out);
    put_list(trust.ca_signature_algorithms.iter(), out);
    let command = trust.command.as_deref();
    let command = command.map(|KnownHostsCommand { arguments, .. }| format!("{arguments:?}"));
    put_option(command, out);
}

/// With what the user logs in.
fn put_login(login: &LoginPlan, out: &mut Vec<u8>) {
    put_list(login.methods.iter().map(|method| method.name()), out);
    put_list(login.certificates.iter().map(|key| &key.blob), out);
    put_list(login.files.iter().map(|file| &file.key.blob), out);
    let agent = login.agent.as_ref();
    put_option(agent.map(|agent| from_root(agent.socket())), out);
    out.put_boolean(login.identities_only);
    put_list(login.algorithms.iter(), out);
    out.put_u32(login.required_rsa_size as u32);
}

/// What protects the connection.
fn put_settings(settings: &Settings, out: &mut Vec<u8>) {
    put_list(settings.kex.iter().map(|kex| kex.name), out);
    put_list(settings.ciphers.iter().map(|cipher| cipher.name()), out);
    put_list(settings.macs.iter().map(|mac| mac.name()), out);
    out.put_u32(settings.required_rsa_size as u32);
    out.put_boolean(settings.binds_to_host_key);
}
