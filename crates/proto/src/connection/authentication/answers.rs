//! What the server answers in authentication: RFC 4252 section 5, RFC 4256, and what UNIMPLEMENTED proves.

use sshoal_wire::{NameList, UserauthDialect, UserauthInfoRequest};

use super::requests::SERVICE;
use super::{Attempt, Authentication};
use crate::connection::{Connection, Login};
use crate::error::{ConnectionError, Misbehaviour, printable};
use crate::event::{AuthenticationFailure, Event, Prompt};
use crate::fate::ExecFate;

impl Connection {
    pub(in crate::connection) fn handle_service_accept(
        &mut self,
        service: &[u8],
    ) -> Result<(), ConnectionError> {
        let Login::Authenticating(authentication) = &mut self.login else {
            return Ok(());
        };
        if service != SERVICE {
            return Err(Misbehaviour::WrongService(printable(service)).into());
        }
        authentication.service_accepted = true;
        match std::mem::replace(&mut authentication.attempt, Attempt::ExpectCredential) {
            Attempt::ExpectService(credential) => self.attempt(credential),
            other => {
                authentication.attempt = other;
                Ok(())
            }
        }
    }

    pub(in crate::connection) fn handle_banner(
        &mut self,
        message: &[u8],
    ) -> Result<(), ConnectionError> {
        if let Login::Authenticating(authentication) = &mut self.login {
            authentication.count_banner(message.len())?;
        }
        self.tell(Event::Banner(message.to_vec()));
        Ok(())
    }

    pub(in crate::connection) fn handle_userauth_failure(
        &mut self,
        methods: NameList<'_>,
        partial_success: bool,
    ) -> Result<(), ConnectionError> {
        let authentication = self.awaited_answer("USERAUTH_FAILURE", |attempt| {
            matches!(attempt, Attempt::ExpectResult(_) | Attempt::ExpectPkOk(..))
        })?;
        authentication.count_round()?;
        let failure = AuthenticationFailure {
            methods: methods.iter().map(str::to_owned).collect(),
            partial_success,
        };
        match self.command_in_flight() {
            Some(_) => self.login.expect(Attempt::ExpectDiscard(failure)),
            None => {
                self.login.expect(Attempt::ExpectCredential);
                self.tell(Event::AuthenticationNeeded(Some(failure)));
            }
        }
        Ok(())
    }

    /// UNIMPLEMENTED: proof that a command which travelled with a failed authentication was thrown away
    /// (RFC 4253 section 11.4: it names the packet that was not understood).
    pub(in crate::connection) fn handle_unimplemented(&mut self, sequence: u32) {
        let Some((channel, in_flight)) = self.command_in_flight() else {
            return;
        };
        // A packet that has not left cannot have been thrown away.
        if in_flight != sequence || self.exec_fate(channel) != ExecFate::MayHaveRun {
            return;
        }
        let Login::Authenticating(authentication) = &mut self.login else {
            return;
        };
        let Attempt::ExpectDiscard(failure) = &mut authentication.attempt else {
            return;
        };
        let failure = std::mem::take(failure);
        authentication.attempt = Attempt::ExpectCredential;
        self.take_back(channel);
        self.tell(Event::AuthenticationNeeded(Some(failure)));
    }

    /// DISCONNECT before USERAUTH_SUCCESS: proof that a command which travelled with the authentication was thrown away.
    ///
    /// A server lets the user in by sending USERAUTH_SUCCESS before it serves ssh-connection (RFC 4252 section 5.1, RFC
    /// 4251 section 4), and its packets come in the order in which it sent them, authenticated. After DISCONNECT it
    /// "MUST NOT send or receive any data" (RFC 4253 section 11.1). sshd ends so at MaxAuthTries (auth.c,
    /// auth_maxtries_exceeded).
    pub(in crate::connection) fn handle_refused_login(&mut self) {
        if !matches!(self.login, Login::Authenticating(_)) {
            return;
        }
        if let Some((channel, _)) = self.command_in_flight()
            && self.exec_fate(channel) == ExecFate::MayHaveRun
        {
            self.take_back(channel);
        }
    }

    pub(in crate::connection) fn handle_userauth_success(&mut self) -> Result<(), ConnectionError> {
        self.awaited_answer("USERAUTH_SUCCESS", |attempt| {
            matches!(attempt, Attempt::ExpectResult(_))
        })?;
        self.login = Login::Authenticated;
        if let Some(established) = &mut self.established {
            established.signature_algorithms = None;
        }
        self.tell(Event::Authenticated);
        self.open_waiting_channels()
    }

    pub(in crate::connection) fn handle_pk_ok(
        &mut self,
        offered: &[u8],
    ) -> Result<(), ConnectionError> {
        let authentication = self.awaited_answer("USERAUTH_PK_OK", |attempt| {
            matches!(attempt, Attempt::ExpectPkOk(..))
        })?;
        authentication.count_round()?;
        match std::mem::replace(&mut authentication.attempt, Attempt::ExpectCredential) {
            Attempt::ExpectPkOk(key, algorithm) if key.blob == offered => self.sign(key, algorithm),
            _ => Err(Misbehaviour::WrongPkOk.into()),
        }
    }

    pub(in crate::connection) fn handle_password_change(
        &mut self,
        prompt: &[u8],
    ) -> Result<(), ConnectionError> {
        let authentication = self.awaited_answer("USERAUTH_PASSWD_CHANGEREQ", |attempt| {
            matches!(attempt, Attempt::ExpectResult(UserauthDialect::Password))
        })?;
        authentication.count_round()?;
        authentication.attempt = Attempt::ExpectCredential;
        self.tell(Event::PasswordExpired {
            prompt: prompt.to_vec(),
        });
        Ok(())
    }

    pub(in crate::connection) fn handle_info_request(
        &mut self,
        request: &UserauthInfoRequest<'_>,
    ) -> Result<(), ConnectionError> {
        let authentication = self.awaited_answer("USERAUTH_INFO_REQUEST", |attempt| {
            matches!(
                attempt,
                Attempt::ExpectResult(UserauthDialect::KeyboardInteractive)
            )
        })?;
        authentication.count_round()?;
        authentication.attempt = Attempt::ExpectAnswers;
        let prompts = request.prompts.iter().map(|prompt| Prompt {
            text: prompt.prompt.to_vec(),
            echo: prompt.echo,
        });
        let event = Event::PromptsToAnswer {
            name: request.name.to_vec(),
            instruction: request.instruction.to_vec(),
            prompts: prompts.collect(),
        };
        self.tell(event);
        Ok(())
    }

    /// The authentication, if `message` answers what it awaits.
    fn awaited_answer(
        &mut self,
        message: &'static str,
        awaited: impl FnOnce(&Attempt) -> bool,
    ) -> Result<&mut Authentication, Misbehaviour> {
        match &mut self.login {
            Login::Authenticating(authentication) if awaited(&authentication.attempt) => {
                Ok(authentication)
            }
            _ => Err(Misbehaviour::UnaskedReply { message }),
        }
    }
}
