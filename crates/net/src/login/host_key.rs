//! What the verdict on the host's key means for the login.

use sshoal_fleet::{Failure, FailureKind};
use sshoal_proto::Connection;

use super::Login;
use crate::host_key_questions::{nobody, not_accepted};
use crate::host_key_update::HostKeyUpdate;
use crate::observer::Confirmation;
use crate::trust::{Accepted, Judgement, UnknownKey};

impl<'a> Login<'a> {
    /// What is made of the host's key.
    ///
    /// # Errors
    ///
    /// It is not accepted, or not yet: then [`take_unknown_key`](Self::take_unknown_key) has it.
    pub(super) fn obey(
        &mut self,
        judgement: Judgement,
        connection: &mut Connection,
    ) -> Result<(), Failure> {
        match judgement {
            Judgement::Accepted(accepted) => self.withhold_from(accepted, connection),
            Judgement::Vouched(accepted, address) => {
                self.vouched = Some(address);
                self.withhold_from(accepted, connection)
            }
            Judgement::Asks(unknown) if !self.asks => Err(nobody(
                &unknown.detail,
                "there is no terminal to ask on whether to accept it",
            )),
            Judgement::Asks(unknown) => {
                let failure = not_accepted(&unknown, &Confirmation::Unanswered);
                self.unknown_key = Some(unknown);
                Err(failure)
            }
        }
    }

    /// What is left to do about the server's host keys, if it may tell of them.
    pub(crate) fn take_host_key_update(&mut self) -> Option<HostKeyUpdate<'a>> {
        let address = self.vouched.take()?;
        Some(HostKeyUpdate::new(self.trust, address))
    }

    /// The key that the user is to be asked about, because of which the login has failed.
    pub(crate) fn take_unknown_key(&mut self) -> Option<Box<UnknownKey>> {
        self.unknown_key.take()
    }

    /// If the host's key is not the one that is known, and the user wants to go on all the same, the server may be
    /// anybody, and gets no password and no agent (sshconnect.c, check_host_key).
    ///
    /// # Errors
    ///
    /// The command reads a password before all else: without it there is nothing to run.
    fn withhold_from(
        &mut self,
        accepted: Accepted,
        connection: &mut Connection,
    ) -> Result<(), Failure> {
        if accepted != Accepted::Changed {
            return Ok(());
        }
        connection.withhold_agent();
        if self.feeds_secret {
            let detail = "the host key is not the one that is known, so the password for sudo was not sent and nothing run";
            return Err(Failure::new(FailureKind::HostKeyChanged, detail));
        }
        if self.password.take().is_some() {
            self.denial.note(
                "the password was not sent, because the host key is not the one that is known"
                    .to_owned(),
            );
        }
        Ok(())
    }
}
