//! The SSH server of a simulated host: russh's, with this handler for authentication and commands.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use russh::server::{
    Auth, ChannelOpenHandle, Handle, Handler, Msg, PublicKeyOffer, Session, VerifiedPublicKey,
};
use russh::{Channel, ChannelId, Disconnect, Pty, Sig};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::AbortHandle;

use super::behaviour::{Behaviour, Instead};
use super::command::{Command, End, Reply, signal_name};
use super::host::Host;
use super::job;
use super::meter::Meter;

/// Bytes that `cat` holds for a client that sends and does not read. russh opens its window again as
/// soon as data comes, so only this stops such a client.
const CAT_BACKLOG_MAX: usize = 64 << 20;

/// One connection to a host.
#[derive(Debug)]
pub(super) struct Connection {
    host: Arc<Host>,
    behaviour: Arc<Behaviour>,
    meter: Arc<Meter>,
    logged_in: bool,
    running: HashMap<ChannelId, Running>,
}

/// A command that has not ended.
#[derive(Debug)]
enum Running {
    /// Ends by itself.
    Job(AbortHandle),
    Cat {
        job: AbortHandle,
        input: UnboundedSender<Bytes>,
        backlog: Arc<AtomicUsize>,
    },
    CountInput(u64),
}

impl Connection {
    pub(super) fn new(host: Arc<Host>, behaviour: Arc<Behaviour>, meter: Arc<Meter>) -> Connection {
        Connection {
            host,
            behaviour,
            meter,
            logged_in: false,
            running: HashMap::new(),
        }
    }

    fn judge(&self, acceptable: bool) -> Auth {
        if acceptable && !self.behaviour.auth_denied {
            return Auth::Accept;
        }
        self.host.shared.counters.refusal();
        Auth::reject()
    }

    fn command(&self, line: &[u8]) -> Command {
        match &self.behaviour.instead {
            Some(Instead::Flood(bytes)) => Command::YesBytes(*bytes),
            Some(Instead::Signal(name)) => Command::KillSelf(signal_name(name)),
            None => Command::parse(&String::from_utf8_lossy(line)),
        }
    }

    /// Starts a command that waits, reads or sends much; None for those that [`Command::reply`] ran.
    fn start(&self, channel: ChannelId, command: Command, handle: Handle) -> Option<Running> {
        let never_close = self.behaviour.never_close;
        let job = match command {
            Command::Sleep(time) => job::spawn(handle, channel, never_close, job::sleep(time)),
            Command::YesBytes(bytes) => {
                let output = job::yes(handle.clone(), channel, bytes);
                job::spawn(handle, channel, never_close, output)
            }
            Command::Slow { lines, every } => {
                let output = job::slow(handle.clone(), channel, lines, every);
                job::spawn(handle, channel, never_close, output)
            }
            Command::Cat => return Some(self.start_cat(channel, handle)),
            Command::CountInput => return Some(Running::CountInput(0)),
            _ => return None,
        };
        Some(Running::Job(job))
    }

    fn start_cat(&self, channel: ChannelId, handle: Handle) -> Running {
        let (input, received) = unbounded_channel();
        let backlog = Arc::new(AtomicUsize::new(0));
        let output = job::cat(handle.clone(), channel, received, Arc::clone(&backlog));
        Running::Cat {
            job: job::spawn(handle, channel, self.behaviour.never_close, output),
            input,
            backlog,
        }
    }

    /// Sends a reply in one flight with what the session has to send already.
    fn finish(
        &self,
        channel: ChannelId,
        reply: Reply,
        session: &mut Session,
    ) -> Result<(), russh::Error> {
        if !reply.stdout.is_empty() {
            session.data(channel, reply.stdout)?;
        }
        if !reply.stderr.is_empty() {
            session.extended_data(channel, 1, reply.stderr)?;
        }
        match reply.end {
            End::Status(status) => session.exit_status_request(channel, status)?,
            End::Signal(name) => {
                session.exit_signal_request(channel, Sig::Custom(name), false, "", "")?;
            }
        }
        if !self.behaviour.never_close {
            session.eof(channel)?;
            session.close(channel)?;
        }
        Ok(())
    }
}

impl Running {
    fn abort(&self) {
        match self {
            Running::Job(job) | Running::Cat { job, .. } => job.abort(),
            Running::CountInput(_) => {}
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.running.values().for_each(Running::abort);
        if self.logged_in {
            self.host.shared.counters.logout();
        }
    }
}

impl Handler for Connection {
    type Error = russh::Error;

