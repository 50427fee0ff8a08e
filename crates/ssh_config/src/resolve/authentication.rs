//! How the host and the user prove who they are.

use super::Builder;
use crate::config::Directive;
use crate::error::{Problem, ResolveError};
use crate::keyword::Keyword;
use crate::origin::Setting;
use crate::resolved::{Authentication, HostKeys};
use crate::value::{IdentityAgent, PubkeyAuthentication, StrictHostKeyChecking, Value};

/// Most identity files, and most certificate files, of one host (`SSH_MAX_IDENTITY_FILES`,
/// ssh.h).
const MAX_IDENTITY_FILES: usize = 100;

/// Fewest bits of an RSA key (`SSH_RSA_MINIMUM_MODULUS_SIZE`, sshkey.h).
const DEFAULT_REQUIRED_RSA_SIZE: u32 = 1024;

/// Where ssh looks for keys if no line says (`fill_default_options`, readconf.c).
const DEFAULT_IDENTITY_FILES: [&str; 5] = [
    "~/.ssh/id_rsa",
    "~/.ssh/id_ecdsa",
    "~/.ssh/id_ecdsa_sk",
    "~/.ssh/id_ed25519",
    "~/.ssh/id_ed25519_sk",
];

const DEFAULT_USER_KNOWN_HOSTS: [&str; 2] = ["~/.ssh/known_hosts", "~/.ssh/known_hosts2"];
const DEFAULT_GLOBAL_KNOWN_HOSTS: [&str; 2] =
    ["/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"];

/// The variable that names the agent's socket.
const SSH_AUTH_SOCK: &str = "SSH_AUTH_SOCK";

impl<'a> Builder<'a> {
    pub(super) fn host_keys(&self) -> Result<HostKeys, ResolveError> {
        let slots = self.slots;
        let user_known_hosts_files = match slots.words(Keyword::UserKnownHostsFile) {
            Some(set) => self.expand(&set, |files| self.paths(files))?,
            None => {
                let files = DEFAULT_USER_KNOWN_HOSTS.map(String::from);
                self.expand(&Setting::default(files), |files| self.paths(files))?
            }
        };
        let global_known_hosts_files = match slots.words(Keyword::GlobalKnownHostsFile) {
            Some(set) => set.map(|files| without_none(files).to_vec()),
            None => Setting::default(DEFAULT_GLOBAL_KNOWN_HOSTS.map(String::from).to_vec()),
        };
        Ok(HostKeys {
            user_known_hosts_files,
            global_known_hosts_files,
            strict_host_key_checking: slots
                .word(Keyword::StrictHostKeyChecking, StrictHostKeyChecking::Ask),
            host_key_alias: self.key_alias.clone(),
            check_host_ip: slots.word(Keyword::CheckHostIp, false),
            required_rsa_size: slots.number(Keyword::RequiredRsaSize, DEFAULT_REQUIRED_RSA_SIZE),
        })
    }

    fn paths(&self, files: &[String]) -> Result<Vec<String>, String> {
        without_none(files)
            .iter()
            .map(|file| self.path(file))
            .collect()
    }

    pub(super) fn authentication(&self) -> Result<Authentication, ResolveError> {
        let slots = self.slots;
        let mut identity_files = self.accumulated_paths(Keyword::IdentityFile)?;
        if !slots
            .accumulated
            .iter()
            .any(|set| set.keyword == Keyword::IdentityFile)
        {
            for file in DEFAULT_IDENTITY_FILES {
                identity_files.push(self.expand(&Setting::default(file), |file| self.path(file))?);
            }
        }
        let preferred = slots.text(Keyword::PreferredAuthentications);
        Ok(Authentication {
            identity_files,
            certificate_files: self.accumulated_paths(Keyword::CertificateFile)?,
            identities_only: slots.word(Keyword::IdentitiesOnly, false),
            identity_agent: self.identity_agent()?,
            preferred_authentications: preferred
                .map(|set| set.map(|list| list.split(',').map(String::from).collect())),
            pubkey_authentication: slots
                .word(Keyword::PubkeyAuthentication, PubkeyAuthentication::Yes),
            password_authentication: slots.word(Keyword::PasswordAuthentication, true),
            kbd_interactive_authentication: slots.word(Keyword::KbdInteractiveAuthentication, true),
            number_of_password_prompts: slots.number(Keyword::NumberOfPasswordPrompts, 3),
            batch_mode: slots.word(Keyword::BatchMode, false),
        })
    }

    /// The paths of all lines with a keyword, each once; `none` stands for no file.
    fn accumulated_paths(&self, keyword: Keyword) -> Result<Vec<Setting<String>>, ResolveError> {
        let mut paths: Vec<Setting<String>> = Vec::new();
        for (text, directive) in self.accumulated(keyword) {
            if text.eq_ignore_ascii_case("none") {
                continue;
            }
            let set = Setting::new(text, directive.origin.clone());
            let path = self.expand(&set, |text| self.path(text))?;
            if paths.iter().any(|have| have.value == path.value) {
                continue;
            }
            if paths.len() == MAX_IDENTITY_FILES {
                let why = format!("more than {MAX_IDENTITY_FILES} files for one host");
                return Err(ResolveError::Line(Problem {
                    origin: path.origin,
                    why,
                }));
            }
            paths.push(path);
        }
        Ok(paths)
    }

    fn accumulated(&self, keyword: Keyword) -> impl Iterator<Item = (&'a str, &'a Directive)> {
        self.slots
            .accumulated
            .iter()
            .filter_map(move |directive| match &directive.value {
                Value::Text(text) if directive.keyword == keyword => {
                    Some((text.as_str(), *directive))
                }
                _ => None,
            })
    }

    fn identity_agent(&self) -> Result<Setting<IdentityAgent>, ResolveError> {
        let Some(set) = self.slots.text(Keyword::IdentityAgent) else {
            return Ok(Setting::default(IdentityAgent::Variable(
                SSH_AUTH_SOCK.into(),
            )));
        };
        let path = self.expand(&set, |path| self.path(path))?;
        Ok(path.map(|path| match path.as_str() {
            "none" => IdentityAgent::None,
            SSH_AUTH_SOCK => IdentityAgent::Variable(path),
            text => match text.strip_prefix('$') {
                Some(name) => IdentityAgent::Variable(name.into()),
                None => IdentityAgent::Socket(path),
            },
        }))
    }
}

/// A list that is only `none` is empty.
fn without_none(files: &[String]) -> &[String] {
    match files {
        [only] if only.eq_ignore_ascii_case("none") => &[],
        files => files,
    }
}
