//! Sockets, timers, files and agents: performs what the pure layers ask.
//!
//! [`run`] takes a [`RunPlan`] in which everything is resolved. The [`Fleet`](sshoal_fleet::Fleet) decides
//! who starts when; `coordinator` performs its actions; `host` drives one attempt at one host over a
//! `link`, and `each` a command on this machine; an [`Observer`] hears of output and results in a thread of its own.

mod agent;
mod announcement;
mod cache_folder;
mod congestion;
mod coordinator;
mod crash;
mod descriptors;
mod dial;
mod drive;
mod each;
mod failures;
mod fetch;
mod guess;
mod hints;
mod host;
mod host_key_questions;
mod host_key_update;
mod identity;
mod input;
mod interfaces;
mod jump;
mod keep;
mod kill;
mod known_hosts;
mod link;
mod listening;
mod login;
mod observer;
mod openssh;
mod outbox;
mod passphrases;
mod plan;
mod prepare;
mod process;
mod process_group;
mod proxy;
mod rolling;
mod runs;
mod server_cache;
mod session;
mod shell;
mod shortcuts;
mod signals;
mod standard;
mod timing;
mod transfer;
mod trial;
mod trust;
mod warm;
mod window;
mod worker;

pub use cache_folder::{replace_file, replace_shared_file};
pub use congestion::{CongestionControl, CongestionError};
pub use coordinator::{RunEnd, RunError, run};
pub use descriptors::{connections_allowed, processes_allowed};
pub use fetch::{FetchedKeys, fetch_host_keys};
pub use hints::lengthen_time_slice;
pub use identity::{Identities, Identity};
pub use input::Input;
pub use interfaces::LocalAddresses;
pub use keep::{Keeper, Kept, LoggedIn, MetServer, More, RunHandle, Serve};
pub use kill::{KILL_SCRIPT, KillCondition, KillPlan};
pub use known_hosts::{
    IndexCache, KnownHostsCommand, KnownHostsFile, KnownHostsFiles, Searched, Unreadable,
};
pub use listening::Listening;
pub use login::{LoginPlan, logins_wait_for_touch};
pub use observer::{Confirmation, Observer};
pub use plan::{
    Endpoint, HostPlan, HostTrust, LocalCommand, NativePlan, Recording, RunPlan, SshPlan,
    Strictness, TcpOptions, Work,
};
pub use prepare::{
    Explanation, KnownLine, Place, Preparation, PrepareError, Shortfall, SshOptions, Transport,
    local_user,
};
pub use rolling::{RollingPlan, Until};
pub use runs::{
    Durability, FindError, KnownRun, NewRun, ReadError, RunJournal, ending_of, find_run,
    known_runs, read_run, remove_run, result_of, run_is_on, run_path, runs_folder, verdict_of,
};
pub use server_cache::{Protection, remember_fastest, server_cache_path};
pub use signals::{BetweenRuns, Interruption, Signals, Wanted};
pub use sshoal_proto::{Secret, Stream};
pub use sshoal_transfer::Tally;
pub use standard::{StreamError, check_standard_output, standard_input};
pub use timing::{
    Errand, ErrandDone, ErrandEnd, Mark, Passed, TimedLogin, TimingPlan, Timings, time_agent,
    time_lookup,
};
pub use transfer::{
    Accounts, Get, GetTarget, Moved, PartNames, Put, Rate, Scan, ScanError, Source, Telling,
    TransferPlan, Way, names_of, rights, scan,
};
pub use trial::{Leg, Measured, Measurements, ServerFacts, TrialPlan, TrialWay};
pub use warm::{SharedConnection, Sharing, WarmBerth, WarmPlan};
