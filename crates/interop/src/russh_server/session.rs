//! One connection: who may log in, and which channel runs which command.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use russh::keys::PublicKey;
use russh::server::{
    Auth, ChannelOpenHandle, Handler, Msg, PublicKeyOffer, Session as RusshSession,
    VerifiedPublicKey,
};
use russh::{Channel, ChannelId};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::command;

/// russh asks this about all that a client wants.
pub(super) struct Session {
    authorized_keys: Arc<Path>,
    environment: Vec<(String, String)>,
    /// Where each running command takes its standard input from. Dropping it is the input's end.
    inputs: HashMap<ChannelId, UnboundedSender<Vec<u8>>>,
}

impl Session {
    pub(super) fn new(authorized_keys: Arc<Path>) -> Session {
        Session {
            authorized_keys,
            environment: Vec::new(),
            inputs: HashMap::new(),
        }
    }

    /// Reads the file anew at each login, so that a test may change it while the server runs.
    fn accepts(&self, key: &PublicKey) -> bool {
        let text = fs::read_to_string(&self.authorized_keys).unwrap_or_default();
        text.lines()
            .filter_map(|line| PublicKey::from_openssh(line).ok())
            .any(|authorized| authorized.key_data() == key.key_data())
    }

    fn judge(&self, key: &PublicKey) -> Auth {
        match self.accepts(key) {
            true => Auth::Accept,
            false => Auth::reject(),
        }
    }
}

impl Handler for Session {
    type Error = russh::Error;

    async fn auth_publickey_offered(
        &mut self,
        _: &str,
        offer: PublicKeyOffer<'_>,
    ) -> Result<Auth, Self::Error> {
        Ok(self.judge(offer.public_key))
    }

    async fn auth_publickey(
        &mut self,
        _: &str,
        key: VerifiedPublicKey<'_>,
    ) -> Result<Auth, Self::Error> {
        Ok(self.judge(key.public_key))
    }

    async fn channel_open_session(
        &mut self,
        _: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut RusshSession,
    ) -> Result<(), Self::Error> {
        // russh's Channel is dropped: its bounded queue would stop the connection, window adjustments included,
        // whenever a command is slower than its input.
        reply.accept().await;
        Ok(())
    }

    async fn env_request(
        &mut self,
        channel: ChannelId,
        name: &str,
        value: &str,
        session: &mut RusshSession,
    ) -> Result<(), Self::Error> {
        self.environment.push((name.to_owned(), value.to_owned()));
        session.channel_success(channel)
    }

    async fn exec_request(
        &mut self,
        channel: ChannelId,
        line: &[u8],
        session: &mut RusshSession,
    ) -> Result<(), Self::Error> {
        let (input, received) = unbounded_channel();
        let Ok(child) = command::start(line, &self.environment) else {
            return session.channel_failure(channel);
        };
        session.channel_success(channel)?;
        self.inputs.insert(channel, input);
        tokio::spawn(command::run(child, received, session.handle(), channel));
        Ok(())
    }

    async fn data(
        &mut self,
        channel: ChannelId,
        data: &[u8],
        _: &mut RusshSession,
    ) -> Result<(), Self::Error> {
        if let Some(input) = self.inputs.get(&channel) {
            // Refused once the command has ended.
            let _ = input.send(data.to_vec());
        }
        Ok(())
    }

    async fn channel_eof(
        &mut self,
        channel: ChannelId,
        _: &mut RusshSession,
    ) -> Result<(), Self::Error> {
        self.inputs.remove(&channel);
        Ok(())
    }
}
