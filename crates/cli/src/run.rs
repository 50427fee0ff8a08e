//! `sshoal run`: from arguments to a plan, from a plan to an exit status.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use sshoal_fleet::{Deadlines, Limits, RetryPolicy};
use sshoal_known_hosts::LineProblem;
use sshoal_net::{
    HostPlan, IndexCache, Input, KillPlan, Place, Preparation, PrepareError, RunPlan, Searched,
    Secret, SshOptions, Work, connections_allowed, server_cache_path,
};
use sshoal_proto::SessionRequest;
use sshoal_report::Host;
use sshoal_targets::Target;

use crate::args::{ConfigArgs, LoginArgs, PaceArgs, RunArgs};
use crate::detached::{Detached, Task};
use crate::dry_run::{self, DryRun};
use crate::each::PROCESSES;
use crate::fan_out::{self, NoCommand, Showing};
use crate::hosts;
use crate::prompt::{self, PromptError};
use crate::rolling::Batched;
use crate::runs::{Reads, Sitting};
use crate::say::say;
use crate::script::{self, ScriptError};
use crate::template::Template;
use crate::terminal;
use crate::transport;
use crate::warm::Kept;

/// Hosts for which a further thread is worth its start.
const HOSTS_A_WORKER: usize = 1000;
/// What to type.
const EXAMPLE: &str = "sshoal run -w 'web[1-40]' uptime";

/// Asked before a run with `--sudo`.
pub(crate) const SUDO_QUESTION: &str = "[sudo] password: ";

/// Faulty lines of known_hosts that are shown one by one.
const SHOWN_PROBLEMS: usize = 20;

/// Logins at a time that each need a touch of a security key: one is touched for, the next is ready.
const TOUCHED_LOGINS: u32 = 2;

