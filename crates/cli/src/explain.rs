//! `sshoal explain`: what would be done for a host, and which line of which file says so. Nobody is connected to.

mod json;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use sshoal_known_hosts::Marker;
use sshoal_net::{Explanation, KnownLine, Place, Preparation, Shortfall, SshOptions, Transport};
use sshoal_proto::SessionRequest;
use sshoal_ssh_config::IdentityAgent;
use sshoal_targets::Target;

use crate::args::{ConfigArgs, HostArgs, WhichTransport};
use crate::warm::Kept;
use crate::{hosts, manual};

/// `sshoal explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Host lists, in the form of -w.
    #[arg(value_name = "LIST", value_hint = ValueHint::Hostname)]
    lists: Vec<String>,
    /// One JSON object a line for each host, with all settings in ssh -G's names.
    #[arg(long)]
    json: bool,
    /// A private key file; may be given several times.
    #[arg(short = 'i', long = "identity", value_name = "FILE", value_hint = ValueHint::FilePath)]
    identity: Vec<PathBuf>,
    /// Jump hosts, in the order of travel.
    #[arg(short = 'J', long = "jump", value_name = "[USER@]HOST[:PORT],...", value_hint = ValueHint::Hostname)]
    jump: Option<String>,
    /// As for run: auto, native or openssh.
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = WhichTransport::Auto, hide_possible_values = true)]
    transport: WhichTransport,
    #[command(flatten)]
    hosts: HostArgs,
    #[command(flatten)]
    config: ConfigArgs,
}

/// Prints what is known of each host; returns the exit status.
pub(crate) fn run(args: &ExplainArgs) -> Result<u8, Box<dyn std::error::Error>> {
    let mut named = args.hosts.clone();
    named.list.extend(args.lists.iter().cloned());
    let mut preparation = Preparation::new(&SshOptions {
        config_file: args.config.config.clone(),
        options: args.config.options(),
        user: args.config.user.clone(),
        identities: args.identity.clone(),
        jump: args.jump.clone(),
        tag: args.config.tag.clone(),
        transport: args.transport.into(),
        ..SshOptions::default()
    })?;
    let mut text = String::new();
    for target in hosts::targets(&named)? {
        let explanation = preparation.explain(&target)?;
        let is_warm = is_warm(&mut preparation, &target);
        text.push_str(&match args.json {
            true => json::line(&explanation, is_warm)?,
            false => paragraph(&explanation, is_warm),
        });
    }
    Ok(manual::print(text.as_bytes()))
}

/// Whether a command would go by a connection that is kept already.
fn is_warm(preparation: &mut Preparation, target: &Target) -> bool {
    if !Kept::is_possible() {
        return false;
    }
    // A host that cannot be prepared is not reached at all; a run says why.
    let request = |_: &Place<'_>| SessionRequest::exec(Vec::new());
    let plans = preparation.hosts(std::slice::from_ref(target), request);
    plans.is_ok_and(|plans| Kept::of(&plans, preparation.jumps()).has(0))
}

/// What is said of a host: a fact, and where it comes from.
struct Fact {
    name: &'static str,
    value: String,
    origin: String,
}

impl Fact {
    fn new(name: &'static str, value: impl Into<String>, origin: impl ToString) -> Fact {
        Fact {
            name,
            value: value.into(),
            origin: origin.to_string(),
        }
    }
}

fn paragraph(explanation: &Explanation, is_warm: bool) -> String {
    let mut facts = Vec::new();
    place(explanation, &mut facts);
    login(explanation, &mut facts);
    host_key(explanation, &mut facts);
    algorithms(explanation, &mut facts);
    transport(explanation, &mut facts);
    if is_warm {
        facts.push(Fact::new("connection", "warm", "kept by sshoal up"));
    }
    let mut text = format!("{}\n", explanation.label);
    for Fact {
        name,
        value,
        origin,
    } in facts
    {
        // A String takes all that is written.
        let _ = match origin.is_empty() {
            true => writeln!(text, "  {name:<13} {value}"),
            false => writeln!(text, "  {name:<13} {value}  ({origin})"),
        };
    }
    text
}

/// Where the host is, and the way there.
fn place(explanation: &Explanation, facts: &mut Vec<Fact>) {
    let connection = &explanation.resolved.connection;
    let (host, port) = (&connection.host_name, &connection.port);
    facts.push(Fact::new("address", &host.value, &host.origin));
    facts.push(Fact::new("port", port.value.to_string(), &port.origin));
    if !explanation.way.is_empty() {
        let way = explanation.way.join(" > ");
        facts.push(Fact::new("through", way, &connection.proxy.origin));
    }
    if let Some(command) = &explanation.proxy_command {
        let way = format!("ProxyCommand {command}");
        facts.push(Fact::new("through", way, &connection.proxy.origin));
    }
}

