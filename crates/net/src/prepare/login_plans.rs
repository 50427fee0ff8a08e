//! How to log in to each host: settings made into a plan, once for all hosts with the same.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use sshoal_agent::KEY_TYPES;
use sshoal_ssh_config::{
    AlgorithmSpec, Algorithms, Authentication, ForwardAgent, IdentityAgent, Origin,
    PubkeyAuthentication, Resolved, Setting,
};
use tokio::sync::Semaphore;

use super::SshOptions;
use super::algorithms::{AlgorithmError, chosen};
use super::kerberos;
use super::key_files::{IdentityError, KeyFiles};
use crate::agent::Agent;
use crate::login::{ForeignMethod, KeyFile, LoginPlan, Method, UserKey};

/// Why there is no plan.
pub(super) enum LoginPlanError {
    Identity(IdentityError),
    Algorithms(AlgorithmError),
}

impl From<IdentityError> for LoginPlanError {
    fn from(error: IdentityError) -> Self {
        LoginPlanError::Identity(error)
    }
}

/// Plans by the settings they were made from.
pub(super) struct LoginPlans {
    /// By the hash of the settings' paths, which are what differs from host to host, if anything does.
    plans: HashMap<u64, Vec<Made>>,
    files: KeyFiles,
    agents: HashMap<String, Arc<Agent>>,
    touch: Arc<Semaphore>,
    tolerance: Tolerance,
    /// What SSH_AUTH_SOCK is, if not what our environment says.
    auth_sock: Option<String>,
}

/// What is done about files that are named and cannot be used.
struct Tolerance {
    /// Whether hosts do without them.
    does_without: bool,
    /// What is wrong with those.
    unusable: BTreeSet<String>,
}

/// A plan, and all that it was made from.
struct Made {
    settings: Authentication,
    accepted: Option<Setting<AlgorithmSpec>>,
    required_rsa_size: u32,
    plan: Arc<LoginPlan>,
}

impl Made {
    fn is_from(&self, resolved: &Resolved) -> bool {
        self.settings == resolved.authentication
            && self.accepted == resolved.algorithms.pubkey_accepted
            && self.required_rsa_size == resolved.host_keys.required_rsa_size.value
    }
}

impl LoginPlans {
    pub(super) fn new(ssh: &SshOptions) -> Self {
        LoginPlans {
            auth_sock: ssh.auth_sock.clone(),
            plans: HashMap::new(),
            files: KeyFiles::default(),
            agents: HashMap::new(),
            touch: Arc::new(Semaphore::new(1)),
            tolerance: Tolerance {
                does_without: ssh.does_without_keys,
                unusable: BTreeSet::new(),
            },
        }
    }

    /// What is wrong with the files that are named and that hosts do without.
    pub(super) fn unusable(&self) -> &BTreeSet<String> {
        &self.tolerance.unusable
    }

    /// The plan for a host's settings.
    pub(super) fn plan(&mut self, resolved: &Resolved) -> Result<Arc<LoginPlan>, LoginPlanError> {
        let paths = path_hash(&resolved.authentication);
        let known = self.plans.get(&paths).into_iter().flatten();
        if let Some(made) = known.into_iter().find(|made| made.is_from(resolved)) {
            return Ok(made.plan.clone());
        }
        let plan = Arc::new(self.make(resolved)?);
        self.plans.entry(paths).or_default().push(Made {
            settings: resolved.authentication.clone(),
            accepted: resolved.algorithms.pubkey_accepted.clone(),
            required_rsa_size: resolved.host_keys.required_rsa_size.value,
            plan: plan.clone(),
        });
        Ok(plan)
    }

    fn make(&mut self, resolved: &Resolved) -> Result<LoginPlan, LoginPlanError> {
        let settings = &resolved.authentication;
        let mut left_out = Vec::new();
        if let Some(set) = pkcs11_provider(settings) {
            left_out.push(format!(
                "the keys of PKCS11Provider {} ({}) are for ssh itself",
                set.value, set.origin
            ));
        }
        let uses_keys = settings.pubkey_authentication.value != PubkeyAuthentication::No;
        let (files, certificates) = match uses_keys {
            true => (
                self.key_files(settings, &mut left_out)?,
                self.certificates(settings, &mut left_out)?,
            ),
            false => Default::default(),
        };
        Ok(LoginPlan {
            methods: methods(settings),
            certificates,
            files,
            agent: uses_keys.then(|| self.agent(settings)).flatten(),
            add_keys: settings.add_keys_to_agent.value,
            identities_only: settings.identities_only.value,
            algorithms: accepted(&resolved.algorithms).map_err(LoginPlanError::Algorithms)?,
            required_rsa_size: resolved.host_keys.required_rsa_size.value as usize,
            foreign: foreign(settings),
            // As with passwords: ssh asks for a passphrase so often at most (sshconnect2.c, load_identity_file).
            may_ask: !settings.batch_mode.value && settings.number_of_password_prompts.value > 0,
            left_out,
            touch: self.touch.clone(),
        })
    }

    /// IdentityFile. A file that the user named must be usable, or nothing is begun, unless the run is to do without; but
    /// one that a configuration file names for many machines may be absent on this one, as with ssh.
    fn key_files(
        &mut self,
        settings: &Authentication,
        left_out: &mut Vec<String>,
    ) -> Result<Vec<KeyFile>, IdentityError> {
        let mut files = Vec::new();
        for setting in &settings.identity_files {
            let path = &setting.value;
            let content = match self.files.key(path) {
                Ok(content) => content,
                Err(error) => {
                    self.tolerance.judge(setting, error, left_out)?;
                    continue;
                }
            };
            let certificate = match settings.certificate_files.is_empty() {
                true => self.certificate_beside(path, &content.key),
                false => None,
            };
            files.push(KeyFile {
                key: content.key,
                secret: content.secret,
                certificate,
                named: setting.is_configured(),
            });
        }
        Ok(files)
    }

