//! russh's server, in a thread of this process.
//!
//! The testbed's simulated hosts speak by russh too, but with one key and commands of their own. This one offers
//! every algorithm that russh has and runs commands with `/bin/sh`, as the other servers here do.

mod algorithms;
mod command;
mod session;

use std::fmt::Display;
use std::io;
use std::net::{SocketAddrV4, TcpListener as StdListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use russh::server::{Config, run_stream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use crate::process::Running;
use crate::software::Options;
use session::Session;

/// A server that ends when this is dropped.
#[derive(Debug)]
pub(crate) struct RusshServer {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    log: Log,
}

impl RusshServer {
    /// Listens at `address`, with the host keys of these files.
    pub(crate) fn start(
        options: &Options,
        address: SocketAddrV4,
        host_keys: &[PathBuf],
        authorized_keys: &Path,
    ) -> io::Result<RusshServer> {
        let door = Door {
            config: Arc::new(algorithms::config(options, host_keys)?),
            authorized_keys: authorized_keys.into(),
            log: Log::default(),
        };
        let log = door.log.clone();
        let listener = StdListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::Builder::new()
            .name("russh server".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = door.serve(listener) => {}
                        // Comes when the sender is dropped.
                        _ = stopped => {}
                    }
                });
            })?;
        Ok(RusshServer {
            stop: Some(stop),
            thread: Some(thread),
            log,
        })
    }
}

impl Running for RusshServer {
    fn is_running(&mut self) -> bool {
        self.thread
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
    }

    fn log(&self) -> String {
        self.log.text()
    }
}

impl Drop for RusshServer {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by the panic hook.
            let _ = thread.join();
        }
    }
}

/// What went wrong, a line each, for a failed test's message.
#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<String>>);

impl Log {
    fn write(&self, problem: &impl Display) {
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        text.push_str(&format!("{problem}\n"));
    }

    fn text(&self) -> String {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Where connections come in.
struct Door {
    config: Arc<Config>,
    authorized_keys: Arc<Path>,
    log: Log,
}

impl Door {
    async fn serve(self, listener: StdListener) {
        let listener = match TcpListener::from_std(listener) {
            Ok(listener) => listener,
            Err(error) => return self.log.write(&error),
        };
        loop {
            match listener.accept().await {
                Ok((tcp, _)) => self.receive(tcp),
                Err(error) => return self.log.write(&error),
            }
        }
    }

    fn receive(&self, tcp: TcpStream) {
        let (config, log) = (Arc::clone(&self.config), self.log.clone());
        let session = Session::new(Arc::clone(&self.authorized_keys));
        tokio::spawn(async move {
            let served = async {
                tcp.set_nodelay(true)?;
                run_stream(config, tcp, session).await?.await
            };
            if let Err(error) = served.await {
                log.write(&error);
            }
        });
    }
}
