//! How many logins a second simulated hosts can take: a russh client that logs into every host of a
//! folder, runs a command and checks the answer.
//!
//! ```text
//! sshoal-testbed with-hosts --hosts 10000 --port 0 --counters -- login_rate {dir} 500 [keep]
//! ```
//!
//! With `keep` all connections stay open until the last host has answered. The hosts' own CPU time is
//! in the counters that `with-hosts` prints.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use russh::client::{self, AuthResult, Config, Handle, Handler};
use russh::keys::{
    PrivateKey, PrivateKeyWithHashAlg, PublicKey, PublicKeyOrCertificate, load_secret_key,
};
use russh::{ChannelMsg, Disconnect};
use sshoal_testbed::descriptors::allow_descriptors;
use tokio::sync::Semaphore;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

struct KnownHost(PublicKey);

impl Handler for KnownHost {
    type Error = russh::Error;

    async fn check_server_key(
        &mut self,
        presented: &PublicKeyOrCertificate,
    ) -> Result<bool, Self::Error> {
        Ok(matches!(
            presented,
            PublicKeyOrCertificate::PublicKey { key, .. } if key.key_data() == self.0.key_data()
        ))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (dir, at_once, keep) = match arguments.as_slice() {
        [dir, at_once] => (dir, at_once, false),
        [dir, at_once, keep] if keep == "keep" => (dir, at_once, true),
        _ => return Err("usage: login_rate DIR CONNECTIONS_AT_ONCE [keep]".into()),
    };
    let hosts = known_hosts(Path::new(dir))?;
    let key = Arc::new(load_secret_key(Path::new(dir).join("id_ed25519"), None)?);
    let limit = Arc::new(Semaphore::new(at_once.parse()?));
    let config = Arc::new(Config {
        nodelay: true,
        ..Config::default()
    });
    allow_descriptors(hosts.len() as u64 + 64)?;

    let begin = Instant::now();
    let tasks: Vec<_> = hosts
        .into_iter()
        .map(|(address, host_key)| {
            let (limit, config, key) = (limit.clone(), config.clone(), key.clone());
            tokio::spawn(async move {
                let _permit = limit.acquire().await?;
                let session = login(&address, host_key, config, key).await?;
                run_true(&session).await?;
                if keep {
                    return Ok(Some(session));
                }
                session
                    .disconnect(Disconnect::ByApplication, "", "")
                    .await?;
                Outcome::Ok(None)
            })
        })
        .collect();
    let total = tasks.len();
    let mut open = Vec::new();
    for task in tasks {
        open.extend(task.await??);
    }
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "{total} logins in {seconds:.2} s: {:.0} a second, {} open at the end",
        total as f64 / seconds,
        open.len(),
    );
    Ok(())
}

/// The lines of DIR/known_hosts as `address:port` and key.
fn known_hosts(dir: &Path) -> Outcome<Vec<(String, PublicKey)>> {
    std::fs::read_to_string(dir.join("known_hosts"))?
        .lines()
        .map(|line| {
            let (name, key) = line.split_once(' ').ok_or("a line without a key")?;
            let address = name.replace(['[', ']'], "");
            Ok((address, key.parse()?))
        })
        .collect()
}

async fn login(
    address: &str,
    host_key: PublicKey,
    config: Arc<Config>,
    key: Arc<PrivateKey>,
) -> Outcome<Handle<KnownHost>> {
    let mut session = client::connect(config, address, KnownHost(host_key)).await?;
    let key = PrivateKeyWithHashAlg::new(key, None);
    match session.authenticate_publickey("sshoal-test", key).await? {
        AuthResult::Success => Ok(session),
        AuthResult::Failure { .. } => Err(format!("{address} refused the key").into()),
    }
}

async fn run_true(session: &Handle<KnownHost>) -> Outcome<()> {
    let mut channel = session.channel_open_session().await?;
    channel.exec(true, "true").await?;
    let mut status = None;
    while let Some(message) = channel.wait().await {
        if let ChannelMsg::ExitStatus { exit_status } = message {
            status = Some(exit_status);
        }
    }
    match status {
        Some(0) => Ok(()),
        other => Err(format!("true ended with {other:?}").into()),
    }
}
