//! `sshoal known-hosts`: what can be done to known_hosts files besides trusting them.

mod args;
mod check;
mod edits;
mod fetch;
mod files;
mod lookup;
mod split;

use std::error::Error;

pub(crate) use args::{KnownHostsArgs, KnownHostsCommand};

/// Something is wrong with what the files say (docs/known-hosts.md).
const FOUND: u8 = 1;

/// Does it; returns the exit status.
pub(crate) fn run(args: &KnownHostsArgs) -> Result<u8, Box<dyn Error>> {
    match &args.command {
        KnownHostsCommand::Lookup(args) => lookup::run(args),
        KnownHostsCommand::Split(args) => split::run(args),
        KnownHostsCommand::Fetch(args) => fetch::run(args),
        KnownHostsCommand::Check(args) => check::run(args),
        KnownHostsCommand::Forget(args) => edits::forget(args),
        KnownHostsCommand::Hash(args) => edits::hash(args),
        KnownHostsCommand::Import(args) => edits::import(args),
    }
}
