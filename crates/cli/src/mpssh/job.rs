//! One run: from arguments to the engine's plan, and from its end to an exit status.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::{Duration, Instant};

use sshoal_fleet::{Deadlines, Limits, RetryPolicy};
use sshoal_net::{
    HostPlan, IndexCache, Interruption, LocalCommand, Observer, Preparation, PrepareError, RunPlan,
    SshOptions, Transport, Work, processes_allowed, server_cache_path,
};
use sshoal_openssh::Surroundings;
use sshoal_proto::SessionRequest;
use sshoal_report::{
    COMMAND_FAILED, HOST_FAILED, Host, INTERRUPTED, Layout, Options, Reporter, Sink,
};
use sshoal_targets::Target;

use super::bursts::Bursts;
use super::header::Header;
use super::hosts::Listed;
use super::lines::Form;
use super::observer::{Printing, Shown};
use super::ssh_flags::SshFlags;
use super::ssh_words::Reached;
use super::{FAILED, MpsshArgs, ssh_program};
use crate::args::{LoginArgs, PaceArgs};
use crate::fan_out;
use crate::hosts::results_path;
use crate::observer::Reporting;
use crate::prompt;
use crate::run;
use crate::say::say;
use crate::transport;

/// No line is longer, whatever `-l` says.
const LONGEST_LINE: usize = 1024 * 1024;
/// So many key files that cannot be used are told of.
const KEYS_TOLD: usize = 3;

/// A run that has not begun.
pub(super) struct Job<'a> {
    pub(super) args: &'a MpsshArgs,
    /// The user of all hosts but those that are listed with one.
    pub(super) user: String,
    pub(super) flags: SshFlags,
    pub(super) command: Vec<u8>,
    pub(super) hosts: Vec<Listed>,
}

