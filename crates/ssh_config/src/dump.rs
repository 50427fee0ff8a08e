//! Settings in the words of `ssh -G` (`dump_client_config`, readconf.c), each with its origin.

use std::time::Duration;

use crate::algorithms::AlgorithmSpec;
use crate::jump::Hop;
use crate::origin::{Origin, Setting};
use crate::resolve::authentication::DEFAULT_IDENTITY_FILES;
use crate::resolved::{Proxy, Resolved};
use crate::value::words::Word;
use crate::value::{ForwardAgent, IdentityAgent};

/// One line of `ssh -G`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownSetting {
    /// The keyword as `ssh -G` spells it.
    pub keyword: &'static str,
    /// Its value.
    pub value: String,
    /// Where it comes from.
    pub origin: Origin,
}

/// Algorithms of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Names<'a> {
    /// What is offered if no line says otherwise, in order.
    pub defaults: &'a [&'a str],
    /// All that are implemented.
    pub known: &'a [&'a str],
}

/// The algorithms that a client implements: what its lists are made from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Implemented<'a> {
    /// For `Ciphers`.
    pub ciphers: Names<'a>,
    /// For `MACs`.
    pub macs: Names<'a>,
    /// For `KexAlgorithms`.
    pub kex: Names<'a>,
    /// For `HostKeyAlgorithms`, `PubkeyAcceptedAlgorithms` and `HostbasedAcceptedAlgorithms`.
    pub keys: Names<'a>,
    /// For `CASignatureAlgorithms`.
    pub ca_signatures: Names<'a>,
}

impl Resolved {
    /// All settings in the words of `ssh -G` (OpenSSH 10.5; Debian's GSSAPI keywords among them),
    /// those of which several lines count in their order. Paths of keys and certificates are as
    /// written, all others expanded.
    pub fn dump(&self, implemented: &Implemented<'_>) -> Vec<ShownSetting> {
        let mut printer = Printer {
            resolved: self,
            lines: Vec::with_capacity(110),
        };
        printer.destination();
        printer.flags();
        printer.words();
        printer.numbers();
        printer.texts();
        printer.algorithms(implemented);
        printer.lists();
        printer.special();
        printer.lines
    }
}

/// Flags and words without a field, and what holds without a line.
const FLAGS: &[(&str, &str)] = &[
    ("canonicalizefallbacklocal", "yes"),
    ("controlmaster", "false"),
    ("enablesshkeysign", "no"),
    ("clearallforwardings", "no"),
    ("exitonforwardfailure", "no"),
    ("fingerprinthash", "SHA256"),
    ("forwardx11", "no"),
    ("forwardx11trusted", "no"),
    ("gatewayports", "no"),
    ("gssapikeyexchange", "no"),
    ("gssapidelegatecredentials", "no"),
    ("gssapitrustdns", "no"),
    ("gssapirenewalforcesrekey", "no"),
    ("permitlocalcommand", "no"),
    ("stdinnull", "no"),
    ("forkafterauthentication", "no"),
    ("streamlocalbindunlink", "no"),
    ("tunnel", "false"),
    ("visualhostkey", "no"),
    ("enableescapecommandline", "no"),
    ("warnweakcrypto", "yes"),
    ("canonicalizemaxdots", "1"),
    ("forwardx11timeout", "1200"),
    ("obscurekeystroketiming", "yes"),
    (
        "gssapikexalgorithms",
        "gss-group14-sha256-,gss-group16-sha512-,gss-nistp256-sha256-,\
         gss-curve25519-sha256-,gss-group14-sha1-,gss-gex-sha1-",
    ),
    ("securitykeyprovider", "internal"),
    ("xauthlocation", "/usr/bin/xauth"),
    ("tunneldevice", "any:any"),
    ("controlpersist", "no"),
    ("escapechar", "~"),
    ("ipqos", "ef cs0"),
    ("streamlocalbindmask", "0177"),
    ("syslogfacility", "USER"),
];

/// Keywords without a field of which `none` says that there is none (`fill_default_options`).
const CLEARED_BY_NONE: [&str; 3] = ["controlpath", "localcommand", "securitykeyprovider"];

/// Keywords without a field and without a default.
const TEXTS: [&str; 9] = [
    "controlpath",
    "kbdinteractivedevices",
    "localcommand",
    "gssapiclientidentity",
    "gssapiserveridentity",
    "versionaddendum",
    "dynamicforward",
    "localforward",
    "remoteforward",
];

/// Lists without a field on one line, and what holds without one.
const LISTS: [(&str, &str); 5] = [
    ("canonicaldomains", "none"),
    ("logverbose", "none"),
    ("channeltimeout", "none"),
    ("permitremoteopen", "any"),
    ("canonicalizePermittedcnames", "none"),
];

struct Printer<'r> {
    resolved: &'r Resolved,
    lines: Vec<ShownSetting>,
}

