#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use sshoal_crypto::{PublicKey, fingerprint_sha256};
use sshoal_fleet::{Deadlines, HostId, Limits, Outcome, RetryPolicy};
use sshoal_interop::{KeyType, Options, Server, Software, generate_key};
use sshoal_proto::{Pipelining, ServerProfile, SessionRequest};
use sshoal_targets::Target;
use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tokio::task::LocalSet;

use super::*;
use crate::failures::Ended;
use crate::guess;
use crate::link::Link;
use crate::plan::{NativePlan, RunPlan, Work};
use crate::prepare::{Preparation, SshOptions};
use crate::server_cache::Learned;
use crate::session::HostSession;
use crate::worker::Shared;

/// Far enough away for a guess to be worth it.
const FAR: Duration = Duration::from_secs(1);
const KEYS: [KeyType; 2] = [KeyType::Ed25519, KeyType::EcdsaP256];

/// A server with two host keys, and how to get there.
struct Scene {
    server: Server,
    folder: tempfile::TempDir,
}

impl Scene {
    fn new(software: Software) -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let identity = generate_key(folder.path(), "identity", KeyType::Ed25519).unwrap();
        let options = Options {
            host_keys: KEYS.to_vec(),
            authorized_keys: fs::read_to_string(identity.with_extension("pub")).unwrap(),
            ..Options::default()
        };
        let server = Server::start(software, &options).unwrap();
        let files = server.client_files(fs::read_to_string(identity).unwrap());
        files.write(folder.path()).unwrap();
        Scene { server, folder }
    }

    fn cache(&self) -> std::path::PathBuf {
        self.folder.path().join("servers")
    }

    /// The server's algorithms as the cache has them, but with this host-key algorithm as its first.
    fn profile(&self, first_host_key: &str) -> ServerProfile {
        let offers = self.server.offers();
        ServerProfile {
            identification: offers.identification.clone(),
            first_kex: offers.kex_algorithms[0].clone(),
            first_host_key: first_host_key.to_owned(),
        }
    }

    /// Writes the cache: what was known of the server, by one of its keys.
    fn remember(&self, fingerprint: &str, first_host_key: &str) {
        let profile = self.profile(first_host_key);
        let mut learned = Learned::default();
        let pipelining = true;
        learned.insert(
            fingerprint.to_owned(),
            KnownServer {
                profile,
                pipelining,
                fastest: String::new(),
            },
        );
        learned.save(&self.cache()).unwrap();
    }

    /// The fingerprint of a host key of this type.
    fn fingerprint(&self, key_type: &str) -> String {
        let lines = self.server.known_hosts();
        let line = lines.lines().find(|line| line.contains(key_type)).unwrap();
        let (_, key) = line.split_once(' ').unwrap();
        fingerprint_sha256(PublicKey::from_openssh_line(key).unwrap().0.blob())
    }

    fn worker(&self) -> (Rc<Worker>, mpsc::UnboundedReceiver<Report>) {
        let (reports, told) = mpsc::unbounded_channel();
        let plan = plan(self.folder.path(), &self.server, self.cache());
        (
            Rc::new(Worker::new(Shared::new(Arc::new(plan), reports))),
            told,
        )
    }
}

fn plan(folder: &Path, server: &Server, server_cache: std::path::PathBuf) -> RunPlan {
    let options = SshOptions {
        config_file: Some(folder.join("ssh_config")),
        ..SshOptions::default()
    };
    let target = Target::named(server.address().ip().to_string());
    let mut preparation = Preparation::new(&options).unwrap();
    let mut hosts = preparation
        .hosts(&[target], |_| SessionRequest::exec("exit 3"))
        .unwrap();
    preparation.read_known_hosts(&mut hosts, None).unwrap();
    RunPlan {
        work: Work::Sessions(hosts),
        jumps: Vec::new(),
        limits: Limits::default(),
        deadlines: Deadlines::default(),
        retry: RetryPolicy::default(),
        password: None,
        seed: 1,
        input: None,
        asks: false,
        server_cache: Some(server_cache),
        ssh: Default::default(),
        workers: 1,
        transfer: None,
        kill: None,
        trial: None,
        timing: None,
        rolling: None,
        keeper: None,
        journal: None,
        warm: None,
    }
}

