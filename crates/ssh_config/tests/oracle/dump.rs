//! Settings in the words of `ssh -G`.

use std::fmt::Display;

use sshoal_ssh_config::{
    AddressFamily, AlgorithmSpec, ForwardAgent, Hop, IdentityAgent, LogLevel, Proxy,
    PubkeyAuthentication, RequestTty, Resolved, Setting, StrictHostKeyChecking,
};

use crate::Settings;
use crate::ssh::Ssh;

/// What ssh tries by default and newer releases, and so sshoal, do not know any more.
const OLD_IDENTITY_FILES: [&str; 2] = ["~/.ssh/id_xmss", "~/.ssh/id_dsa"];

pub(crate) fn settings(resolved: &Resolved, ssh: &Ssh) -> Settings {
    let mut out = Settings::new();
    out.insert("host".into(), vec![resolved.host.clone()]);
    connection(resolved, &mut out);
    host_keys(resolved, &mut out);
    authentication(resolved, ssh, &mut out);
    algorithms(resolved, ssh, &mut out);
    session(resolved, &mut out);
    out
}

fn one(out: &mut Settings, keyword: &str, value: impl Display) {
    out.insert(keyword.into(), vec![value.to_string()]);
}

fn maybe<T: Display>(out: &mut Settings, keyword: &str, value: Option<&Setting<T>>) {
    let values = value.map(|setting| setting.value.to_string());
    out.insert(keyword.into(), values.into_iter().collect());
}

fn flag(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}

fn connection(resolved: &Resolved, out: &mut Settings) {
    let connection = &resolved.connection;
    one(out, "hostname", &connection.host_name.value);
    one(out, "user", &connection.user.value);
    one(out, "port", connection.port.value);
    let family = match connection.address_family.value {
        AddressFamily::Any => "any",
        AddressFamily::Inet => "inet",
        AddressFamily::Inet6 => "inet6",
    };
    one(out, "addressfamily", family);
    maybe(out, "bindaddress", connection.bind_address.as_ref());
    let (jump, command) = match &connection.proxy.value {
        Proxy::None => (None, None),
        Proxy::Jump(hops) => (Some(jump_text(hops)), None),
        Proxy::Command(command) => (None, Some(command.clone())),
    };
    out.insert("proxyjump".into(), jump.into_iter().collect());
    out.insert("proxycommand".into(), command.into_iter().collect());
    let timeout = connection
        .connect_timeout
        .as_ref()
        .map(|set| set.value.as_secs().to_string());
    one(out, "connecttimeout", timeout.as_deref().unwrap_or("none"));
    one(
        out,
        "connectionattempts",
        connection.connection_attempts.value,
    );
    one(
        out,
        "serveraliveinterval",
        connection.server_alive_interval.value.as_secs(),
    );
    one(
        out,
        "serveralivecountmax",
        connection.server_alive_count_max.value,
    );
    one(out, "tcpkeepalive", flag(connection.tcp_keep_alive.value));
    one(out, "compression", flag(connection.compression.value));
}

fn jump_text(hops: &[Hop]) -> String {
    let hop = |hop: &Hop| {
        let user = hop
            .user
            .as_ref()
            .map(|user| format!("{user}@"))
            .unwrap_or_default();
        let port = hop.port.map(|port| format!(":{port}")).unwrap_or_default();
        let numeric = hop.host.chars().all(|c| c.is_ascii_digit() || c == '.');
        match numeric || hop.host.contains(':') {
            true => format!("{user}[{}]{port}", hop.host),
            false => format!("{user}{}{port}", hop.host),
        }
    };
    hops.iter().map(hop).collect::<Vec<_>>().join(",")
}

fn host_keys(resolved: &Resolved, out: &mut Settings) {
    let host_keys = &resolved.host_keys;
    for (keyword, files) in [
        (
            "userknownhostsfile",
            &host_keys.user_known_hosts_files.value,
        ),
        (
            "globalknownhostsfile",
            &host_keys.global_known_hosts_files.value,
        ),
    ] {
        one(
            out,
            keyword,
            if files.is_empty() {
                "none".into()
            } else {
                files.join(" ")
            },
        );
    }
    let strict = match host_keys.strict_host_key_checking.value {
        StrictHostKeyChecking::Yes => "true",
        StrictHostKeyChecking::Ask => "ask",
        StrictHostKeyChecking::AcceptNew => "accept-new",
        StrictHostKeyChecking::No => "false",
    };
    one(out, "stricthostkeychecking", strict);
    maybe(out, "hostkeyalias", host_keys.host_key_alias.as_ref());
    one(out, "checkhostip", flag(host_keys.check_host_ip.value));
    one(out, "requiredrsasize", host_keys.required_rsa_size.value);
}

