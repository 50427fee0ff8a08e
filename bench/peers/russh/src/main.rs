//! The simplest fast fan-out that one writes with russh: a task a host behind a semaphore, one known_hosts file read
//! once, host keys checked, one thread. A peer for sshoal's benchmarks.

use std::borrow::Cow;
use std::collections::HashMap;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use russh::client::{self, AuthResult, Config, Handle, Handler};
use russh::keys::{PrivateKey, PrivateKeyWithHashAlg, PublicKey, PublicKeyOrCertificate};
use russh::{ChannelMsg, Disconnect, Preferred};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

type Failure = Box<dyn Error + Send + Sync>;

struct Options {
    hosts: Vec<String>,
    port: u16,
    user: String,
    identity: Arc<PrivateKey>,
    known_hosts: HashMap<String, PublicKey>,
    window: usize,
    command: String,
}

/// Trusts one key and no other.
struct Pinned(PublicKey);

impl Handler for Pinned {
    type Error = russh::Error;

    async fn check_server_key(
        &mut self,
        offered: &PublicKeyOrCertificate,
    ) -> Result<bool, Self::Error> {
        Ok(match offered {
            PublicKeyOrCertificate::PublicKey { key, .. } => key.key_data() == self.0.key_data(),
            PublicKeyOrCertificate::Certificate(_) => false,
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Failure> {
    let options = Arc::new(Options::parse()?);
    let slots = Arc::new(Semaphore::new(options.window));
    let mut tasks = JoinSet::new();
    for host in options.hosts.clone() {
        let (options, slots) = (Arc::clone(&options), Arc::clone(&slots));
        tasks.spawn(async move {
            let _slot = slots.acquire_owned().await;
            let answer = run(&options, &host).await;
            (host, answer)
        });
    }
    let (mut good, mut bad) = (0, 0);
    while let Some(ended) = tasks.join_next().await {
        match ended? {
            (host, Ok(answer)) => {
                good += 1;
                for line in String::from_utf8_lossy(&answer).lines() {
                    println!("{host}: {line}");
                }
            }
            (host, Err(error)) => {
                bad += 1;
                eprintln!("{host}: {error}");
            }
        }
    }
    eprintln!("{good} ok, {bad} failed");
    Ok(if bad == 0 && good > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

async fn run(options: &Options, host: &str) -> Result<Vec<u8>, Failure> {
    let name = format!("[{host}]:{}", options.port);
    let known = options
        .known_hosts
        .get(&name)
        .or_else(|| options.known_hosts.get(host));
    let known = known.ok_or_else(|| format!("no host key for {name} in known_hosts"))?;
    let config = Config {
        nodelay: true,
        preferred: Preferred {
            key: Cow::Owned(vec![known.algorithm()]),
            ..Preferred::DEFAULT
        },
        ..Config::default()
    };
    let address = (host, options.port);
    let mut session = client::connect(Arc::new(config), address, Pinned(known.clone())).await?;
    let key = PrivateKeyWithHashAlg::new(Arc::clone(&options.identity), None);
    let AuthResult::Success = session.authenticate_publickey(&options.user, key).await? else {
        return Err("the key was refused".into());
    };
    let answer = exec(&session, &options.command).await;
    session
        .disconnect(Disconnect::ByApplication, "", "")
        .await?;
    answer
}

async fn exec(session: &Handle<Pinned>, command: &str) -> Result<Vec<u8>, Failure> {
    let mut channel = session.channel_open_session().await?;
    channel.exec(true, command).await?;
    let (mut answer, mut status) = (Vec::new(), None);
    while let Some(message) = channel.wait().await {
        match message {
            ChannelMsg::Data { data } => answer.extend_from_slice(&data),
            ChannelMsg::ExitStatus { exit_status } => status = Some(exit_status),
            _ => {}
        }
    }
    match status {
        Some(0) => Ok(answer),
        Some(status) => Err(format!("exit status {status}").into()),
        None => Err("the command ended without a status".into()),
    }
}

impl Options {
    fn parse() -> Result<Options, Failure> {
        let mut flags = HashMap::new();
        let mut command = Vec::new();
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.strip_prefix("--") {
                Some(flag) if command.is_empty() => {
                    let value = arguments
                        .next()
                        .ok_or_else(|| format!("--{flag} needs a value"))?;
                    flags.insert(flag.to_owned(), value);
                }
                _ => command.push(argument),
            }
        }
        let mut flag = |name: &str| {
            flags
                .remove(name)
                .ok_or_else(|| format!("--{name} is missing"))
        };
        Ok(Options {
            hosts: std::fs::read_to_string(flag("hosts")?)?
                .lines()
                .map(str::to_owned)
                .collect(),
            port: flag("port")?.parse()?,
            user: flag("user")?,
            identity: Arc::new(russh::keys::load_secret_key(flag("identity")?, None)?),
            known_hosts: parse_known_hosts(&std::fs::read_to_string(flag("known-hosts")?)?)?,
            window: flag("window")?.parse()?,
            command: command.join(" "),
        })
    }
}

/// Plain lines, by name as they stand: `name` or `[name]:port`.
fn parse_known_hosts(text: &str) -> Result<HashMap<String, PublicKey>, Failure> {
    let mut keys = HashMap::new();
    for line in text.lines() {
        let (names, key) = line
            .split_once(' ')
            .ok_or("a known_hosts line of two words")?;
        let key = PublicKey::from_openssh(key)?;
        keys.extend(names.split(',').map(|name| (name.to_owned(), key.clone())));
    }
    Ok(keys)
}