impl Printer<'_> {
    fn line(&mut self, keyword: &'static str, value: impl ToString, origin: &Origin) {
        self.lines.push(ShownSetting {
            keyword,
            value: value.to_string(),
            origin: origin.clone(),
        });
    }

    fn show<T: ToString>(&mut self, keyword: &'static str, set: &Setting<T>) {
        self.line(keyword, set.value.to_string(), &set.origin);
    }

    fn show_if_set(&mut self, keyword: &'static str, set: &Option<Setting<String>>) {
        if let Some(set) = set {
            self.show(keyword, set);
        }
    }

    fn word<T: Word>(&mut self, keyword: &'static str, set: &Setting<T>) {
        self.line(keyword, set.value.name(), &set.origin);
    }

    fn seconds(&mut self, keyword: &'static str, set: &Setting<Duration>) {
        self.line(keyword, set.value.as_secs(), &set.origin);
    }

    fn files(&mut self, keyword: &'static str, set: &Setting<Vec<String>>) {
        let files = match set.value.is_empty() {
            true => "none".into(),
            false => set.value.join(" "),
        };
        self.line(keyword, files, &set.origin);
    }

    /// A keyword without a field.
    fn others(&mut self, keyword: &'static str) {
        let is_none = |arguments: &[String]| match arguments {
            [argument] => argument.eq_ignore_ascii_case("none"),
            _ => false,
        };
        for other in &self.resolved.others {
            let is_cleared = CLEARED_BY_NONE.contains(&keyword) && is_none(&other.arguments);
            if other.keyword == keyword && !is_cleared {
                self.line(keyword, other.arguments.join(" "), &other.origin);
            }
        }
    }

    fn destination(&mut self) {
        let resolved = self.resolved;
        let connection = &resolved.connection;
        self.line("host", &resolved.host, &Origin::Query);
        self.show("user", &connection.user);
        self.show("hostname", &connection.host_name);
        self.show("port", &connection.port);
        self.word("addressfamily", &connection.address_family);
        self.show_if_set("bindaddress", &connection.bind_address);
        self.show_if_set("bindinterface", &connection.bind_interface);
        match &connection.proxy.value {
            Proxy::None => {}
            Proxy::Jump(hops) => {
                let hops: Vec<String> = hops.iter().map(hop_text).collect();
                self.line("proxyjump", hops.join(","), &connection.proxy.origin);
            }
            Proxy::Command(command) => {
                self.line("proxycommand", command, &connection.proxy.origin);
            }
        }
    }

    fn flags(&mut self) {
        let Resolved {
            connection,
            host_keys,
            authentication,
            ..
        } = self.resolved;
        for (keyword, set) in [
            ("batchmode", &authentication.batch_mode),
            ("checkhostip", &host_keys.check_host_ip),
            ("compression", &connection.compression),
            (
                "gssapiauthentication",
                &authentication.gssapi_authentication,
            ),
            ("hashknownhosts", &host_keys.hash_known_hosts),
            (
                "hostbasedauthentication",
                &authentication.hostbased_authentication,
            ),
            ("identitiesonly", &authentication.identities_only),
            (
                "kbdinteractiveauthentication",
                &authentication.kbd_interactive_authentication,
            ),
            (
                "nohostauthenticationforlocalhost",
                &host_keys.no_host_authentication_for_localhost,
            ),
            (
                "passwordauthentication",
                &authentication.password_authentication,
            ),
            ("proxyusefdpass", &connection.proxy_use_fdpass),
            ("tcpkeepalive", &connection.tcp_keep_alive),
        ] {
            self.word(keyword, set);
        }
        for &(keyword, default) in FLAGS {
            match self.resolved.other(keyword) {
                Some(_) => self.others(keyword),
                None => self.line(keyword, default, &Origin::Default),
            }
        }
    }

    fn words(&mut self) {
        let Resolved {
            connection,
            host_keys,
            authentication,
            session,
            ..
        } = self.resolved;
        self.word("canonicalizehostname", &connection.canonicalize_hostname);
        self.word(
            "pubkeyauthentication",
            &authentication.pubkey_authentication,
        );
        self.word("requesttty", &session.request_tty);
        self.word("sessiontype", &session.session_type);
        self.word("stricthostkeychecking", &host_keys.strict_host_key_checking);
        self.word("updatehostkeys", &host_keys.update_host_keys);
        self.word("verifyhostkeydns", &host_keys.verify_host_key_dns);
        self.word("loglevel", &session.log_level);
    }

    fn numbers(&mut self) {
        let Resolved {
            connection,
            host_keys,
            authentication,
            ..
        } = self.resolved;
        self.show("connectionattempts", &connection.connection_attempts);
        self.show(
            "numberofpasswordprompts",
            &authentication.number_of_password_prompts,
        );
        self.show("serveralivecountmax", &connection.server_alive_count_max);
        self.seconds("serveraliveinterval", &connection.server_alive_interval);
        self.show("requiredrsasize", &host_keys.required_rsa_size);
        match &connection.connect_timeout {
            Some(timeout) => self.seconds("connecttimeout", timeout),
            None => self.line("connecttimeout", "none", &Origin::Default),
        }
        let rekey = &self.resolved.algorithms.rekey_limit;
        let interval = rekey.value.interval.unwrap_or_default().as_secs();
        let limit = format!("{} {interval}", rekey.value.bytes.unwrap_or_default());
        self.line("rekeylimit", limit, &rekey.origin);
    }

    fn texts(&mut self) {
        let Resolved {
            host_keys,
            authentication,
            session,
            ..
        } = self.resolved;
        self.show_if_set("hostkeyalias", &host_keys.host_key_alias);
        self.show_if_set("ignoreunknown", &self.resolved.ignore_unknown);
        self.show_if_set("remotecommand", &session.remote_command);
        self.show_if_set("pkcs11provider", &authentication.pkcs11_provider);
        self.show_if_set("knownhostscommand", &host_keys.known_hosts_command);
        self.show_if_set("tag", &session.tag);
        if let Some(preferred) = &authentication.preferred_authentications {
            let methods = preferred.value.join(",");
            self.line("preferredauthentications", methods, &preferred.origin);
        }
        for keyword in TEXTS {
            self.others(keyword);
        }
    }

    fn algorithms(&mut self, implemented: &Implemented<'_>) {
        let lists = &self.resolved.algorithms;
        let keys = &implemented.keys;
        self.list("ciphers", &lists.ciphers, &implemented.ciphers);
        self.list("hostkeyalgorithms", &lists.host_key, keys);
        self.list(
            "hostbasedacceptedalgorithms",
            &lists.hostbased_accepted,
            keys,
        );
        self.list("kexalgorithms", &lists.kex, &implemented.kex);
        self.list(
            "casignaturealgorithms",
            &lists.ca_signature,
            &implemented.ca_signatures,
        );
        self.list("macs", &lists.macs, &implemented.macs);
        self.list("pubkeyacceptedalgorithms", &lists.pubkey_accepted, keys);
    }

    fn list(
        &mut self,
        keyword: &'static str,
        set: &Option<Setting<AlgorithmSpec>>,
        names: &Names<'_>,
    ) {
        match set {
            None => self.line(keyword, names.defaults.join(","), &Origin::Default),
            Some(set) => {
                let list = set.value.apply(names.defaults, names.known);
                self.line(keyword, list.unwrap_or_default().join(","), &set.origin);
            }
        }
    }

    fn lists(&mut self) {
        let Resolved {
            host_keys, session, ..
        } = self.resolved;
        match &self.resolved.written_identity_files[..] {
            [] => {
                for file in DEFAULT_IDENTITY_FILES {
                    self.line("identityfile", file, &Origin::Default);
                }
            }
            files => files
                .iter()
                .for_each(|file| self.show("identityfile", file)),
        }
        for file in &self.resolved.written_certificate_files {
            self.show("certificatefile", file);
        }
        self.files("globalknownhostsfile", &host_keys.global_known_hosts_files);
        self.files("userknownhostsfile", &host_keys.user_known_hosts_files);
        self.files("revokedhostkeys", &host_keys.revoked_host_keys);
        for name in &session.send_env {
            self.show("sendenv", name);
        }
        for (name, value) in &session.set_env.value {
            self.line("setenv", format!("{name}={value}"), &session.set_env.origin);
        }
        for (keyword, default) in LISTS {
            let other = self.resolved.other(&keyword.to_ascii_lowercase());
            match other {
                Some(other) => self.line(keyword, other.arguments.join(" "), &other.origin),
                None => self.line(keyword, default, &Origin::Default),
            }
        }
    }

    fn special(&mut self) {
        let authentication = &self.resolved.authentication;
        let add_keys = &authentication.add_keys_to_agent;
        let value = match (add_keys.value.choice.name(), add_keys.value.lifetime) {
            (name, None) => name.into(),
            ("confirm", Some(lifetime)) => format!("confirm {}", lifetime.as_secs()),
            (_, Some(lifetime)) => lifetime.as_secs().to_string(),
        };
        self.line("addkeystoagent", value, &add_keys.origin);
        let agent = &authentication.identity_agent;
        if agent.is_configured() {
            let value = match &agent.value {
                IdentityAgent::None => "none".into(),
                IdentityAgent::Variable(name) if name == "SSH_AUTH_SOCK" => name.clone(),
                IdentityAgent::Variable(name) => format!("${name}"),
                IdentityAgent::Socket(path) => path.clone(),
            };
            self.line("identityagent", value, &agent.origin);
        }
        let forward = &self.resolved.session.forward_agent;
        let value = match &forward.value {
            ForwardAgent::No => "no".into(),
            ForwardAgent::Yes => "yes".into(),
            ForwardAgent::Socket(path) => path.clone(),
            ForwardAgent::Variable(name) => format!("${name}"),
        };
        self.line("forwardagent", value, &forward.origin);
    }
}

/// A hop, an address in brackets.
fn hop_text(hop: &Hop) -> String {
    let user = hop.user.as_ref().map(|user| format!("{user}@"));
    let user = user.unwrap_or_default();
    let port = hop.port.map(|port| format!(":{port}")).unwrap_or_default();
    let is_numeric = hop.host.chars().all(|c| c.is_ascii_digit() || c == '.');
    match is_numeric || hop.host.contains(':') {
        true => format!("{user}[{}]{port}", hop.host),
        false => format!("{user}{}{port}", hop.host),
    }
}
