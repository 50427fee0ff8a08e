//! The server's questions before it lets anybody in: its host key, then credentials.

use std::net::SocketAddr;

use sshoal_fleet::Failure;
use sshoal_proto::{Connection, Event, HostKeyQuestion};

use super::signing::WorkDone;
use super::{Login, Step};
use crate::known_hosts::NewKeys;
use crate::trust::{Consultation, OtherLines};

impl Login<'_> {
    /// Answers what is about the login, and gives other events back.
    ///
    /// # Errors
    ///
    /// The login has failed: the host is not the right one, or nothing is left to try.
    pub(crate) fn answer(
        &mut self,
        peer: Option<SocketAddr>,
        new_keys: &NewKeys,
        connection: &mut Connection,
        event: Event,
    ) -> Result<Option<Event>, Failure> {
        match event {
            Event::HostKey(question) => match self.trust.consult(&question, peer) {
                Some(lines) => self.wait_for_lines(question, peer, lines),
                None => self.judge(
                    connection,
                    &Shown {
                        question,
                        peer,
                        lines: OtherLines::default(),
                    },
                    new_keys,
                )?,
            },
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
    /// The host's key is judged once the program's lines are there.
    fn wait_for_lines(
        &mut self,
        question: HostKeyQuestion,
        peer: Option<SocketAddr>,
        lines: Consultation,
    ) {
        self.step = Step::Working(Box::pin(async move {
            let lines = lines.await;
            WorkDone::Consulted(lines.map(|lines| {
                Box::new(Shown {
                    question,
                    peer,
                    lines,
                })
            }))
        }));
    }

    /// Judges the host's key, and goes on or not.
    ///
    /// # Errors
    ///
    /// The host is not the right one, or the user has to say whether it is.
    pub(super) fn judge(
        &mut self,
        connection: &mut Connection,
        shown: &Shown,
        new_keys: &NewKeys,
    ) -> Result<(), Failure> {
        let judged = self
            .trust
            .judge(&shown.question, shown.peer, &shown.lines, new_keys);
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
        Ok(())
    }
}

/// A host key that is to be judged, and all that it is judged by beside the files.
pub(super) struct Shown {
    question: HostKeyQuestion,
    peer: Option<SocketAddr>,
    lines: OtherLines,
}
