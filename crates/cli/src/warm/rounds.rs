//! Where the connections are kept: each `up` is a run of its own in this process.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use sshoal_fleet::RetryPolicy;
use sshoal_net::{
    Endpoint, HostPlan, Identities, IndexCache, Interruption, Preparation, RunPlan, Secret, Work,
    connections_allowed, server_cache_path,
};
use sshoal_openssh::Surroundings;
use sshoal_pool::{Folder, Member, Performer, Pool, Round, Settled, TakenIn, Tell, Visitor};
use sshoal_proto::SessionRequest;
use sshoal_targets::labels;

use super::observer::Watch;
use super::request::Request;
use super::voice::Voice;
use crate::args::PaceArgs;
use crate::{fan_out, run, transport};

/// Descriptors of a host that is kept: its socket and its connection.
const DESCRIPTORS_A_HOST: usize = 2;

/// Why nobody is logged in to.
#[derive(Debug, thiserror::Error)]
enum UpError {
    #[error(
        "{label}: goes by ssh ({why}), whose connections sshoal cannot keep; leave the host out (-x), and use ControlPersist for it"
    )]
    BySsh { label: String, why: String },
    #[error(
        "{wanted} hosts are more than the {allowed} that the process may have open files for, two a host (ulimit -n)"
    )]
    TooMany { wanted: usize, allowed: usize },
    #[error("no password was given")]
    NoPassword,
}

/// Performs what callers ask for.
pub(super) struct Rounds {
    pub(super) folder: Folder,
}

impl Performer for Rounds {
    fn up(&self, pool: &Pool, request: String, visitor: &Visitor) {
        let voice = Voice::Caller(visitor.conversation.clone());
        let begun = match serde_json::from_str::<Request>(&request) {
            Ok(request) => begin(&self.folder, pool, &request, voice),
            Err(error) => Err(error.into()),
        };
        visitor.end(&match begun {
            Err(error) => Tell::Refused {
                why: error.to_string(),
            },
            Ok(begun) => {
                let round = begun.round.clone();
                visitor.if_it_leaves(move || round.abandon());
                Tell::Settled(begun.settled())
            }
        });
    }
}

/// A run that has begun.
pub(super) struct Begun {
    pub(super) round: Round,
    /// Hosts that were named and are kept already.
    kept: Vec<String>,
    /// Ends with the run; without new hosts there is none.
    pub(super) run: Option<JoinHandle<Interruption>>,
}

impl Begun {
    /// What became of its hosts, once that is known.
    pub(super) fn settled(&self) -> Settled {
        Settled {
            kept: self.kept.clone(),
            ..self.round.wait_until_settled()
        }
    }
}

/// Begins to log in to the hosts that are not kept yet.
pub(super) fn begin(
    folder: &Folder,
    pool: &Pool,
    request: &Request,
    voice: Voice,
) -> Result<Begun, Box<dyn std::error::Error>> {
    pool.limit(request.limits);
    let targets = request.targets();
    let mut preparation = Preparation::new(&request.ssh_options())?;
    let mut plans = preparation.hosts(&targets, |_| SessionRequest::exec(Vec::new()))?;
    transport::check(&request.login, &mut plans)?;
    let members = members(folder, &plans, labels(&targets), preparation.jumps())?;
    let (file, socket) = (&request.prometheus_file, &request.prometheus_socket);
    pool.publish(file.as_deref(), socket.as_deref())?;
    let TakenIn { round, new } = Round::begin(pool, &members, request.terms());
    let mut labels: Vec<String> = members.into_iter().map(|member| member.label).collect();
    let mut is_new = new.iter().map(Result::is_ok);
    plans.retain(|_| is_new.next().unwrap_or(false));
    let mut is_new = new.iter().map(Result::is_ok);
    let kept = labels.extract_if(.., |_| !is_new.next().unwrap_or(true));
    let kept = kept.collect();
    if plans.is_empty() {
        let run = None;
        return Ok(Begun { round, kept, run });
    }
    let plan = match plan(request, &round, preparation, plans, &voice) {
        Ok(plan) => plan,
        Err(error) => {
            round.forget();
            return Err(error);
        }
    };
    let watch = Watch {
        round: round.clone(),
        labels,
        voice,
    };
    let run = Some(start(pool, plan, watch)?);
    Ok(Begun { round, kept, run })
}