fn authentication(resolved: &Resolved, ssh: &Ssh, out: &mut Settings) {
    let authentication = &resolved.authentication;
    let home = &ssh.environment.home;
    // ssh -G prints these paths before they are expanded.
    let unexpanded = |files: &[Setting<String>]| -> Vec<String> {
        files
            .iter()
            .map(|file| file.value.replacen(home.as_str(), "~", 1))
            .collect()
    };
    let mut identity_files = unexpanded(&authentication.identity_files);
    if authentication
        .identity_files
        .first()
        .is_some_and(|file| !file.is_configured())
    {
        identity_files.extend(OLD_IDENTITY_FILES.map(String::from));
    } else if identity_files.is_empty() {
        identity_files.push("none".into());
    }
    out.insert("identityfile".into(), identity_files);
    out.insert(
        "certificatefile".into(),
        unexpanded(&authentication.certificate_files),
    );
    one(
        out,
        "identitiesonly",
        flag(authentication.identities_only.value),
    );
    let agent = match &authentication.identity_agent {
        set if !set.is_configured() => Vec::new(),
        set => match &set.value {
            IdentityAgent::None => vec!["none".into()],
            IdentityAgent::Variable(name) if name == "SSH_AUTH_SOCK" => vec![name.clone()],
            IdentityAgent::Variable(name) => vec![format!("${name}")],
            IdentityAgent::Socket(path) => vec![path.clone()],
        },
    };
    out.insert("identityagent".into(), agent);
    let preferred = authentication.preferred_authentications.as_ref();
    let preferred = preferred.map(|set| set.value.join(","));
    out.insert(
        "preferredauthentications".into(),
        preferred.into_iter().collect(),
    );
    let pubkey = match authentication.pubkey_authentication.value {
        PubkeyAuthentication::No => "false",
        PubkeyAuthentication::Yes => "true",
        PubkeyAuthentication::Unbound => "unbound",
        PubkeyAuthentication::HostBound => "host-bound",
    };
    one(out, "pubkeyauthentication", pubkey);
    one(
        out,
        "passwordauthentication",
        flag(authentication.password_authentication.value),
    );
    one(
        out,
        "kbdinteractiveauthentication",
        flag(authentication.kbd_interactive_authentication.value),
    );
    one(
        out,
        "numberofpasswordprompts",
        authentication.number_of_password_prompts.value,
    );
    one(out, "batchmode", flag(authentication.batch_mode.value));
}

fn algorithms(resolved: &Resolved, ssh: &Ssh, out: &mut Settings) {
    let algorithms = &resolved.algorithms;
    let lists: [(&str, &Option<Setting<AlgorithmSpec>>, &str); 6] = [
        ("kexalgorithms", &algorithms.kex, "kex"),
        ("ciphers", &algorithms.ciphers, "cipher"),
        ("macs", &algorithms.macs, "mac"),
        (
            "hostkeyalgorithms",
            &algorithms.host_key,
            "HostKeyAlgorithms",
        ),
        (
            "pubkeyacceptedalgorithms",
            &algorithms.pubkey_accepted,
            "HostKeyAlgorithms",
        ),
        ("casignaturealgorithms", &algorithms.ca_signature, "key-sig"),
    ];
    for (keyword, list, kind) in lists {
        let default = ssh.defaults[keyword][0].clone();
        let value = match list {
            None => default,
            Some(set) => {
                let defaults: Vec<&str> = default.split(',').collect();
                let known: Vec<&str> = ssh.known[kind].iter().map(String::as_str).collect();
                set.value
                    .apply(&defaults, &known)
                    .expect("ssh accepts the list")
                    .join(",")
            }
        };
        one(out, keyword, value);
    }
    let rekey = algorithms.rekey_limit.value;
    let interval = rekey.interval.map_or(0, |interval| interval.as_secs());
    one(
        out,
        "rekeylimit",
        format!("{} {interval}", rekey.bytes.unwrap_or_default()),
    );
}

fn session(resolved: &Resolved, out: &mut Settings) {
    let session = &resolved.session;
    let names = session.send_env.iter().map(|set| set.value.clone());
    out.insert("sendenv".into(), names.collect());
    let variables = session
        .set_env
        .value
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    out.insert("setenv".into(), variables.collect());
    let tty = match session.request_tty.value {
        RequestTty::No => "false",
        RequestTty::Yes => "true",
        RequestTty::Force => "force",
        RequestTty::Auto => "auto",
    };
    one(out, "requesttty", tty);
    maybe(out, "remotecommand", session.remote_command.as_ref());
    let forward = match &session.forward_agent.value {
        ForwardAgent::No => "no".into(),
        ForwardAgent::Yes => "yes".into(),
        ForwardAgent::Socket(path) => path.clone(),
        ForwardAgent::Variable(name) => format!("${name}"),
    };
    one(out, "forwardagent", forward);
    let level = match session.log_level.value {
        LogLevel::Quiet => "SILENT",
        LogLevel::Fatal => "FATAL",
        LogLevel::Error => "ERROR",
        LogLevel::Info => "INFO",
        LogLevel::Verbose => "VERBOSE",
        LogLevel::Debug1 => "DEBUG",
        LogLevel::Debug2 => "DEBUG2",
        LogLevel::Debug3 => "DEBUG3",
    };
    one(out, "loglevel", level);
}
