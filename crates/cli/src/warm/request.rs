//! What one `up` asks of the process that keeps the connections. It is read where the user is: lists, files and programs
//! that name hosts, and paths that begin where he stands. The other process reads ssh_config, keys and known_hosts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sshoal_net::SshOptions;
use sshoal_pool::{Limits, Terms};
use sshoal_targets::Target;

use super::args::UpArgs;
use crate::args::{ConfigArgs, LoginArgs};
use crate::{hosts, prompt, run};

/// Octets of what users call a megabyte.
const MEGABYTE: u64 = 1_000_000;

/// A request.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    hosts: Vec<Named>,
    pub(super) config: ConfigArgs,
    pub(super) login: LoginArgs,
    idle: Option<Duration>,
    lazy: bool,
    reconnects: bool,
    pub(super) limits: Limits,
    pub(super) prometheus_file: Option<PathBuf>,
    pub(super) prometheus_socket: Option<PathBuf>,
    /// Whether there is somebody to ask.
    pub(super) asks: bool,
    /// SSH_AUTH_SOCK; empty if there is none.
    auth_sock: String,
}

/// A [`Target`].
#[derive(Debug, Serialize, Deserialize)]
struct Named {
    name: String,
    user: Option<String>,
    port: Option<u16>,
    options: Vec<(String, String)>,
}

impl Request {
    /// What these arguments ask for.
    pub(super) fn of(args: &UpArgs) -> Result<Request, Box<dyn std::error::Error>> {
        let mut named = args.hosts.clone();
        named.list.extend(args.lists.iter().cloned());
        let targets = hosts::targets(&named)?;
        let mut config = args.config.clone();
        let is_path = |path: &&mut PathBuf| path.as_path() != Path::new("none");
        for path in config.config.iter_mut().filter(is_path) {
            *path = std::path::absolute(&path)?;
        }
        let absolute_path =
            |path: &Option<PathBuf>| path.as_ref().map(std::path::absolute).transpose();
        Ok(Request {
            hosts: targets.into_iter().map(Named::from).collect(),
            config,
            login: LoginArgs {
                identity: absolute(&args.login.identity)?,
                ..args.login.clone()
            },
            idle: args.idle,
            lazy: args.lazy,
            reconnects: !args.no_reconnect,
            limits: Limits {
                connections: args.max_connections.map(u64::from),
                memory: args.max_memory.map(|limit| u64::from(limit) * MEGABYTE),
            },
            prometheus_file: absolute_path(&args.prometheus_file)?,
            prometheus_socket: absolute_path(&args.prometheus_socket)?,
            asks: prompt::is_possible(),
            auth_sock: std::env::var("SSH_AUTH_SOCK").unwrap_or_default(),
        })
    }

    pub(super) fn targets(&self) -> Vec<Target> {
        self.hosts.iter().map(Named::target).collect()
    }

    pub(super) fn terms(&self) -> Terms {
        Terms {
            idle: self.idle,
            is_lazy: self.lazy,
            reconnects: self.reconnects,
        }
    }

    pub(super) fn ssh_options(&self) -> SshOptions {
        SshOptions {
            auth_sock: Some(self.auth_sock.clone()),
            ..run::ssh_options(&self.config, &self.login)
        }
    }
}

/// Key files that are named from where the user stands; `~` is ssh's own to expand.
fn absolute(paths: &[PathBuf]) -> std::io::Result<Vec<PathBuf>> {
    let mut absolute = Vec::with_capacity(paths.len());
    for path in paths {
        absolute.push(match path.exists() {
            true => std::path::absolute(path)?,
            false => path.clone(),
        });
    }
    Ok(absolute)
}

impl From<Target> for Named {
    fn from(target: Target) -> Named {
        let Target {
            name,
            user,
            port,
            options,
        } = target;
        Named {
            name,
            user,
            port,
            options,
        }
    }
}

impl Named {
    fn target(&self) -> Target {
        Target {
            name: self.name.clone(),
            user: self.user.clone(),
            port: self.port,
            options: self.options.clone(),
        }
    }
}