fn host(worker: &Worker) -> &NativePlan {
    match &worker.plan.work {
        Work::Sessions(hosts) => hosts[0].native().expect("it is reached natively"),
        Work::Local(_) => unreachable!("the plan is about a session"),
    }
}

/// One connection to the host, from TCP to its end.
async fn attempt(worker: &Rc<Worker>, server: &Server) -> Result<Outcome, Ended> {
    let link = Link::connect(server.address().into(), &host(worker).endpoint.tcp)
        .await
        .unwrap();
    let (_orders, mut obeyed) = mpsc::unbounded_channel();
    let plan = host(worker);
    let algorithms = plan.endpoint.trust.algorithms_by(None);
    let mut session = HostSession::begin(worker, HostId(0), plan, link, FAR, algorithms, None)?;
    session.run(&mut obeyed).await
}

/// What was learned, in order.
fn learned(told: &mut mpsc::UnboundedReceiver<Report>) -> Vec<(String, KnownServer)> {
    std::iter::from_fn(|| told.try_recv().ok())
        .filter_map(|report| match report {
            Report::Learned(fingerprint, server) => Some((fingerprint, server)),
            _ => None,
        })
        .collect()
}

#[test]
fn asyncssh_is_tried_without_a_guess_that_was_stale_and_is_known_better_then() {
    let scene = Scene::new(Software::Asyncssh);
    let offered = &scene.server.offers().server_host_key_algorithms;
    let [first, second, ..] = offered.as_slice() else {
        panic!("two host keys are offered: {offered:?}");
    };
    let misleading = scene.fingerprint(second);
    scene.remember(&misleading, second);
    let (worker, mut told) = scene.worker();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let ended = attempt(&worker, &scene.server).await.unwrap_err();
        assert!(
            ended.failure.detail.contains("did not sign"),
            "{:?}",
            ended.failure
        );
        assert!(ended.stranded, "it is tried again, whatever its kind");
        assert_eq!(ended.fate, ExecFate::NotSent);
        assert_eq!(learned(&mut told), []);

        let outcome = attempt(&worker, &scene.server).await.unwrap();
        assert_eq!(outcome, Outcome::Exit(3));
    });
    let server = KnownServer {
        profile: scene.profile(first),
        pipelining: true,
        fastest: String::new(),
    };
    let learned = learned(&mut told);
    assert!(
        learned.contains(&(misleading, server.clone())),
        "{learned:?}"
    );
    assert!(learned.iter().all(|(_, learned)| *learned == server));
}

#[test]
fn a_guess_that_openssh_finds_wrong_is_made_good_on_the_same_connection() {
    let scene = Scene::new(Software::OpenSsh);
    let second = &scene.server.offers().server_host_key_algorithms[1];
    scene.remember(&scene.fingerprint(second), second);
    let (worker, _told) = scene.worker();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let outcome = LocalSet::new().block_on(&runtime, attempt(&worker, &scene.server));
    assert_eq!(outcome.unwrap(), Outcome::Exit(3));
}

#[test]
fn what_is_in_doubt_is_left_out() {
    let scene = Scene::new(Software::Russh);
    let first = &scene.server.offers().server_host_key_algorithms[0];
    scene.remember(&scene.fingerprint("ssh-ed25519"), first);
    let (worker, _told) = scene.worker();
    let endpoint = &host(&worker).endpoint;
    let taken = || {
        let opened = guess::opening(
            endpoint,
            &worker,
            FAR,
            u32::MAX,
            endpoint.trust.algorithms_by(None),
        );
        let merges = opened.settings.pipelining == Pipelining::Exec;
        (opened.opening.guess_key_exchange, merges)
    };
    assert_eq!(taken(), (true, true));
    worker.doubts.raise(endpoint, Doubt::Guessing);
    assert_eq!(taken(), (false, true));
    worker.doubts.raise(endpoint, Doubt::Merging);
    assert_eq!(taken(), (false, false));
}
