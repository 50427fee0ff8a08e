//! The scripts for bash, zsh and fish: what clap_complete writes, and our questions for hosts and groups in it.

use std::fmt::Write as _;

use clap::{Arg, Command, CommandFactory, ValueHint};
use clap_complete::Shell;

use crate::args::Cli;

/// Stands in the scripts where hosts are to be completed (`ValueHint::Hostname`).
const ZSH_HOSTS: &str = ":_hosts";
const FISH_HOSTS: &str = "(__fish_print_hostnames)";
/// Before it, our functions have to be defined.
const ZSH_END: &str = "if [ \"$funcstack[1]\" = ";
/// Stands where the commands go that take hosts without a flag.
const BASH_TAKERS: &str = "            TAKERS\n";

/// What readline takes for a word, `$2`, may be the end of a list only: what stands before it is cut off from our answers.
const BASH: &str = r#"
# Hosts and groups are those that sshoal knows; all else is completed as above.
_sshoal_names() {
    local line="${COMP_LINE:0:COMP_POINT}" words word flag shown name kind="" valued="" ask=(complete-hosts) all=()
    read -ra words <<<"$line"
    word="${line##*[[:space:]]}"
    [[ -n $word ]] || words+=("")
    flag="${words[${#words[@]} - 2]}"
    [[ $word == --*=* ]] && flag="${word%%=*}" word="${word#*=}"
    case "${words[1]} $flag" in
        "put --exclude" | "get --exclude") ;;
        *" -w" | *" -x" | *" --hosts" | *" --exclude" | *" --exclude-hosts" | *" -J" | *" --jump") kind=hosts ;;
        *" -g" | *" -X" | *" --group" | *" --exclude-group") kind=groups ;;
        *" --retry-failed") kind=kinds ;;
        *" --of") kind=runs ;;
        "plan --only" | "plan --from") kind=steps ;;
        "show show" | "resume resume" | "attach attach") kind=runs ;;
        *) case "${words[*]:1}" in
            plan\ explain\ *\ *) kind=steps ;;
            TAKERS
            esac
            [[ $word == -* || " $valued " == *" $flag "* ]] && kind="" ;;
    esac
    if [[ -z $kind ]]; then
        _sshoal "$@"
        return
    fi
    word="${word#[\'\"]}"
    shown="${2#[\'\"]}"
    [[ $kind == hosts ]] || ask+=("--$kind")
    [[ $kind == steps ]] && all=("${COMP_WORDS[@]}")
    COMPREPLY=()
    while IFS= read -r name; do
        COMPREPLY+=("${name#"${word%"$shown"}"}")
    done < <("${words[0]}" "${ask[@]}" -- "$word" "${all[@]}" 2>/dev/null)
}
complete -F _sshoal_names -o bashdefault -o default sshoal
"#;

const ZSH: &str = r#"# Hosts and groups are those that sshoal knows.
_sshoal_hosts() {
    local -a names
    names=("${(@f)$(sshoal complete-hosts -- "$PREFIX" 2>/dev/null)}")
    compadd -a names
}
_sshoal_groups() {
    local -a names
    names=("${(@f)$(sshoal complete-hosts --groups -- "$PREFIX" 2>/dev/null)}")
    compadd -a names
}
_sshoal_kinds() {
    local -a names
    names=("${(@f)$(sshoal complete-hosts --kinds -- "$PREFIX" 2>/dev/null)}")
    compadd -a names
}
_sshoal_runs() {
    local -a names
    names=("${(@f)$(sshoal complete-hosts --runs -- "$PREFIX" 2>/dev/null)}")
    compadd -a names
}
_sshoal_steps() {
    local -a names
    names=("${(@f)$(sshoal complete-hosts --steps -- "$PREFIX" "${(@Q)${(z)BUFFER}}" 2>/dev/null)}")
    compadd -a names
}

"#;