    /// KEY-cert.pub, if it is there and belongs to the key (ssh.c, load_public_identity_files).
    fn certificate_beside(&mut self, path: &str, key: &UserKey) -> Option<Arc<UserKey>> {
        let stem = path.strip_suffix(".pub").unwrap_or(path);
        self.files
            .certificate(&format!("{stem}-cert.pub"))
            .ok()
            .filter(|certificate| certificate.plain == key.plain)
    }

    /// CertificateFile.
    fn certificates(
        &mut self,
        settings: &Authentication,
        left_out: &mut Vec<String>,
    ) -> Result<Vec<Arc<UserKey>>, IdentityError> {
        let mut certificates = Vec::new();
        for setting in &settings.certificate_files {
            match self.files.certificate(&setting.value) {
                Ok(certificate) => certificates.push(certificate),
                Err(error) => self.tolerance.judge(setting, error, left_out)?,
            }
        }
        Ok(certificates)
    }

    /// IdentityAgent.
    fn agent(&mut self, settings: &Authentication) -> Option<Arc<Agent>> {
        let socket = match &settings.identity_agent.value {
            IdentityAgent::None => None,
            IdentityAgent::Socket(path) => Some(path.clone()),
            IdentityAgent::Variable(name) => self.variable(name),
        };
        self.agent_at(socket)
    }

    /// ForwardAgent: the agent that keys are taken from, or one of its own.
    pub(super) fn forwarded_agent(&mut self, resolved: &Resolved) -> Option<Arc<Agent>> {
        match &resolved.session.forward_agent.value {
            ForwardAgent::No => None,
            ForwardAgent::Yes => self.agent(&resolved.authentication),
            ForwardAgent::Socket(path) => self.agent_at(Some(path.clone())),
            ForwardAgent::Variable(name) => {
                let socket = self.variable(name);
                self.agent_at(socket)
            }
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        let given = self.auth_sock.clone().filter(|_| name == "SSH_AUTH_SOCK");
        given.or_else(|| std::env::var(name).ok())
    }

    /// One value an agent, shared by all plans.
    fn agent_at(&mut self, socket: Option<String>) -> Option<Arc<Agent>> {
        let socket = socket.filter(|path| !path.is_empty())?;
        let make = || Arc::new(Agent::new(&socket));
        Some(
            self.agents
                .entry(socket.clone())
                .or_insert_with(make)
                .clone(),
        )
    }
}

fn path_hash(settings: &Authentication) -> u64 {
    let mut hasher = DefaultHasher::new();
    for file in settings
        .identity_files
        .iter()
        .chain(&settings.certificate_files)
    {
        file.value.hash(&mut hasher);
    }
    hasher.finish()
}

impl Tolerance {
    /// Decides whether a run may do without a file.
    fn judge(
        &mut self,
        setting: &Setting<String>,
        error: IdentityError,
        left_out: &mut Vec<String>,
    ) -> Result<(), IdentityError> {
        match (&setting.origin, error.is_absent()) {
            // Only the usual places were looked at: what is not there is not missed.
            (Origin::Default, true) => return Ok(()),
            (Origin::Default, false) | (Origin::File { .. }, true) => {}
            _ if self.does_without => drop(self.unusable.insert(error.to_string())),
            _ => return Err(error),
        }
        left_out.push(error.to_string());
        Ok(())
    }
}

/// PKCS11Provider, unless it is `none`.
pub(super) fn pkcs11_provider(settings: &Authentication) -> Option<&Setting<String>> {
    let provider = settings.pkcs11_provider.as_ref();
    provider.filter(|set| !set.value.eq_ignore_ascii_case("none"))
}

/// Methods that are switched on, may succeed, and are ssh's alone.
fn foreign(settings: &Authentication) -> Vec<ForeignMethod> {
    let gssapi = settings.gssapi_authentication.value && kerberos::has_ticket();
    let hostbased = settings.hostbased_authentication.value;
    let on = [
        (gssapi, ForeignMethod::Gssapi),
        (hostbased, ForeignMethod::Hostbased),
    ];
    on.into_iter()
        .filter_map(|(is_on, method)| is_on.then_some(method))
        .collect()
}

/// PreferredAuthentications, less what is switched off.
pub(super) fn methods(settings: &Authentication) -> Vec<Method> {
    let preferred = match &settings.preferred_authentications {
        None => Method::ALL.to_vec(),
        Some(list) => list
            .value
            .iter()
            .filter_map(|name| Method::by_name(name))
            .collect(),
    };
    // readconf.c, fill_default_options, and sshconnect2.c: batch mode asks for no password.
    let passwords = !settings.batch_mode.value && settings.number_of_password_prompts.value > 0;
    let is_on = |method: &Method| match method {
        Method::PublicKey => settings.pubkey_authentication.value != PubkeyAuthentication::No,
        Method::KeyboardInteractive => settings.kbd_interactive_authentication.value && passwords,
        Method::Password => settings.password_authentication.value && passwords,
    };
    preferred.into_iter().filter(is_on).collect()
}

/// PubkeyAcceptedAlgorithms.
pub(super) fn accepted(algorithms: &Algorithms) -> Result<Vec<&'static str>, AlgorithmError> {
    let names: Vec<&'static str> = KEY_TYPES
        .iter()
        .flat_map(|key_type| key_type.algorithms)
        .map(|algorithm| algorithm.name)
        .collect();
    chosen(
        "PubkeyAcceptedAlgorithms",
        &algorithms.pubkey_accepted,
        &names,
        |name| names.iter().copied().find(|known| *known == name),
    )
}