/// Runs the command; returns the exit status.
pub(crate) fn run(args: &RunArgs, sitting: &Sitting<'_>) -> Result<u8, Box<dyn std::error::Error>> {
    let since = Instant::now();
    let is_blank = |word: &OsString| word.as_encoded_bytes().trim_ascii().is_empty();
    let has_command = args.script.is_some() || !args.command.iter().all(is_blank);
    if !has_command && !hosts::are_named(&args.hosts) {
        return Err(NoCommand::new(&args.hosts, EXAMPLE).into());
    }
    check_standard_input(args)?;
    check_for_a_time(args)?;
    args.kill.check()?;
    let Batched {
        targets,
        plan: rolling,
    } = sitting.batched(&args.hosts, &args.rolling)?;
    if args.tty && targets.len() > 1 {
        return Err(format!("-t is for one host; {} were named", targets.len()).into());
    }
    let mut preparation = Preparation::new(&SshOptions {
        command: has_command.then(|| typed(args)),
        ..ssh_options(&args.config, &args.login)
    })?;
    let detached = args.detach.detached();
    let line = CommandLine::new(args, has_command, detached.as_ref())?;
    let mut plans = line.plans(args, &targets, &mut preparation)?;
    if let Some(detached) = &detached {
        for (plan, number) in plans.iter_mut().zip(sitting.numbers()) {
            detached.number(plan, number);
        }
    }
    check_remote_commands(args, &plans)?;
    read_known_hosts(
        &mut preparation,
        &mut plans,
        &args.login,
        args.output.verbose,
    )?;
    transport::check(&args.login, &mut plans)?;
    let mut hosts = described(&targets, &plans);
    let kept = Kept::of_run(args, &plans, preparation.jumps());
    kept.mark(&mut hosts);
    sitting.name(&mut hosts);
    if args.dry_run {
        let lines = hosts.iter().zip(&plans);
        let lines = lines.map(|(host, plan)| line.description(host, plan));
        return Ok(dry_run::print(args.output.json, rolling.as_ref(), lines));
    }
    let password = password(&args.login, plans.len())?;
    let ssh = transport::surroundings(&args.login, &plans, password.as_ref())?;
    let sudo_password = sudo_password(args)?;
    let kill = match detached.as_ref().map(|detached| detached.task) {
        None => args.kill.plan(sudo_password.clone(), None),
        Some(Task::Survive) => args
            .kill
            .plan(sudo_password.clone(), detached.as_ref().map(Detached::name)),
        Some(_) => None,
    };
    let deadlines = Deadlines {
        kill: kill.as_ref().map(KillPlan::longest).unwrap_or_default(),
        survive: args.detach.survive,
        ..deadlines(&args.login, &args.pace, &mut plans)
    };
    let jumps = preparation.into_jumps();
    let canaries = rolling.as_ref().map_or(0, |plan| plan.rolling.canaries);
    let reads = || Reads::of(args.stdin.as_deref(), args.script.as_deref());
    let noted = (&args.journal, args.output.quiet);
    // What outlives the run is found by it alone.
    let is_needed = matches!(&detached, Some(it) if it.task == Task::Begin);
    let journal = sitting.journal("run", noted, (&hosts, canaries, is_needed), reads)?;
    let to_attach_to = match (&detached, &journal) {
        (
            Some(Detached {
                task: Task::Begin, ..
            }),
            Some(journal),
        ) => Some(journal.id().to_string()),
        (
            Some(Detached {
                task: Task::Begin, ..
            }),
            None,
        ) => {
            return Err(
                "--detach needs the run's journal, by which sshoal attach finds its commands"
                    .into(),
            );
        }
        _ => None,
    };
    let input = input(args, sudo_password, detached.as_ref(), plans.len())?;
    // A secret that comes first is not to lie about in another process.
    let has_secret = input.as_ref().is_some_and(Input::begins_with_secret);
    let plan = RunPlan {
        limits: limits(&args.login, &args.pace, &plans, jumps.len(), &deadlines),
        deadlines,
        retry: RetryPolicy::default(),
        kill,
        password,
        seed: fan_out::seed(),
        input,
        asks: prompt::is_possible(),
        server_cache: server_cache_path(),
        ssh,
        workers: args.login.workers.unwrap_or_else(|| workers(plans.len())),
        work: Work::Sessions(plans),
        transfer: None,
        trial: None,
        timing: None,
        rolling,
        keeper: None,
        journal,
        warm: kept.board().filter(|_| !has_secret),
        jumps,
    };
    let showing = Showing {
        output: &args.output,
        tty: args.tty,
        raw: false,
        since,
        forgives: args.rolling.forgives(),
    };
    let status = showing.carry_out(plan, hosts)?;
    if let Some(id) = to_attach_to.filter(|_| !args.output.quiet) {
        say(format!(
            "sshoal attach {id} collects what the commands write"
        ));
    }
    Ok(status)
}

/// Looks the hosts up in known_hosts, and says what is wrong there.
pub(crate) fn read_known_hosts(
    preparation: &mut Preparation,
    plans: &mut [HostPlan],
    login: &LoginArgs,
    verbose: u8,
) -> Result<(), PrepareError> {
    let indexes = (!login.no_index_cache).then(IndexCache::of_user);
    let searched = preparation.read_known_hosts(plans, indexes.flatten().as_ref())?;
    if searched.hmacs > 0 && verbose > 0 {
        say(description_of_search(searched));
    }
    for problem in shown_problems(&preparation.known_hosts_problems()) {
        say(problem);
    }
    Ok(())
}

/// The report's hosts, with what is known of them now.
pub(crate) fn described(targets: &[Target], plans: &[HostPlan]) -> Vec<Host> {
    let mut hosts = fan_out::hosts(targets);
    for (host, plan) in hosts.iter_mut().zip(plans) {
        (host.user, host.port) = (Some(plan.user().to_owned()), Some(plan.port()));
        host.way = Some(transport::way(plan));
    }
    hosts
}