/// As whom to log in, and with what, in the order of the configuration.
fn login(explanation: &Explanation, facts: &mut Vec<Fact>) {
    let user = &explanation.resolved.connection.user;
    facts.push(Fact::new("user", &user.value, &user.origin));
    let login = &explanation.resolved.authentication;
    for (name, files) in [
        ("certificate", &login.certificate_files),
        ("key", &login.identity_files),
    ] {
        for file in files {
            let value = match Path::new(&file.value).exists() {
                true => file.value.clone(),
                false => format!("{}, which is not there", file.value),
            };
            facts.push(Fact::new(name, value, &file.origin));
        }
    }
    let agent = &login.identity_agent;
    let socket = match &agent.value {
        IdentityAgent::None => Some("none".to_owned()),
        IdentityAgent::Socket(path) => Some(path.clone()),
        IdentityAgent::Variable(name) => std::env::var(name).ok(),
    };
    let socket = socket.filter(|socket| !socket.is_empty());
    let value = socket.unwrap_or_else(|| "none is running".to_owned());
    facts.push(Fact::new("agent", value, &agent.origin));
    if login.identities_only.value {
        let only = &login.identities_only;
        facts.push(Fact::new("keys", "only these", &only.origin));
    }
    if let Some(methods) = &login.preferred_authentications {
        let value = methods.value.join(", ");
        facts.push(Fact::new("methods", value, &methods.origin));
    }
}

/// How the host is to prove who it is.
fn host_key(explanation: &Explanation, facts: &mut Vec<Fact>) {
    let keys = &explanation.resolved.host_keys;
    let alias = keys.host_key_alias.as_ref();
    let origin = alias.map_or(&explanation.resolved.connection.host_name.origin, |alias| {
        &alias.origin
    });
    facts.push(Fact::new("known as", &explanation.known_as, origin));
    for line in &explanation.known_hosts {
        facts.push(Fact::new("host key", key_name(line), &line.location));
    }
    if explanation.known_hosts.is_empty() {
        facts.push(Fact::new("host key", "unknown: no line of known_hosts", ""));
    }
    let settings = explanation.settings.iter();
    for strict in settings.filter(|set| set.keyword == "stricthostkeychecking") {
        facts.push(Fact::new("checking", &strict.value, &strict.origin));
    }
}

fn key_name(line: &KnownLine) -> String {
    let key_type = line.key_type.map_or("of no known type", |key| key.name());
    match line.marker {
        Marker::None => key_type.to_owned(),
        Marker::CertAuthority => format!("@cert-authority {key_type}"),
        Marker::Revoked => format!("@revoked {key_type}"),
    }
}

/// What is offered, in order.
fn algorithms(explanation: &Explanation, facts: &mut Vec<Fact>) {
    for (name, keyword) in [
        ("key exchange", "kexalgorithms"),
        ("host keys", "hostkeyalgorithms"),
        ("ciphers", "ciphers"),
        ("MACs", "macs"),
    ] {
        let settings = explanation.settings.iter();
        for set in settings.filter(|set| set.keyword == keyword) {
            facts.push(Fact::new(name, set.value.replace(',', ", "), &set.origin));
        }
    }
}

/// By which transport, and what is refused or left out.
fn transport(explanation: &Explanation, facts: &mut Vec<Fact>) {
    match (explanation.transport, explanation.requirements.as_slice()) {
        (Transport::OpenSsh, []) => {
            facts.push(Fact::new("transport", "openssh", "--transport openssh"));
        }
        (Transport::OpenSsh, required) => {
            for Shortfall { what, origin } in required {
                let value = format!("openssh, for {what}");
                facts.push(Fact::new("transport", value, origin));
            }
        }
        (_, required) => {
            if required.is_empty() && explanation.obstacles.is_empty() {
                facts.push(Fact::new("transport", "native", ""));
            }
            for Shortfall { what, origin } in required {
                let value = format!("{what}: needs --transport auto or openssh");
                facts.push(Fact::new("refused", value, origin));
            }
        }
    }
    for Shortfall { what, origin } in &explanation.obstacles {
        facts.push(Fact::new("refused", what, origin));
    }
    for Shortfall { what, origin } in &explanation.unheeded {
        facts.push(Fact::new("not heeded", what, origin));
    }
}