/// The word is given as it is typed: with the flag it is joined to, and with a quotation mark.
const FISH: &str = r#"# Hosts and groups are those that sshoal knows.
function __fish_sshoal_names
    set -l word (commandline -ct | string replace -r -- '^(--[a-z-]+=|-[wxgXJ])?["\']?' '')
    sshoal complete-hosts $argv -- $word (commandline -o) 2>/dev/null
end

"#;

/// The steps that `plan explain` takes behind its plan.
const FISH_STEPS: &str = "complete -c sshoal -n \"__fish_sshoal_using_subcommand plan; and __fish_seen_subcommand_from explain\" -a \"(__fish_sshoal_names --steps)\"\n";

/// A shell's script.
pub(crate) fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible(), "sshoal", &mut script);
    let script = String::from_utf8_lossy(&script);
    let takers = takers(&visible(), &[]);
    match shell {
        Shell::Bash => {
            let cases: String = takers.iter().map(Taker::bash).collect();
            script.into_owned() + &BASH.replace(BASH_TAKERS, &cases)
        }
        Shell::Zsh => script
            .lines()
            .map(|line| zsh(line) + "\n")
            .collect::<String>()
            .replace(&format!(":GROUP{ZSH_HOSTS}"), ":GROUP:_sshoal_groups")
            .replace(":KINDS:_default", ":KINDS:_sshoal_kinds")
            .replace(":RUN:_default", ":RUN:_sshoal_runs")
            .replace(":STEP:_default", ":STEP:_sshoal_steps")
            // A colon ends what is shown of a value, unless it is quoted.
            .replace("HOST[:PORT]", "HOST[\\:PORT]")
            .replace(ZSH_HOSTS, ":_sshoal_hosts")
            .replace(ZSH_END, &format!("{ZSH}{ZSH_END}")),
        Shell::Fish => {
            let lines: String = script.lines().map(|line| fish(line) + "\n").collect();
            let hosts: String = takers.iter().map(Taker::fish).collect();
            format!("{FISH}{lines}{hosts}{}{FISH_STEPS}", runs_in_fish())
        }
        _ => script.into_owned(),
    }
}

/// The command line without what is for the scripts themselves.
fn visible() -> Command {
    let cli = Cli::command();
    let commands = cli.get_subcommands();
    let visible: Vec<Command> = commands
        .filter(|command| !command.is_hide_set())
        .cloned()
        .collect();
    let mut command = Command::new("sshoal")
        .version(env!("CARGO_PKG_VERSION"))
        .propagate_version(true)
        .disable_help_subcommand(true)
        .subcommands(visible);
    command.build();
    command
}

/// A run, or steps, that stand without a flag.
fn zsh(line: &str) -> String {
    let named = [
        ("':run -- ", ":_sshoal_runs"),
        ("'*::steps -- ", ":_sshoal_steps"),
    ];
    let named = named
        .into_iter()
        .find(|(begin, _)| line.trim_start().starts_with(begin));
    match named {
        Some((_, function)) => line.replace(":_default", function),
        None => line.to_owned(),
    }
}

fn fish(line: &str) -> String {
    if line.contains(" -l retry-failed ") {
        return format!("{line} -f -a \"(__fish_sshoal_names --kinds)\"");
    }
    let is_of_plan = line.contains("__fish_sshoal_using_subcommand plan;");
    if is_of_plan
        && [" -l only ", " -l from "]
            .iter()
            .any(|flag| line.contains(flag))
    {
        return format!("{line} -f -a \"(__fish_sshoal_names --steps)\"");
    }
    if line.contains(" -l of ") {
        return format!("{line} -f -a \"(__fish_sshoal_names --runs)\"");
    }
    let is_about_groups = [" -l group ", " -l exclude-group "];
    let flag = match is_about_groups.iter().any(|flag| line.contains(flag)) {
        true => " --groups",
        false => "",
    };
    line.replace(FISH_HOSTS, &format!("(__fish_sshoal_names{flag})"))
}