/// Which lines of known_hosts grant no trust, as many as anybody reads.
pub(crate) fn shown_problems(problems: &[LineProblem]) -> Vec<String> {
    let shown = problems.iter().take(SHOWN_PROBLEMS);
    let mut shown: Vec<String> = shown.map(ToString::to_string).collect();
    if problems.len() > SHOWN_PROBLEMS {
        shown.push(format!(
            "{} more lines of known_hosts are not understood; `sshoal known-hosts check` shows all of a file",
            problems.len() - SHOWN_PROBLEMS
        ));
    }
    shown
}

/// What the index of known_hosts lines did not spare.
fn description_of_search(searched: Searched) -> String {
    format!(
        "known_hosts: names x hashed lines = {} HMACs on {} in {:.3} s",
        searched.hmacs,
        match searched.threads {
            1 => "1 thread".to_owned(),
            threads => format!("{threads} threads"),
        },
        searched.time.as_secs_f64()
    )
}

/// Standard input has one reader.
fn check_standard_input(args: &RunArgs) -> Result<(), String> {
    let is_ours = |path: &PathBuf| path.as_path() == Path::new("-");
    let readers = [
        ("-f -", args.hosts.file.iter().any(is_ours)),
        ("--stdin -", args.stdin.as_ref().is_some_and(is_ours)),
        ("-t", args.tty),
    ];
    let mut reading = readers.iter().filter(|(_, reads)| *reads);
    match (reading.next(), reading.next()) {
        (Some((one, _)), Some((other, _))) => Err(format!(
            "{one} and {other} both read standard input; put one of them into a file"
        )),
        _ => Ok(()),
    }
}

/// pdsh, clush, pssh and mpssh have -t for a time limit, and no program is called by a mere number.
fn check_for_a_time(args: &RunArgs) -> Result<(), String> {
    let first = args.command.first().and_then(|word| word.to_str());
    match first.filter(|word| args.tty && word.parse::<f64>().is_ok()) {
        Some(number) => Err(format!(
            "-t lends the terminal to the command and takes no number; time limits are --connect-timeout {number} and, \
             for the command, -u {number}"
        )),
        None => Ok(()),
    }
}

pub(crate) fn ssh_options(config: &ConfigArgs, login: &LoginArgs) -> SshOptions {
    SshOptions {
        config_file: config.config.clone(),
        options: config.options(),
        user: config.user.clone(),
        identities: login.identity.clone(),
        jump: login.jump.clone(),
        forward_agent: login.forward_agent,
        tag: config.tag.clone(),
        transport: login.transport.into(),
        ssh_words: login.ssh_word.clone(),
        ..SshOptions::default()
    }
}

/// The command as it was typed: what `Match command` sees.
fn typed(args: &RunArgs) -> String {
    let script = args.script.iter().map(|path| path.as_os_str());
    let words: Vec<_> = script
        .chain(args.command.iter().map(OsString::as_os_str))
        .collect();
    words.join(OsStr::new(" ")).to_string_lossy().into_owned()
}

/// Without a command on the command line every host must have one of its own.
fn check_remote_commands(
    args: &RunArgs,
    plans: &[HostPlan],
) -> Result<(), Box<dyn std::error::Error>> {
    let lacks = |plan: &&HostPlan| plan.command().is_empty();
    match plans.iter().find(lacks) {
        None => Ok(()),
        Some(_) if plans.iter().all(|plan| lacks(&plan)) => {
            Err(NoCommand::new(&args.hosts, EXAMPLE).into())
        }
        Some(plan) => Err(format!(
            "{}: no command was given, and ssh_config has no RemoteCommand for this host",
            plan.label()
        )
        .into()),
    }
}

/// What the hosts' shells get, but for what differs from host to host.
struct CommandLine<'a> {
    /// The interpreter and the script itself.
    script: Template,
    /// The command, or the script's arguments.
    words: Template,
    /// What `--dry-run` says before the words.
    title: String,
    sudo: bool,
    /// Whether there are no words, and each host's RemoteCommand is run.
    is_remote: bool,
    /// What is sent in place of the command, if it outlives its connection.
    detached: Option<&'a Detached>,
}

