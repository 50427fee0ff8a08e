//! What can be wrong with a host list, in words that say what to write instead.

use std::fmt;

use thiserror::Error;

use crate::{MAX_NAME_LEN, MAX_TARGETS, number::MAX_DIGITS};

/// How much of a bad spec a message quotes, in characters.
const QUOTED_CHARS: usize = 80;

/// A line of a file of targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// What the caller called the file: its path, or `standard input`.
    pub label: String,
    /// The line, counted from 1; 0 when all of it is meant.
    pub line: usize,
}

/// Why a host list was refused. Nothing of a list is used when any part of it is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct TargetError {
    /// Where it stands: a file, a program or a group; `None` for a list from the command line.
    pub place: Option<Place>,
    /// The part that is wrong, as it was written (shortened when long).
    pub spec: String,
    /// What is wrong with it and what to do.
    #[source]
    pub problem: TargetProblem,
}

impl TargetError {
    pub(crate) fn new(spec: &str, problem: TargetProblem) -> TargetError {
        let mut quoted: String = spec.chars().take(QUOTED_CHARS).collect();
        if quoted.len() < spec.len() {
            quoted.push_str("...");
        }
        TargetError {
            place: None,
            spec: quoted,
            problem,
        }
    }

    pub(crate) fn at(mut self, label: &str, line: usize) -> TargetError {
        self.place = Some(Place {
            label: label.to_owned(),
            line,
        });
        self
    }
}

impl TargetError {
    /// Says in what it stands as a whole, unless something deeper has been named.
    pub(crate) fn in_file(self, label: &str) -> TargetError {
        match self.place {
            None => self.at(label, 0),
            Some(_) => self,
        }
    }
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Place { label, line }) = &self.place {
            match line {
                0 => write!(f, "{label}: ")?,
                line => write!(f, "{label}:{line}: ")?,
            }
        }
        if self.spec.is_empty() {
            write!(f, "{}", self.problem)
        } else {
            write!(f, "{:?}: {}", self.spec, self.problem)
        }
    }
}

