//! How the host proves who it is.

use super::Builder;
use crate::error::Unresolved;
use crate::expand::{self, Piece};
use crate::keyword::Keyword;
use crate::line::split_command;
use crate::origin::Setting;
use crate::resolved::HostKeys;
use crate::value::words::{LogLevel, RequestTty, StrictHostKeyChecking, Word, YesNoAsk};

use super::Trouble;

/// Fewest bits of an RSA key (`SSH_RSA_MINIMUM_MODULUS_SIZE`, sshkey.h).
const DEFAULT_REQUIRED_RSA_SIZE: u32 = 1024;

const DEFAULT_USER_KNOWN_HOSTS: [&str; 2] = ["~/.ssh/known_hosts", "~/.ssh/known_hosts2"];
const DEFAULT_GLOBAL_KNOWN_HOSTS: [&str; 2] =
    ["/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"];

impl Builder<'_> {
    pub(super) fn host_keys(&self) -> Result<HostKeys, Unresolved> {
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
        let revoked_host_keys = match slots.words(Keyword::RevokedHostKeys) {
            Some(set) => self.expand(&set, |files| self.paths(files))?,
            None => Setting::default(Vec::new()),
        };
        let known_hosts_command = slots.text(Keyword::KnownHostsCommand);
        let known_hosts_command =
            known_hosts_command.filter(|set| !set.value.eq_ignore_ascii_case("none"));
        Ok(HostKeys {
            user_known_hosts_files,
            global_known_hosts_files,
            revoked_host_keys,
            known_hosts_arguments: known_hosts_command
                .as_ref()
                .map(|set| self.arguments(set.value)),
            known_hosts_command: known_hosts_command.map(Setting::owned),
            strict_host_key_checking: slots
                .word(Keyword::StrictHostKeyChecking, StrictHostKeyChecking::Ask),
            host_key_alias: self.key_alias.clone(),
            check_host_ip: slots.word(Keyword::CheckHostIp, false),
            required_rsa_size: slots.number(Keyword::RequiredRsaSize, DEFAULT_REQUIRED_RSA_SIZE),
            hash_known_hosts: slots.word(Keyword::HashKnownHosts, false),
            update_host_keys: self.update_host_keys(),
            verify_host_key_dns: slots.word(Keyword::VerifyHostKeyDns, YesNoAsk::No),
            no_host_authentication_for_localhost: slots
                .word(Keyword::NoHostAuthenticationForLocalhost, false),
        })
    }

    /// `load_hostkeys_command` (sshconnect.c): split into arguments first, which are then expanded. It is no line of the
    /// file any more: `#` begins no comment.
    fn arguments(&self, command: &str) -> Result<Vec<Vec<Piece>>, String> {
        let words = split_command(command).ok_or("a quote is not closed")?;
        let tokens = self.tokens(Some(&self.user.value));
        let expanded = words.iter().enumerate().map(|(place, word)| match place {
            0 => Ok(vec![Piece::Text(word.clone())]),
            _ => expand::pieces(word, &tokens, "HIKtf"),
        });
        expanded.collect()
    }

    fn paths(&self, files: &[String]) -> Result<Vec<String>, Trouble> {
        without_none(files)
            .iter()
            .map(|file| self.path(file))
            .collect()
    }

    /// On by default unless the files are the user's own choice (`fill_default_options`,
    /// readconf.c); never asked where there is nobody to ask (`main`, ssh.c).
    fn update_host_keys(&self) -> Setting<YesNoAsk> {
        let slots = self.slots;
        let dns = slots.word(Keyword::VerifyHostKeyDns, YesNoAsk::No).value;
        let is_stock = match slots.words_of(Keyword::UserKnownHostsFile) {
            Some(files) => files == &DEFAULT_USER_KNOWN_HOSTS[..1],
            None => true,
        };
        let default = match dns == YesNoAsk::No && is_stock {
            true => YesNoAsk::Yes,
            false => YesNoAsk::No,
        };
        let set = slots.word(Keyword::UpdateHostKeys, default);
        if set.value == YesNoAsk::Ask && !self.can_ask() {
            return set.map(|_| YesNoAsk::No);
        }
        set
    }

    fn can_ask(&self) -> bool {
        let slots = self.slots;
        let is_set = |keyword, none: &str| {
            let word = slots.word_of(keyword);
            word.is_some_and(|word| !word.eq_ignore_ascii_case(none))
        };
        let persists =
            is_set(Keyword::ControlPersist, "no") && is_set(Keyword::ControlPath, "none");
        let has_command = self
            .query
            .command
            .is_some_and(|command| !command.is_empty());
        let tty = slots
            .word_of(Keyword::RequestTty)
            .and_then(RequestTty::of_word);
        let level = slots.word_of(Keyword::LogLevel).and_then(LogLevel::of_word);
        !persists
            && !has_command
            && !is_set(Keyword::RemoteCommand, "none")
            && tty != Some(RequestTty::No)
            && !matches!(
                level,
                Some(LogLevel::Quiet | LogLevel::Fatal | LogLevel::Error)
            )
    }
}

/// A list that is only `none` is empty.
fn without_none(files: &[String]) -> &[String] {
    match files {
        [only] if only.eq_ignore_ascii_case("none") => &[],
        files => files,
    }
}
