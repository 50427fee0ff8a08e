//! How the user proves who they are.

use super::Builder;
use crate::error::{Problem, ResolveError, Unresolved};
use crate::keyword::Keyword;
use crate::origin::Setting;
use crate::resolved::Authentication;
use crate::value::words::PubkeyAuthentication;
use crate::value::{AddKeys, AddKeysToAgent, IdentityAgent, Value};

/// Most identity files, and most certificate files, of one host (`SSH_MAX_IDENTITY_FILES`,
/// ssh.h).
const MAX_IDENTITY_FILES: usize = 100;

/// Where ssh looks for keys if no line says (`fill_default_options`, readconf.c).
pub(crate) const DEFAULT_IDENTITY_FILES: [&str; 5] = [
    "~/.ssh/id_rsa",
    "~/.ssh/id_ecdsa",
    "~/.ssh/id_ecdsa_sk",
    "~/.ssh/id_ed25519",
    "~/.ssh/id_ed25519_sk",
];

/// The variable that names the agent's socket.
const SSH_AUTH_SOCK: &str = "SSH_AUTH_SOCK";

impl<'a> Builder<'a> {
    pub(super) fn authentication(&self) -> Result<Authentication, Unresolved> {
        let slots = self.slots;
        let mut identity_files = self.written(Keyword::IdentityFile)?;
        if identity_files.is_empty() {
            identity_files.extend(DEFAULT_IDENTITY_FILES.map(Setting::default));
        }
        let preferred = slots.text(Keyword::PreferredAuthentications);
        let pkcs11_provider = slots.text(Keyword::Pkcs11Provider);
        let pkcs11_provider = pkcs11_provider.filter(|set| !set.value.eq_ignore_ascii_case("none"));
        Ok(Authentication {
            identity_files: self.expand_all(&identity_files)?,
            certificate_files: self.expand_all(&self.written(Keyword::CertificateFile)?)?,
            identities_only: slots.word(Keyword::IdentitiesOnly, false),
            identity_agent: self.identity_agent()?,
            add_keys_to_agent: self.add_keys_to_agent(),
            preferred_authentications: preferred
                .map(|set| set.map(|list| list.split(',').map(String::from).collect())),
            pubkey_authentication: slots
                .word(Keyword::PubkeyAuthentication, PubkeyAuthentication::Yes),
            password_authentication: slots.word(Keyword::PasswordAuthentication, true),
            kbd_interactive_authentication: slots.word(Keyword::KbdInteractiveAuthentication, true),
            number_of_password_prompts: slots.number(Keyword::NumberOfPasswordPrompts, 3),
            gssapi_authentication: slots.word(Keyword::GssapiAuthentication, false),
            hostbased_authentication: slots.word(Keyword::HostbasedAuthentication, false),
            pkcs11_provider: pkcs11_provider.map(Setting::owned),
            batch_mode: slots.word(Keyword::BatchMode, false),
        })
    }

    /// The files of all lines with a keyword as they are written, each once
    /// (`add_identity_file`, `add_certificate_file`, readconf.c).
    pub(super) fn written(&self, keyword: Keyword) -> Result<Vec<Setting<&'a str>>, ResolveError> {
        let mut files: Vec<Setting<&str>> = Vec::new();
        for directive in &self.slots.accumulated {
            let Value::Text(text) = &directive.value else {
                continue;
            };
            if directive.keyword != keyword {
                continue;
            }
            if files.len() == MAX_IDENTITY_FILES {
                let why = format!("more than {MAX_IDENTITY_FILES} files for one host");
                let origin = directive.origin.clone();
                return Err(ResolveError::Line(Problem { origin, why }));
            }
            if !files.iter().any(|have| have.value == text) {
                files.push(Setting::new(text, directive.origin.clone()));
            }
        }
        Ok(files)
    }

    /// The paths that are meant, each once; `none` stands for no file.
    fn expand_all(&self, files: &[Setting<&str>]) -> Result<Vec<Setting<String>>, Unresolved> {
        let mut paths: Vec<Setting<String>> = Vec::new();
        for file in files {
            if file.value.eq_ignore_ascii_case("none") {
                continue;
            }
            let path = self.expand(file, |file| self.path(file))?;
            if !paths.iter().any(|have| have.value == path.value) {
                paths.push(path);
            }
        }
        Ok(paths)
    }

    fn identity_agent(&self) -> Result<Setting<IdentityAgent>, Unresolved> {
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

    fn add_keys_to_agent(&self) -> Setting<AddKeysToAgent> {
        let set = self
            .slots
            .get(Keyword::AddKeysToAgent, |value| match value {
                Value::AddKeys(add_keys) => Some(*add_keys),
                _ => None,
            });
        set.unwrap_or(Setting::default(AddKeysToAgent {
            choice: AddKeys::No,
            lifetime: None,
        }))
    }
}
