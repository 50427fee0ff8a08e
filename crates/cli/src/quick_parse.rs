//! The command line parsed with the flags of the one command that is called. To put together those of all made a fifth of
//! what `known-hosts lookup` cost, and ssh waits for that at every connection.

use std::ffi::OsString;

use clap::Args;

use crate::args::{Cli, Command};
use crate::known_hosts::{KnownHostsArgs, KnownHostsCommand};

/// What the whole parser would make of the arguments. `None` if it has to be asked: there is an error to be explained,
/// help is wanted, or the command is none that matters here.
pub(crate) fn parse(arguments: &[OsString]) -> Option<Cli> {
    let name = arguments.get(1)?.to_str()?;
    let rest = &arguments[1..];
    let command = match name {
        "run" => Command::Run(Box::new(flags(rest)?)),
        "each" => Command::Each(Box::new(flags(rest)?)),
        "mpssh" => Command::Mpssh(Box::new(flags(rest)?)),
        "put" => Command::Put(Box::new(flags(rest)?)),
        "get" => Command::Get(Box::new(flags(rest)?)),
        "hosts" => Command::Hosts(Box::new(flags(rest)?)),
        "explain" => Command::Explain(Box::new(flags(rest)?)),
        "complete-hosts" => Command::CompleteHosts(flags(rest)?),
        "known-hosts" if rest.get(1)? == "lookup" => {
            let command = KnownHostsCommand::Lookup(flags(&rest[1..])?);
            Command::KnownHosts(KnownHostsArgs { command })
        }
        _ => return None,
    };
    Some(Cli { command })
}

/// The arguments behind the command's name, which comes first.
fn flags<A: Args>(arguments: &[OsString]) -> Option<A> {
    let parser = A::augment_args(clap::Command::new("sshoal")).args_override_self(true);
    let matches = parser.try_get_matches_from(arguments).ok()?;
    A::from_arg_matches(&matches).ok()
}

#[cfg(test)]
mod tests;