impl<'a> CommandLine<'a> {
    fn new(
        args: &RunArgs,
        has_command: bool,
        detached: Option<&'a Detached>,
    ) -> Result<Self, ScriptError> {
        let (script, words, title) = match &args.script {
            Some(path) => {
                let title = format!("script {}", path.display());
                (
                    script::with_interpreter(path)?,
                    script::arguments(&args.command),
                    title,
                )
            }
            None => (Vec::new(), joined(&args.command), String::new()),
        };
        let longest = [script.as_slice(), &words].concat();
        let longest = detached.map_or_else(|| longest.clone(), |detached| detached.line(&longest));
        let longest = if args.sudo {
            script::with_sudo(&longest)
        } else {
            longest
        };
        if longest.len() > script::MAX_LINE {
            return Err(ScriptError::TooLong);
        }
        // `stat -c %n`, `date +%u` and `find -printf %p` are common in scripts: filling in is for those that ask.
        let template = |text: &[u8], fills_in| match fills_in {
            true => Template::parse(text),
            false => Template::literal(text),
        };
        Ok(CommandLine {
            script: template(&script, args.fill_script),
            words: template(&words, !args.literal),
            title,
            sudo: args.sudo,
            is_remote: !has_command,
            detached,
        })
    }

    fn plans(
        &self,
        args: &RunArgs,
        targets: &[Target],
        preparation: &mut Preparation,
    ) -> Result<Vec<HostPlan>, PrepareError> {
        let pty = args.tty.then(terminal::pty);
        let request = |place: &Place<'_>| {
            let line = match (self.is_remote, place.remote_command) {
                (true, remote) => remote.unwrap_or_default().as_bytes().to_vec(),
                (false, _) => [self.script.fill(place), self.words.fill(place)].concat(),
            };
            let line = match self.detached {
                Some(detached) if !line.is_empty() => detached.line(&line),
                _ => line,
            };
            SessionRequest {
                standard_input: args.stdin.is_some()
                    || args.sudo
                    || args.tty
                    || self.detached.is_some(),
                pty: pty.clone(),
                ..SessionRequest::exec(match self.sudo && !line.is_empty() {
                    true => script::with_sudo(&line),
                    false => line,
                })
            }
        };
        preparation.hosts(targets, request)
    }

    /// What would be done on a host.
    fn description<'h>(&self, host: &'h Host, plan: &'h HostPlan) -> DryRun<'h> {
        let (user, name, port) = (plan.user(), plan.name(), plan.port());
        let place = Place {
            host: name,
            port,
            user,
            name: &host.target.name,
            remote_command: None,
        };
        let words = match self.is_remote {
            true => plan.command().to_vec(),
            false => self.words.fill(&place),
        };
        let sudo = if self.sudo && !self.is_remote {
            "sudo "
        } else {
            ""
        };
        let title = format!("{sudo}{}", self.title);
        DryRun {
            host,
            name: Some(name),
            place: self::place(host, plan),
            what: [title.as_bytes(), &words].concat(),
        }
    }
}

/// Who is logged in as where, and how, as `--dry-run` says it.
pub(crate) fn place(host: &Host, plan: &HostPlan) -> String {
    let by = match plan.openssh() {
        Some(by_ssh) => format!(" by ssh [{}]", by_ssh.why),
        None if host.way.as_ref().is_some_and(|way| way.is_warm) => {
            " by a warm connection".to_owned()
        }
        None => String::new(),
    };
    format!("{}@{} port {}{by}", plan.user(), plan.name(), plan.port())
}

/// The words of the command as ssh joins them: by single spaces (ssh.c).
fn joined(words: &[OsString]) -> Vec<u8> {
    words
        .iter()
        .map(|word| word.as_bytes())
        .collect::<Vec<_>>()
        .join(&b' ')
}

/// `--ask-pass`: before anything is begun, so that nobody waits for the answer.
pub(crate) fn password(args: &LoginArgs, hosts: usize) -> Result<Option<Secret>, PromptError> {
    args.ask_pass
        .then(|| prompt::secret(&password_question(hosts), &|| true))
        .transpose()
}

