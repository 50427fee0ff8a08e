//! Shell completion: the parser's own scripts, and hosts and groups from a hidden command.

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;

use crate::args::{Cli, HostArgs};
use crate::hosts::{Lists, config_names, known_hosts_names};
use crate::manual;

/// `sshoal complete-hosts`, for the scripts.
#[derive(Debug, Args)]
pub(crate) struct CompleteArgs {
    /// Groups, as -g takes them, in place of hosts.
    #[arg(long)]
    groups: bool,
    /// A list as far as it is typed.
    #[arg(allow_hyphen_values = true, default_value = "")]
    list: String,
}

/// Stands in the scripts where hosts are to be completed (`ValueHint::Hostname`).
const ZSH_HOSTS: &str = ":_hosts";
const FISH_HOSTS: &str = "(__fish_print_hostnames)";
/// Before it, our functions have to be defined.
const ZSH_END: &str = "if [ \"$funcstack[1]\" = ";

/// What readline takes for a word may be the end of a list only: it is cut off from what we answer.
const BASH: &str = r#"
# Hosts and groups are those that sshoal knows; all else is completed as above.
_sshoal_names() {
    local line="${COMP_LINE:0:COMP_POINT}" words word flag shown name kind="" ask=(complete-hosts)
    read -ra words <<<"$line"
    word="${line##*[[:space:]]}"
    [[ -n $word ]] || words+=("")
    flag="${words[${#words[@]} - 2]}"
    [[ $word == --*=* ]] && flag="${word%%=*}" word="${word#*=}"
    case "$flag" in
        -w | -x | --hosts | --exclude) kind=hosts ;;
        -g | -X | --group | --exclude-group) kind=groups ;;
        -*) ;;
        *)
            [[ $word != -* && ${words[1]} == explain && ${#words[@]} -gt 2 ]] && kind=hosts
            [[ $word != -* && ${words[1]} == hosts && ${#words[@]} -gt 3 ]] && kind=hosts
            ;;
    esac
    if [[ -z $kind ]]; then
        _sshoal "$@"
        return
    fi
    word="${word#[\'\"]}"
    shown="${word##*["$COMP_WORDBREAKS"]}"
    [[ $kind == groups ]] && ask+=(--groups)
    COMPREPLY=()
    while IFS= read -r name; do
        COMPREPLY+=("${name#"${word%"$shown"}"}")
    done < <("${words[0]}" "${ask[@]}" -- "$word" 2>/dev/null)
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

"#;

/// A shell's script.
pub(crate) fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible(), "sshoal", &mut script);
    let script = String::from_utf8_lossy(&script);
    match shell {
        Shell::Bash => script.into_owned() + BASH,
        Shell::Zsh => script
            .replace(&format!(":GROUP{ZSH_HOSTS}"), ":GROUP:_sshoal_groups")
            .replace(ZSH_HOSTS, ":_sshoal_hosts")
            .replace(ZSH_END, &format!("{ZSH}{ZSH_END}")),
        Shell::Fish => script.lines().map(|line| fish(line) + "\n").collect(),
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
    Command::new("sshoal")
        .version(env!("CARGO_PKG_VERSION"))
        .propagate_version(true)
        .disable_help_subcommand(true)
        .subcommands(visible)
}

fn fish(line: &str) -> String {
    let is_about_groups = [" -l group ", " -l exclude-group "];
    let flag = match is_about_groups.iter().any(|flag| line.contains(flag)) {
        true => "--groups ",
        false => "",
    };
    let ours = format!("(sshoal complete-hosts {flag}-- (commandline -ct) 2>/dev/null)");
    line.replace(FISH_HOSTS, &ours)
}

/// Prints what the list may go on with, whole lists one a line. What cannot be found out is nothing.
pub(crate) fn run(args: &CompleteArgs) -> Result<u8, Box<dyn std::error::Error>> {
    let mut names = candidates(args);
    names.sort_unstable();
    names.dedup();
    let text: String = names.into_iter().map(|name| name + "\n").collect();
    manual::print(text.as_bytes())
}

fn candidates(args: &CompleteArgs) -> Vec<String> {
    let (before, part) = args.list.split_at(last_operand(&args.list));
    if args.groups {
        return groups(before, part);
    }
    if let Some(group) = part.strip_prefix('@') {
        return groups(&format!("{before}@"), group);
    }
    let (user, name) = part.split_at(part.rfind('@').map_or(0, |at| at + 1));
    let names = config_names().into_iter().chain(known_hosts_names());
    let names = names.map(|target| target.to_string());
    names
        .filter(|known| known.starts_with(name))
        .map(|known| format!("{before}{user}{known}"))
        .collect()
}

/// Groups of the source that is named, or of the default one.
fn groups(before: &str, part: &str) -> Vec<String> {
    let (source, group) = match part.split_once(':') {
        Some((source, group)) => (Some(source), group),
        None => (None, part),
    };
    let lists = Lists::new(&HostArgs::default());
    let known = lists.and_then(|mut lists| lists.group_names(source));
    let known = known.unwrap_or_default().into_iter();
    let prefix = source
        .map(|source| format!("{source}:"))
        .unwrap_or_default();
    known
        .filter(|known| known.starts_with(group))
        .map(|known| format!("{before}{prefix}{known}"))
        .collect()
}

/// Where the last operand of a list begins, behind its operator or the minus sign of an exclusion.
fn last_operand(list: &str) -> usize {
    let mut inside_brackets = false;
    let mut start = 0;
    for (at, character) in list.char_indices() {
        match character {
            '[' => inside_brackets = true,
            ']' => inside_brackets = false,
            ',' | '!' | '&' | '^' | ' ' if !inside_brackets => start = at + 1,
            '-' if at == start => start = at + 1,
            _ => {}
        }
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_goes_on_with_its_last_operand() {
        for (list, operand) in [
            ("", ""),
            ("we", "we"),
            ("web1,we", "we"),
            ("@web!@ra", "@ra"),
            ("web[1,2", "web[1,2"),
            ("web1,-we", "we"),
            ("we-b", "we-b"),
        ] {
            assert_eq!(&list[last_operand(list)..], operand, "{list}");
        }
    }

    #[test]
    fn the_scripts_ask_us_for_hosts() {
        let zsh = script(Shell::Zsh);
        assert!(!zsh.contains(":_hosts"), "{zsh}");
        assert!(zsh.contains(":LIST:_sshoal_hosts") && zsh.contains(":GROUP:_sshoal_groups"));
        assert!(zsh.find("_sshoal_groups() {") < zsh.find(ZSH_END), "{zsh}");
        let fish = script(Shell::Fish);
        assert!(!fish.contains("__fish_print_hostnames"), "{fish}");
        assert!(fish.contains("(sshoal complete-hosts -- (commandline -ct)"));
        assert!(fish.contains("(sshoal complete-hosts --groups -- (commandline -ct)"));
    }
}