impl Job<'_> {
    /// With sshoal's own client.
    pub(super) fn run_natively(&self, since: Instant) -> Result<u8, Box<dyn std::error::Error>> {
        let mut preparation = Preparation::new(&self.ssh_options())?;
        let targets: Vec<Target> = self.hosts.iter().map(|host| self.target(host)).collect();
        let request = || SessionRequest::exec(self.command.clone());
        let mut plans = preparation.hosts(&targets, |_| request())?;
        preparation.read_known_hosts(&mut plans, IndexCache::of_user().as_ref())?;
        for problem in preparation.known_hosts_problems() {
            say(problem);
        }
        tell_unusable(preparation.unusable_keys());
        let (login, pace) = (LoginArgs::default(), self.pace());
        let ssh = transport::surroundings(&login, &plans, None)?;
        let deadlines = run::deadlines(&login, &pace, &mut plans);
        let jumps = preparation.into_jumps();
        let limits = run::limits(&login, &pace, &plans, jumps.len(), &deadlines);
        let printing = self.printing(since, &plans)?;
        let plan = RunPlan {
            limits: self.paced(limits),
            deadlines,
            asks: prompt::is_possible(),
            server_cache: server_cache_path(),
            workers: run::workers(plans.len()),
            ssh,
            jumps,
            ..plan(Work::Sessions(plans))
        };
        carried_out(plan, printing)
    }

    /// With this ssh, started for each host as mpssh.py starts it.
    pub(super) fn run_by(
        &self,
        program: &Path,
        since: Instant,
    ) -> Result<u8, Box<dyn std::error::Error>> {
        self.check_names()?;
        let mut printing = self.printing(since, &[])?;
        if let Err(error) = ssh_program::check(program) {
            // What the report cannot write it tells at its end.
            let _ = printing.show_unstarted(program, &error);
            return Ok(status(printing.finish(Interruption::default()).exit_status));
        }
        let commands = self.hosts.iter();
        let commands = commands.map(|host| self.ssh_for(program, &host.target));
        let processes = processes_allowed(self.args.procs);
        let limits = Limits {
            sessions: processes,
            connects: processes,
            ..Limits::default()
        };
        let plan = RunPlan {
            limits: self.paced(limits),
            ..plan(Work::Local(commands.collect()))
        };
        carried_out(plan, printing)
    }

    fn ssh_options(&self) -> SshOptions {
        let user = match &self.flags.user {
            Some(user) => Some(user),
            None => Some(&self.user).filter(|_| !self.flags.sets("User")),
        };
        SshOptions {
            config_file: self.flags.config_file.clone(),
            options: self.flags.options.clone(),
            user: user.cloned(),
            does_without_keys: true,
            tag: self.flags.tag.clone(),
            command: Some(String::from_utf8_lossy(&self.command).into_owned()),
            transport: Transport::Auto,
            ..SshOptions::default()
        }
    }

    /// The host of a line. The first value counts, and ssh comes to the user before the host's name, and to the port that
    /// is put behind all flags, last of all (ssh.c, main).
    fn target(&self, host: &Listed) -> Target {
        let mut target = host.target.clone();
        if self.flags.user.is_some() || self.flags.sets("User") {
            target.user = None;
        }
        if self.flags.sets("Port") {
            target.port = None;
        }
        target
    }

    /// Names that an ssh would read as flags, or hand to a shell, are for none.
    fn check_names(&self) -> Result<(), PrepareError> {
        self.hosts.iter().try_for_each(|Listed { target, .. }| {
            let user = target.user.as_ref().unwrap_or(&self.user);
            sshoal_ssh_config::check_names(&target.name, Some(user)).map_err(|error| {
                PrepareError::Resolve {
                    host: target.to_string(),
                    error,
                }
            })
        })
    }

    fn ssh_for(&self, program: &Path, target: &Target) -> LocalCommand {
        let user = target.user.as_ref().unwrap_or(&self.user);
        let port = target.port.map(|port| format!("-p{port}"));
        let words = self.flags.arguments.iter().cloned().chain(port);
        let words = words.chain([format!("{user}@{}", target.name)]);
        let command = OsString::from_vec(self.command.clone());
        LocalCommand {
            program: program.as_os_str().to_owned(),
            arguments: words.map(OsString::from).chain([command]).collect(),
            variables: ssh_program::variables(),
        }
    }

    fn pace(&self) -> PaceArgs {
        PaceArgs {
            parallel: Some(self.args.procs),
            ..PaceArgs::default()
        }
    }

    /// `-d`: the parallel sessions begin so long one after the other, and each pauses so long before its next host.
    fn paced(&self, limits: Limits) -> Limits {
        let milliseconds = self.args.delay.max(0).unsigned_abs();
        Limits {
            place_rest: Duration::from_millis(milliseconds),
            ..limits
        }
    }

    /// Who shows the run; the header is shown already. Without plans an ssh is started for each host.
    fn printing(&self, since: Instant, plans: &[HostPlan]) -> io::Result<Printing> {
        let hosts = self.hosts.iter().zip(0..).map(|(host, number)| {
            let plan = plans.get(number);
            Host {
                label: host.line.clone(),
                target: host.target.clone(),
                user: plan.map(|plan| plan.user().to_owned()),
                port: plan.map(HostPlan::port),
                way: plan.map(transport::way),
            }
        });
        let options = Options {
            layout: Layout::Own,
            progress: false,
            outdir: self.args.c.outdir.clone(),
            result_file: results_path(),
            ..Options::default()
        };
        let reporter = Reporter::new(hosts.collect(), options, Sink::stdout()?, Sink::stderr()?)?;
        let report = Reporting::new(reporter, since, None);
        let max_line = (self.args.maxlen as usize).min(LONGEST_LINE);
        let lines = self.hosts.iter().map(|host| host.line.as_str());
        let form = Form::new(lines, max_line, !self.args.badchars_ok);
        let bursts = Bursts::new(self.hosts.len(), max_line);
        let reached = plans.iter().map(Reached::of);
        let mut printing = Printing::new(report, self.shown(), form, bursts, reached.collect());
        if !self.args.noheader {
            // What the report cannot write it tells at its end.
            let _ = printing.show_header(&self.header().lines());
        }
        Ok(printing)
    }

    fn shown(&self) -> Shown {
        let (args, c) = (self.args, &self.args.c);
        Shown {
            output: !c.blind && !c.no_out,
            errors: !c.blind && !c.no_err,
            words: !self.flags.quiet && !c.no_err,
            zero_codes: args.zeroexit,
            other_codes: !args.ignexit,
            warnings: !args.silent_badchars,
            closing_line: !args.noheader,
        }
    }

    fn header(&self) -> Header<'_> {
        let args = self.args;
        Header {
            hosts: self.hosts.len(),
            command: match &args.c.script {
                Some(path) => path.as_os_str(),
                None => OsStr::from_bytes(&self.command),
            },
            user: &self.user,
            sessions: self.hosts.len().min(args.procs as usize),
            ssh: args.verbose.then(|| {
                let program = args.sshbin.clone().unwrap_or_else(ssh_program::installed);
                (program, self.flags.words.as_slice())
            }),
        }
    }
}

/// Tells of key files that hosts do without. Each host may have one of its own.
fn tell_unusable<'a>(keys: impl ExactSizeIterator<Item = &'a str>) {
    let more = keys.len().saturating_sub(KEYS_TOLD);
    for why in keys.take(KEYS_TOLD) {
        say(format!("{why}; hosts do without it, as with ssh"));
    }
    if more > 0 {
        say(format!("the same holds for {more} more key files"));
    }
}

/// A plan in which nothing is said but what is to be done.
fn plan(work: Work) -> RunPlan {
    RunPlan {
        work,
        jumps: Vec::new(),
        limits: Limits::default(),
        deadlines: Deadlines::default(),
        retry: RetryPolicy::default(),
        password: None,
        seed: fan_out::seed(),
        input: None,
        asks: false,
        server_cache: None,
        ssh: Surroundings::default(),
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

fn carried_out(plan: RunPlan, printing: Printing) -> Result<u8, Box<dyn std::error::Error>> {
    fan_out::carried_out(plan, printing).map(status)
}

/// mpssh.py's exit status: how the hosts fared is in its lines alone.
fn status(of_run: u8) -> u8 {
    match of_run {
        COMMAND_FAILED | HOST_FAILED => 0,
        INTERRUPTED => FAILED,
        other => other,
    }
}