/// What is asked for `--ask-pass`.
pub(crate) fn password_question(hosts: usize) -> String {
    match hosts {
        1 => "Password for 1 host: ".to_owned(),
        hosts => format!("Password for {hosts} hosts: "),
    }
}

/// `--sudo`: asked for before anything is read.
fn sudo_password(args: &RunArgs) -> Result<Option<Secret>, PromptError> {
    args.sudo
        .then(|| prompt::secret(SUDO_QUESTION, &|| true))
        .transpose()
}

/// What the commands read: `--stdin`, the terminal with `-t`, and before it sudo's password; or what has them outlive their
/// connections.
fn input(
    args: &RunArgs,
    password: Option<Secret>,
    detached: Option<&Detached>,
    hosts: usize,
) -> Result<Option<Input>, Box<dyn std::error::Error>> {
    let path = match args.tty {
        true => Some(Path::new("-")),
        false => args.stdin.as_deref(),
    };
    let input = path.map(|path| fan_out::input(path, hosts)).transpose()?;
    let lines = password.map(|password| script::sudo_input(password.expose()));
    let script = detached.map(Detached::script);
    let preamble: Vec<u8> = lines.into_iter().chain(script).flatten().collect();
    Ok(match preamble.is_empty() {
        true => input,
        false => Some(Input::with_preamble(Secret::new(preamble), input)),
    })
}

/// How many hosts may do the same thing at a time.
pub(crate) fn limits(
    login: &LoginArgs,
    pace: &PaceArgs,
    hosts: &[HostPlan],
    jumps: usize,
    deadlines: &Deadlines,
) -> Limits {
    let mut limits = Limits::default();
    if sshoal_net::logins_wait_for_touch(hosts, deadlines) {
        (limits.connects, limits.logins) = (TOUCHED_LOGINS, TOUCHED_LOGINS);
    }
    let jumps = u32::try_from(jumps).unwrap_or(u32::MAX);
    let proxied = hosts.iter().filter(|host| host.has_process());
    let proxied = u32::try_from(proxied.count()).unwrap_or(u32::MAX);
    if proxied > PROCESSES {
        limits.sessions = PROCESSES;
    }
    let allowed = connections_allowed(proxied).saturating_sub(jumps).max(1);
    let sessions = pace.parallel.unwrap_or(limits.sessions).min(allowed);
    Limits {
        sessions,
        connects: limits.connects.min(sessions),
        logins: login.logins.unwrap_or(limits.logins).min(sessions),
        logins_by_program: login.logins.unwrap_or_else(transport::logins_at_a_time),
        start_interval: fan_out::start_interval(pace),
        ..limits
    }
}

/// The flags go before ConnectTimeout of ssh_config, which is each host's own.
pub(crate) fn deadlines(login: &LoginArgs, pace: &PaceArgs, hosts: &mut [HostPlan]) -> Deadlines {
    let defaults = fan_out::deadlines(pace);
    let timeouts = || hosts.iter().filter_map(HostPlan::connect_timeout);
    let connect = match login.connect_timeout {
        Some(limit) => Some(limit),
        None => timeouts().max().max(defaults.connect),
    };
    let deadlines = Deadlines {
        connect,
        login: login.login_timeout.or(defaults.login),
        ..defaults
    };
    for host in hosts {
        let own = match login.connect_timeout {
            Some(_) => None,
            // The run's deadline is then another host's.
            None => host
                .connect_timeout()
                .or(defaults.connect.filter(|_| connect != defaults.connect)),
        };
        match host {
            HostPlan::Native(plan) => plan.endpoint.tcp.connect_timeout = own,
            HostPlan::OpenSsh(plan) => transport::limit_connecting(plan, own, &deadlines),
        }
    }
    deadlines
}

/// Threads for so many hosts.
pub(crate) fn workers(hosts: usize) -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    hosts.div_ceil(HOSTS_A_WORKER).clamp(1, cores)
}
