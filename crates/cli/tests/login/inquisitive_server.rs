//! A server that asks what OpenSSH's never does, on russh: questions in keyboard-interactive, one after the other.

use std::borrow::Cow;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use russh::keys::PrivateKey;
use russh::server::{Auth, ChannelOpenHandle, Config, Handler, Msg, Response, Session, run_stream};
use russh::{Channel, ChannelId, MethodKind, MethodSet};

/// A prompt, and whether its answer may be seen.
pub(crate) type Question = (&'static str, bool);

/// How the server lets people in: by keyboard-interactive if every question is answered with the password, or by
/// the password itself.
#[derive(Clone)]
pub(crate) struct Rules {
    pub(crate) questions: &'static [Question],
    pub(crate) password: &'static str,
}

/// A running server. Its thread ends with the test's process.
pub(crate) struct InquisitiveServer {
    pub(crate) address: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
}

impl InquisitiveServer {
    pub(crate) fn start(host_key: &Path, rules: Rules) -> Self {
        let listener = StdListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let key = PrivateKey::from_openssh(fs::read_to_string(host_key).unwrap()).unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let config = Arc::new(Config {
            keys: vec![key],
            methods: MethodSet::from(&[MethodKind::KeyboardInteractive, MethodKind::Password][..]),
            auth_rejection_time: Duration::ZERO,
            auth_rejection_time_initial: Some(Duration::ZERO),
            ..Config::default()
        });
        let confessor = Confessor {
            rules,
            asked: 0,
            heard: heard.clone(),
        };
        thread::spawn(move || serve(listener, &config, &confessor));
        InquisitiveServer { address, heard }
    }

    /// All answers and passwords that came, in order.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

fn serve(listener: StdListener, config: &Arc<Config>, confessor: &Confessor) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            let session = run_stream(config.clone(), tcp, confessor.clone()).await;
            // Clients may leave whenever they like.
            if let Ok(session) = session {
                let _ = session.await;
            }
        }
    });
}

#[derive(Clone)]
struct Confessor {
    rules: Rules,
    asked: usize,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Confessor {
    fn hear(&self, words: &str) -> bool {
        self.heard.lock().unwrap().push(words.to_owned());
        words == self.rules.password
    }

    fn ask(&mut self) -> Auth {
        let Some(question) = self.rules.questions.get(self.asked) else {
            return Auth::Accept;
        };
        self.asked += 1;
        Auth::Partial {
            name: Cow::Borrowed(""),
            instructions: Cow::Borrowed(""),
            prompts: Cow::Owned(vec![(Cow::Borrowed(question.0), question.1)]),
        }
    }
}

impl Handler for Confessor {
    type Error = russh::Error;

    async fn auth_password(&mut self, _: &str, password: &str) -> Result<Auth, Self::Error> {
        Ok(match self.hear(password) {
            true => Auth::Accept,
            false => Auth::reject(),
        })
    }

    async fn auth_keyboard_interactive<'a>(
        &'a mut self,
        _: &str,
        _: &str,
        response: Option<Response<'a>>,
    ) -> Result<Auth, Self::Error> {
        let Some(answers) = response else {
            return Ok(self.ask());
        };
        let mut right = true;
        for answer in answers {
            right &= self.hear(&String::from_utf8_lossy(&answer));
        }
        Ok(match right {
            true => self.ask(),
            false => Auth::reject(),
        })
    }

    async fn channel_open_session(
        &mut self,
        _: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), Self::Error> {
        reply.accept().await;
        Ok(())
    }

    async fn exec_request(
        &mut self,
        channel: ChannelId,
        _: &[u8],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_success(channel)?;
        session.exit_status_request(channel, 0)?;
        session.close(channel)
    }
}