/// The commands that take a run.
fn runs_in_fish() -> String {
    ["show", "resume", "attach"]
        .map(|command| {
            format!(
                "complete -c sshoal -n \"__fish_sshoal_using_subcommand {command}\" -f -a \"(__fish_sshoal_names --runs)\"\n"
            )
        })
        .concat()
}

/// A command that takes hosts without a flag, which clap_complete knows to write for zsh only.
struct Taker {
    /// `known-hosts`, `lookup`
    path: Vec<String>,
    /// What may stand in each place before the hosts.
    before: Vec<Vec<String>>,
    /// Its flags that have a value: what follows one of them is no host.
    valued: Vec<String>,
}

fn takers(command: &Command, path: &[String]) -> Vec<Taker> {
    let mut found = Vec::new();
    let positionals: Vec<&Arg> = command.get_positionals().collect();
    let is_hosts = |arg: &&Arg| arg.get_value_hint() == ValueHint::Hostname;
    if let Some(at) = positionals.iter().position(is_hosts) {
        let values = |arg: &&Arg| {
            let values = arg.get_possible_values();
            values.iter().map(|value| value.get_name().into()).collect()
        };
        found.push(Taker {
            path: path.to_vec(),
            before: positionals[..at].iter().map(values).collect(),
            valued: command.get_opts().flat_map(spellings).collect(),
        });
    }
    for below in command.get_subcommands() {
        let path = [path, &[below.get_name().to_owned()]].concat();
        found.extend(takers(below, &path));
    }
    found
}

fn spellings(flag: &Arg) -> Vec<String> {
    let short = flag.get_short().map(|letter| format!("-{letter}"));
    let long = flag.get_long().map(|word| format!("--{word}"));
    short.into_iter().chain(long).collect()
}

impl Taker {
    /// A branch of `case` for the words behind `sshoal`.
    fn bash(&self) -> String {
        let mut pattern = self.path.join("\\ ");
        for _ in 0..=self.before.len() {
            pattern.push_str("\\ *");
        }
        let valued = self.valued.join(" ");
        format!("            {pattern}) kind=hosts valued=\"{valued}\" ;;\n")
    }

    fn fish(&self) -> String {
        let mut condition = String::from("__fish_sshoal_using_subcommand ");
        condition.push_str(&self.path.join("; and __fish_seen_subcommand_from "));
        let mut lines = String::new();
        for words in self.before.iter().map(|words| words.join(" ")) {
            let seen = format!("__fish_seen_subcommand_from {words}");
            let _ = writeln!(
                lines,
                "complete -c sshoal -n \"{condition}; and not {seen}\" -f -a \"{words}\""
            );
            let _ = write!(condition, "; and {seen}");
        }
        let _ = writeln!(
            lines,
            "complete -c sshoal -n \"{condition}\" -f -a \"(__fish_sshoal_names)\""
        );
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scripts_ask_us_for_hosts() {
        let zsh = script(Shell::Zsh);
        assert!(!zsh.contains(":_hosts"), "{zsh}");
        assert!(zsh.contains(":LIST:_sshoal_hosts") && zsh.contains(":GROUP:_sshoal_groups"));
        assert!(zsh.contains(":KINDS:_sshoal_kinds"));
        assert_eq!(
            zsh.matches(":_sshoal_runs").count() - zsh.matches(":RUN:_sshoal_runs").count(),
            3,
            "{zsh}"
        );
        assert!(zsh.find("_sshoal_groups() {") < zsh.find(ZSH_END), "{zsh}");
        let fish = script(Shell::Fish);
        assert!(!fish.contains("__fish_print_hostnames"), "{fish}");
        assert!(fish.contains("(__fish_sshoal_names)"));
        assert!(fish.contains("(__fish_sshoal_names --groups)"));
        assert!(fish.contains("(__fish_sshoal_names --kinds)"));
        let bash = script(Shell::Bash);
        assert!(!bash.contains("TAKERS"), "{bash}");
        assert!(bash.contains("            known-hosts\\ lookup\\ *) kind=hosts"));
        assert!(bash.contains("            hosts\\ *\\ *) kind=hosts"));
    }
}