/// The kinds of mistakes in a host list.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TargetProblem {
    /// Nothing between two commas, or no name beside a user or a port.
    #[error("the host name is missing")]
    EmptyName,
    /// `@host`, where no group is meant.
    #[error("the user name before '@' is missing (groups are not read here: write the host names)")]
    EmptyUser,
    /// `user@@group`.
    #[error(
        "a group cannot have a user: name the user with -l, or for each host where the group is defined"
    )]
    UserOfGroup,
    /// `@` or `@source:` alone.
    #[error("the group's name is missing: write @GROUP or @SOURCE:GROUP, or @* for all hosts")]
    EmptyGroup,
    /// A character that a shell would act on, or that means something else in lists.
    #[error("{0:?} cannot stand in a group's name: remove it")]
    GroupCharacter(char),
    /// A glob with a user, a port, or something else that no host name holds.
    #[error(
        "{0:?} cannot stand beside * or ?: write a name such as web*.example.com, or a /regex/"
    )]
    GlobCharacter(char),
    /// A glob with ranges that stands for too many.
    #[error("ranges make more than {0} globs of this: write * for the numbers, or a /regex/")]
    TooManyGlobs(usize),
    /// `/regex/` that does not compile.
    #[error("not a regular expression: {0}")]
    Regex(String),
    /// `/regex` without its end.
    #[error("the regular expression has no end: write /REGEX/, and \\/ for a slash in it")]
    UnclosedRegex,
    /// `a!` or `a&,b`.
    #[error("an operand is missing beside '!', '&' or '^': write two, such as web[1-9]!web3")]
    MissingOperand,
    /// `a ^b`, which is a file for some programs and an operation for others.
    #[error("is a file meant, or the hosts of just one side? Write a,^FILE or a^b")]
    SpacedCaret,
    /// A group, a glob or a set operation where only hosts and files can stand.
    #[error("groups, globs and set operations are not read here: write hosts and ^FILE only")]
    NotPlain,
    /// A name that OpenSSH would refuse, or that could be mistaken for an option or a path.
    #[error("{0:?} cannot stand in a host name: remove it")]
    NameCharacter(char),
    /// `Port=22` where a host stands: lists have no options.
    #[error(
        "an option stands behind hosts in a file of -f, not in a list: write user@host:port, or use -o"
    )]
    OptionAsHost,
    /// A user name that OpenSSH would refuse.
    #[error("{0:?} cannot stand in a user name: remove it")]
    UserCharacter(char),
    /// A name that begins with a dash would be read as an option by programs that get it.
    #[error("a host or user name cannot begin with '-'")]
    LeadingDash,
    /// A name longer than [`MAX_NAME_LEN`].
    #[error("the host name has more than {MAX_NAME_LEN} bytes")]
    NameTooLong,
    /// What follows the colon is not a port.
    #[error(
        "{0:?} is not a port: write a number from 1 to 65535 after ':' (an IPv6 address with a port is written [::1]:22)"
    )]
    Port(String),
    /// Colons, but no IPv6 address.
    #[error(
        "{0:?} is not an IPv6 address: write HOST:PORT with one colon, or an address such as ::1 or [::1]:22"
    )]
    Address(String),
    /// `[` without `]`.
    #[error("'[' is not closed: write a range such as [1-100,150]")]
    UnclosedBracket,
    /// `]` without `[`, or `[` inside brackets.
    #[error("brackets do not pair: write ranges such as web[1-3]-[01-20]")]
    StrayBracket,
    /// `[]` or `[1,,3]`.
    #[error("a number is missing in the brackets: write a range such as [1-100,150]")]
    EmptyRange,
    /// Not a number, a range or a range with a step.
    #[error("{0:?} is not a range: write numbers such as 7, 1-100, 001-100 or 1-99/2")]
    Range(String),
    /// `[9-1]`.
    #[error("the range {first}-{last} runs downwards: write {last}-{first}")]
    Downwards {
        /// The first number as written.
        first: String,
        /// The last number as written.
        last: String,
    },
    /// `[1-010]`: it is not clear whether zeros are wanted.
    #[error(
        "the numbers of {0:?} are padded to different widths: pad the first as the last, such as 001-100"
    )]
    Padding(String),
    /// A number of more than [`MAX_DIGITS`] digits.
    #[error("a number has more than {MAX_DIGITS} digits")]
    NumberTooLong,
    /// More than [`MAX_TARGETS`] names.
    #[error("more than {MAX_TARGETS} hosts: narrow the range, or split the run")]
    TooMany,
    /// Two words on a line of a file.
    #[error("a space inside a line: write one target a line, or separate targets with commas")]
    Space,
    /// A quote that is opened and not closed.
    #[error("a quote is not closed: write keyword=\"value\"")]
    UnclosedQuote,
    /// Not the name of an option.
    #[error("{0:?} is no keyword of ssh_config: write one such as IdentityFile=PATH")]
    OptionKeyword(String),
    /// An option's value that is empty, too long or not printable.
    #[error(
        "the value of {0} is empty, longer than 4096 bytes or holds control characters: write {0}=VALUE"
    )]
    OptionValue(String),
    /// More options of one host than anyone needs.
    #[error("a host has more than {0} options: put them into ssh_config")]
    TooManyOptions(usize),
    /// `^file` with nothing behind it.
    #[error("the file's name after '^' is missing: write ^PATH")]
    EmptyFile,
    /// `^file` inside a file.
    #[error("a file cannot name another file: name both on the command line")]
    NestedFile,
    /// Bytes that are no UTF-8.
    #[error("the line is not UTF-8: save the file as UTF-8 text")]
    NotUtf8,
    /// What was needed could not be got.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// A directory with more files than anyone needs.
    #[error(
        "the directory holds more than {0} files of groups: move what is no group source elsewhere"
    )]
    TooManyFiles(usize),
    /// A line before any section.
    #[error("no section begins before this line: write [Main] or [SOURCE] above it")]
    NoSection,
    /// Neither a section nor an option.
    #[error("neither a section nor an option: write [SOURCE] or KEY: VALUE")]
    NoValue,
    /// A section or an option that stands twice in a file.
    #[error("it stands twice: remove one")]
    Repeated,
    /// Two sources of one name.
    #[error("two group sources are called {0:?}: rename one")]
    RepeatedSource(String),
    /// A source without `map` and `mapall`.
    #[error(
        "the group source [{0}] has no map: write map: COMMAND, where $GROUP is the group's name"
    )]
    NoMap(String),
    /// `@group` with nothing configured.
    #[error("no groups are configured: write them into groups.conf, or name an inventory")]
    NoSources,
    /// A source that does not exist.
    #[error("there is no group source {name:?}; there are: {known}")]
    UnknownSource {
        /// Its name.
        name: String,
        /// The sources there are.
        known: String,
    },
    /// A group that its source does not hold.
    #[error("there is no group {group:?} in the source {of:?}; there are: {known}")]
    UnknownGroup {
        /// Its name.
        group: Box<str>,
        /// The source that was asked.
        of: Box<str>,
        /// The groups there are, the first few.
        known: Box<str>,
    },
    /// Groups that contain themselves.
    #[error("a group contains itself: {0}")]
    GroupCycle(String),
    /// Groups nested deeper than anyone needs.
    #[error("groups are nested deeper than {0}: name the hosts nearer to the outermost")]
    GroupDepth(usize),
    /// A source that cannot say which groups it has.
    #[error("the group source has neither all nor list nor mapall in groups.conf: add one")]
    NoListing,
    /// A line of `mapall` that is no group.
    #[error("the line is no group: print GROUP: HOSTS")]
    MapallLine,
    /// A glob with nothing to choose from.
    #[error(
        "there are no hosts to choose from: name an inventory or write groups.conf, or put the list before it, as in web[1-9]&*5"
    )]
    NoCandidates,
    /// No YAML.
    #[error("not YAML: {0}")]
    Yaml(String),
    /// An alias of something that contains it, or of nothing.
    #[error("the alias repeats something that is not complete yet: write it out")]
    YamlAlias,
    /// More nodes than anyone needs.
    #[error("the document has more than {0} parts: split the file")]
    YamlTooLarge(usize),
    /// Deeper than anyone needs.
    #[error("the document is nested deeper than {0}: make it flatter")]
    YamlTooDeep(usize),
    /// Another kind of node than belongs here.
    #[error("something else stands where there should be {0}")]
    YamlShape(&'static str),
    /// A name that YAML reads as a number or a truth value.
    #[error("the name is not a text: put it in quotes")]
    YamlNotText,
    /// Spaces among the attributes of a genders file.
    #[error("a space in the attributes: write them with commas only")]
    GendersSpace,
    /// `a,,b` or `a=` in a genders file.
    #[error("an attribute or its value is empty: write ATTRIBUTE or ATTRIBUTE=VALUE")]
    GendersEmpty,
    /// An attribute that a node has on two lines.
    #[error("a node has the attribute {0:?} twice: remove one")]
    GendersRepeated(String),
    /// A query that libgenders could not read.
    #[error(
        "not a genders query: write ATTRIBUTE or ATTRIBUTE=VALUE, joined by ||, && or --, ~ before what is not meant"
    )]
    GendersQuery,
    /// Parentheses nested deeper than anyone needs.
    #[error("the query is nested deeper than {0}: use fewer parentheses")]
    GendersDepth(usize),
    /// A host's name in an inventory that is more than a name.
    #[error(
        "not a host's name: write a name or an address, with user and port as ansible_user and ansible_port"
    )]
    InventoryName,
    /// `[...]` that is no section of an inventory.
    #[error("not a section: write [GROUP], [GROUP:children] or [GROUP:vars]")]
    InventorySection,
    /// Something else than `name=value`.
    #[error("not a variable: write NAME=VALUE")]
    InventoryVariable,
    /// Not one of Ansible's ranges.
    #[error("{0:?} is not a range: write one such as [1:9], [01:50:2] or [a:f]")]
    InventoryRange(String),
    /// A child that is defined nowhere.
    #[error("the group is not defined: write [GROUP] with its hosts")]
    UndefinedGroup,
    /// More groups than anyone needs.
    #[error("the inventory has more than {0} groups: split it")]
    TooManyGroups(usize),
    /// A variable with `{{ }}`.
    #[error(
        "a template, which only Ansible can fill in: write the value, or take the output of ansible-inventory --list"
    )]
    Template,
    /// A word of `ansible_ssh_common_args` that sets nothing.
    #[error(
        "{0:?} is not understood here: of ssh's flags, -o KEY=VALUE, -J, -p, -l and -i are; what others do belongs into ssh_config"
    )]
    SshArgument(String),
    /// No JSON.
    #[error("not JSON: {0}")]
    Json(String),
    /// Other JSON than belongs here.
    #[error("something else stands where there should be {0}")]
    JsonShape(&'static str),
    /// No CSV.
    #[error("not CSV: {0}")]
    Csv(String),
}
