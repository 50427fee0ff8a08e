//! What a step is.

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What it is called: once in a plan.
    pub name: String,
    /// The line of the file that it begins in, from 1.
    pub line: usize,
    /// What it does.
    pub action: Action,
    /// All else that is said of it, in the order of the file.
    pub settings: Vec<Setting>,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// In which way.
    pub verb: Verb,
    /// The command, the script and its arguments, or the paths; at least one.
    pub words: Vec<String>,
    /// The line of the file that says so, from 1.
    pub line: usize,
}

/// The kinds of action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// A command on the hosts.
    Run,
    /// A local script on the hosts.
    Script,
    /// A command of this machine for each host.
    Each,
    /// Files to the hosts.
    Put,
    /// Files from the hosts.
    Get,
}

impl Verb {
    /// All of them.
    pub const ALL: [Verb; 5] = [Verb::Run, Verb::Script, Verb::Each, Verb::Put, Verb::Get];

    /// The key that stands for it in a step.
    pub fn key(self) -> &'static str {
        match self {
            Verb::Run => "run",
            Verb::Script => "script",
            Verb::Each => "each",
            Verb::Put => "put",
            Verb::Get => "get",
        }
    }

    /// The command of sshoal that does it, whose flags a step's settings are.
    pub fn command(self) -> &'static str {
        match self {
            Verb::Script => "run",
            verb => verb.key(),
        }
    }
}

/// Something that is said of a step, or of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The long name of a flag.
    pub key: String,
    /// What it is set to.
    pub value: Value,
    /// The line of the file that says so, from 1.
    pub line: usize,
}

/// What a flag is set to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A flag without a value: whether it is given.
    Given(bool),
    /// Its value; a number is as it was written.
    Text(String),
    /// It is given so many times.
    Texts(Vec<String>),
}