/// Runs it in a thread of its own, to the end of its last host.
fn start(pool: &Pool, plan: RunPlan, watch: Watch) -> io::Result<JoinHandle<Interruption>> {
    let hold = pool.hold();
    let run = thread::Builder::new().name("run".to_owned());
    run.spawn(move || {
        let round = watch.round.clone();
        let end = sshoal_net::run(plan, watch);
        let error = end.as_ref().err().map(ToString::to_string);
        round.is_over(error.as_deref());
        drop(hold);
        end.map(|end| end.interruption).unwrap_or_default()
    })
}

fn members(
    folder: &Folder,
    plans: &[HostPlan],
    labels: Vec<String>,
    jumps: &[Endpoint],
) -> Result<Vec<Member>, Box<dyn std::error::Error>> {
    let mut identities = Identities::new(jumps);
    let labelled = plans.iter().zip(labels);
    labelled
        .map(|(plan, label)| match plan {
            HostPlan::Native(native) => {
                let socket = folder.socket(plan.user(), plan.name(), plan.port())?;
                let identity = identities.of(&native.endpoint);
                Ok(Member {
                    label,
                    socket,
                    listening: native.listening.clone(),
                    identity,
                })
            }
            HostPlan::OpenSsh(plan) => Err(UpError::BySsh {
                label,
                why: plan.why.clone(),
            }
            .into()),
        })
        .collect()
}

fn plan(
    request: &Request,
    round: &Round,
    mut preparation: Preparation,
    mut plans: Vec<HostPlan>,
    voice: &Voice,
) -> Result<RunPlan, Box<dyn std::error::Error>> {
    let login = &request.login;
    let indexes = (!login.no_index_cache).then(IndexCache::of_user);
    preparation.read_known_hosts(&mut plans, indexes.flatten().as_ref())?;
    for problem in run::shown_problems(&preparation.known_hosts_problems()) {
        voice.say(&problem);
    }
    let wanted = plans.len();
    let pace = PaceArgs {
        parallel: Some(u32::try_from(wanted)?),
        ..PaceArgs::default()
    };
    let password = password(request, wanted, voice)?;
    let deadlines = run::deadlines(login, &pace, &mut plans);
    let jumps = preparation.into_jumps();
    let limits = run::limits(login, &pace, &plans, jumps.len(), &deadlines);
    let allowed = connections_allowed(0) as usize / DESCRIPTORS_A_HOST;
    let allowed = allowed.saturating_sub(round.hosts_beside());
    if wanted > allowed.min(limits.sessions as usize) {
        return Err(UpError::TooMany { wanted, allowed }.into());
    }
    Ok(RunPlan {
        limits,
        deadlines,
        retry: RetryPolicy::default(),
        password,
        seed: fan_out::seed(),
        input: None,
        asks: request.asks,
        server_cache: server_cache_path(),
        ssh: Surroundings::default(),
        workers: login.workers.unwrap_or_else(|| run::workers(wanted)),
        work: Work::Sessions(plans),
        jumps,
        transfer: None,
        kill: None,
        trial: None,
        timing: None,
        rolling: None,
        journal: None,
        warm: None,
        keeper: Some(Arc::new(round.clone())),
    })
}

/// `--ask-pass`.
fn password(request: &Request, hosts: usize, voice: &Voice) -> Result<Option<Secret>, UpError> {
    if !request.login.ask_pass {
        return Ok(None);
    }
    let password = voice.ask(&run::password_question(hosts), &|| true);
    password.map(Some).ok_or(UpError::NoPassword)
}