    async fn auth_password(&mut self, _: &str, password: &str) -> Result<Auth, Self::Error> {
        Ok(self.judge(self.host.shared.password.as_deref() == Some(password)))
    }

    async fn auth_publickey_offered(
        &mut self,
        _: &str,
        offer: PublicKeyOffer<'_>,
    ) -> Result<Auth, Self::Error> {
        let known = offer.public_key.key_data() == self.host.shared.client_key.key_data();
        Ok(self.judge(known))
    }

    async fn auth_publickey(
        &mut self,
        _: &str,
        _: VerifiedPublicKey<'_>,
    ) -> Result<Auth, Self::Error> {
        // Nobody comes here whose key was not accepted when it was offered.
        Ok(Auth::Accept)
    }

    async fn auth_succeeded(&mut self, _: &mut Session) -> Result<(), Self::Error> {
        self.meter.authenticated();
        self.logged_in = true;
        self.host.shared.counters.login();
        Ok(())
    }

    async fn channel_open_session(
        &mut self,
        _: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), Self::Error> {
        // russh's Channel is dropped: its bounded queue would stop the connection, window
        // adjustments included, whenever a command is slower than its input.
        reply.accept().await;
        Ok(())
    }

    async fn exec_request(
        &mut self,
        channel: ChannelId,
        line: &[u8],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        if self.running.contains_key(&channel) {
            // RFC 4254, 6.5: only one of exec, shell and subsystem a channel.
            return session.channel_failure(channel);
        }
        self.host.shared.counters.exec();
        session.channel_success(channel)?;
        let command = self.command(line);
        if let Some(reply) = command.reply(&self.host) {
            return self.finish(channel, reply, session);
        }
        if let Some(running) = self.start(channel, command, session.handle()) {
            self.running.insert(channel, running);
        }
        Ok(())
    }

    async fn data(
        &mut self,
        channel: ChannelId,
        data: &[u8],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        match self.running.get_mut(&channel) {
            Some(Running::CountInput(bytes)) => *bytes += data.len() as u64,
            Some(Running::Cat { input, backlog, .. }) => {
                let held = backlog.fetch_add(data.len(), Ordering::Relaxed) + data.len();
                if held > CAT_BACKLOG_MAX {
                    let reason = "cat: the client sends and does not read";
                    return session.disconnect(Disconnect::ByApplication, reason, "");
                }
                // Refused only if the job was aborted; its channel is closing then.
                let _ = input.send(Bytes::copy_from_slice(data));
            }
            Some(Running::Job(_)) | None => {}
        }
        Ok(())
    }

    async fn channel_eof(
        &mut self,
        channel: ChannelId,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        match self.running.remove(&channel) {
            Some(Running::CountInput(bytes)) => {
                let reply = Reply {
                    stdout: format!("{bytes}\n"),
                    ..Reply::status(0)
                };
                self.finish(channel, reply, session)
            }
            Some(Running::Cat { job, .. }) => {
                // Without its input's sender the job ends once it has written what it holds.
                self.running.insert(channel, Running::Job(job));
                Ok(())
            }
            Some(running @ Running::Job(_)) => {
                self.running.insert(channel, running);
                Ok(())
            }
            None => Ok(()),
        }
    }

    async fn channel_close(
        &mut self,
        channel: ChannelId,
        _: &mut Session,
    ) -> Result<(), Self::Error> {
        if let Some(running) = self.running.remove(&channel) {
            running.abort();
        }
        Ok(())
    }

    async fn signal(
        &mut self,
        channel: ChannelId,
        signal: Sig,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        let Some(running) = self.running.remove(&channel) else {
            return Ok(());
        };
        running.abort();
        session.exit_signal_request(channel, signal, false, "", "")?;
        session.eof(channel)?;
        session.close(channel)
    }

    #[allow(clippy::too_many_arguments)] // russh's signature
    async fn pty_request(
        &mut self,
        channel: ChannelId,
        _: &str,
        _: u32,
        _: u32,
        _: u32,
        _: u32,
        _: &[(Pty, u32)],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_success(channel)
    }

    async fn env_request(
        &mut self,
        channel: ChannelId,
        _: &str,
        _: &str,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_success(channel)
    }

    async fn shell_request(
        &mut self,
        channel: ChannelId,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_failure(channel)
    }

    async fn subsystem_request(
        &mut self,
        channel: ChannelId,
        _: &str,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_failure(channel)
    }
}
