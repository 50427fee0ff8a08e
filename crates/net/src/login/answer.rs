//! The server's questions before it lets anybody in: its host key, then credentials.

use std::net::SocketAddr;

use sshoal_fleet::Failure;
use sshoal_proto::{Connection, Event};

use super::Login;
use crate::known_hosts::NewKeys;
use crate::plan::HostTrust;

impl Login<'_> {
    /// Answers what is about the login, and gives other events back.
    ///
    /// # Errors
    ///
    /// The login has failed: the host is not the right one, or nothing is left to try.
    pub(crate) fn answer(
        &mut self,
        trust: &HostTrust,
        peer: Option<SocketAddr>,
        new_keys: &NewKeys,
        connection: &mut Connection,
        event: Event,
    ) -> Result<Option<Event>, Failure> {
        match event {
            Event::HostKey(question) => {
                let judged = trust.judge(&question, peer, new_keys);
                let judged = judged.and_then(|judgement| self.obey(judgement, connection));
                if let Err(failure) = judged {
                    connection.refuse_host_key();
                    return Err(failure);
                }
                if self.vouched.is_some() {
                    connection.hear_host_keys();
                }
                // An error stays the connection's answer and comes back from its next call.
                drop(connection.accept_host_key());
            }
            Event::AuthenticationNeeded(last) => self.handle_needed(connection, last)?,
            Event::SignatureNeeded(request) => self.handle_signature(connection, request),
            Event::PromptsToAnswer { prompts, .. } => self.handle_prompts(connection, &prompts)?,
            Event::PasswordExpired { prompt } => return Err(self.password_expired(&prompt)),
            Event::Authenticated => self.handle_authenticated(),
            Event::Banner(text) => self.handle_banner(text),
            other => return Ok(Some(other)),
        }
        Ok(None)
    }
}
