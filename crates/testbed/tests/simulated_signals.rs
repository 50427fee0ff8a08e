//! Signals to commands on simulated hosts. The installed ssh sends none, so russh's client does.

#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use russh::client::{Config, Handler, connect};
use russh::keys::{PrivateKeyWithHashAlg, PublicKeyOrCertificate, decode_secret_key};
use russh::{ChannelMsg, Sig};
use support::simulate;

struct AnyHost;

impl Handler for AnyHost {
    type Error = russh::Error;

    async fn check_server_key(&mut self, _: &PublicKeyOrCertificate) -> Result<bool, Self::Error> {
        Ok(true)
    }
}

#[tokio::test]
async fn a_signal_ends_a_running_command_and_the_channel() {
    let hosts = simulate(1, &[]);
    let config = Arc::new(Config::default());
    let mut session = connect(config, hosts.address(0), AnyHost).await.unwrap();
    let key = decode_secret_key(&hosts.simulation.client_files().identity, None).unwrap();
    let key = PrivateKeyWithHashAlg::new(Arc::new(key), None);
    let login = session.authenticate_publickey("anybody", key).await;
    assert!(login.unwrap().success());

    let mut channel = session.channel_open_session().await.unwrap();
    channel.exec(true, "sleep 1000").await.unwrap();
    channel.signal(Sig::TERM).await.unwrap();
    let mut ends = Vec::new();
    while let Some(message) = channel.wait().await {
        match message {
            ChannelMsg::ExitSignal { signal_name, .. } => ends.push(format!("{signal_name:?}")),
            ChannelMsg::ExitStatus { .. } => ends.push("status".to_owned()),
            ChannelMsg::Eof => ends.push("EOF".to_owned()),
            ChannelMsg::Close => ends.push("CLOSE".to_owned()),
            _ => {}
        }
    }
    assert_eq!(ends, ["TERM", "EOF", "CLOSE"]);
}
