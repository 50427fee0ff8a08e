//! The jump hosts of a run: each way is planned once, however many hosts go by it.
//!
//! As with ssh, what the command line says is about the hosts themselves, all but `-F`: jump hosts are set up in
//! configuration files (ssh(1), `-J`). The first jump host may be behind others of its own by the configuration;
//! the later ones are reached through those before them.

use std::collections::HashMap;

use sshoal_fleet::JumpId;
use sshoal_ssh_config::{Config, Hop, Proxy, Query};

use super::config_files;
use super::explain::Shortfall;
use super::{Preparation, PrepareError, SshOptions, transport};
use crate::plan::Endpoint;

/// The longest way, jump hosts: nobody has so many, and a loop in the configuration never ends.
const MAX_HOPS: usize = 16;

/// Jump hosts planned so far.
pub(super) struct Jumps {
    ssh: SshOptions,
    /// Read when the first jump host is named.
    config: Option<Config>,
    known: HashMap<Step, JumpId>,
    pub(super) plans: Vec<Endpoint>,
    /// What the jump host of that number requires that only ssh can do.
    requirements: HashMap<JumpId, Shortfall>,
}

/// A jump host as it was written, and the one before it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Step {
    before: Option<JumpId>,
    host: String,
    user: Option<String>,
    port: Option<u16>,
}

impl Jumps {
    pub(super) fn new(ssh: &SshOptions) -> Self {
        Jumps {
            ssh: SshOptions {
                config_file: ssh.config_file.clone(),
                ..SshOptions::default()
            },
            config: None,
            known: HashMap::new(),
            plans: Vec::new(),
            requirements: HashMap::new(),
        }
    }

    /// What this jump host, or one before it on the way, requires that only ssh can do.
    pub(super) fn requirement(&self, last: JumpId) -> Option<Shortfall> {
        let mut next = Some(last);
        while let Some(jump) = next {
            if let Some(required) = self.requirements.get(&jump) {
                return Some(required.clone());
            }
            next = self.plans.get(jump.0 as usize).and_then(|plan| plan.via);
        }
        None
    }

    fn config(&mut self) -> Result<&Config, PrepareError> {
        let config = match self.config.take() {
            Some(config) => config,
            None => config_files::load(&self.ssh)?,
        };
        Ok(self.config.insert(config))
    }
}

impl Preparation {
    /// The last of these jump hosts, all of them planned.
    pub(super) fn way(
        &mut self,
        hops: &[Hop],
        depth: usize,
    ) -> Result<Option<JumpId>, PrepareError> {
        let mut last = None;
        for hop in hops {
            last = Some(self.jump(hop, last, depth + 1)?);
        }
        Ok(last)
    }

    fn jump(
        &mut self,
        hop: &Hop,
        before: Option<JumpId>,
        depth: usize,
    ) -> Result<JumpId, PrepareError> {
        let label = label(hop);
        if depth > MAX_HOPS {
            return Err(PrepareError::JumpLoop { host: label });
        }
        let step = Step {
            before,
            host: hop.host.clone(),
            user: hop.user.clone(),
            port: hop.port,
        };
        if let Some(known) = self.jumps.known.get(&step) {
            return Ok(*known);
        }
        let config = self.jumps.config()?;
        // Each is reached with -W, which means a session of type "none" (ssh.c, main).
        let options = config.host_options(&["SessionType=none".to_owned()])?;
        let query = Query {
            options: Some(&options),
            host: &hop.host,
            user: hop.user.as_deref(),
            port: hop.port,
            ..Query::default()
        };
        let resolved = self.questions.resolve(config, &query);
        let resolved = resolved.map_err(|error| PrepareError::Resolve {
            host: label.clone(),
            error,
        })?;
        let via = match (before, &resolved.connection.proxy.value) {
            (Some(before), _) => Some(before),
            (None, Proxy::Jump(hops)) => self.way(hops, depth)?,
            (None, _) => None,
        };
        let required = transport::requirements(&resolved).into_iter().next();
        let endpoint = self.endpoint(label, via, &resolved)?;
        let jump = JumpId(self.jumps.plans.len() as u32);
        if let Some(Shortfall { what, origin }) = required {
            let what = format!("jump host {}: {what}", endpoint.label);
            let required = Shortfall { what, origin };
            self.jumps.requirements.insert(jump, required);
        }
        self.jumps.plans.push(endpoint);
        self.jumps.known.insert(step, jump);
        Ok(jump)
    }
}

/// As it was written.
fn label(hop: &Hop) -> String {
    let user = hop.user.as_ref().map(|user| format!("{user}@"));
    let port = hop.port.map(|port| match hop.host.contains(':') {
        true => format!("[{}]:{port}", hop.host),
        false => format!("{}:{port}", hop.host),
    });
    user.unwrap_or_default() + &port.unwrap_or_else(|| hop.host.clone())
}
