#![allow(clippy::unwrap_used)]

use super::*;

const PLAN: &str = r#"# A comment.
[defaults]
hosts-file = "hosts.txt"

[step.upgrade]
after = ["config", "drain"]
run = "apt-get -y upgrade"
batch = "10%"
timeout = 600
sudo = true
option = ["Port=23", "User=admin"]

[step.drain]
script = ["drain.sh", "web"]
group = "web"

[step]
config = { put = ["site.conf", "/etc/site.conf"], pause = 0.5 }
"#;

fn refused(text: &str) -> (usize, String) {
    let error = Plan::parse(text).unwrap_err();
    (error.line, error.to_string())
}

#[test]
fn steps_are_those_of_the_file_in_its_order_with_all_that_is_said_of_them() {
    let plan = Plan::parse(PLAN).unwrap();
    let setting = |key: &str, value, line| Setting {
        key: key.to_owned(),
        value,
        line,
    };
    let text = |text: &str| Value::Text(text.to_owned());
    assert_eq!(
        plan.defaults(),
        [setting("hosts-file", text("hosts.txt"), 3)]
    );
    let [upgrade, drain, config] = plan.steps() else {
        panic!("{plan:?}");
    };
    assert_eq!((upgrade.name.as_str(), upgrade.line), ("upgrade", 5));
    let action = Action {
        verb: Verb::Run,
        words: vec!["apt-get -y upgrade".to_owned()],
        line: 7,
    };
    assert_eq!(upgrade.action, action);
    let options = ["Port=23", "User=admin"].map(str::to_owned).to_vec();
    let settings = [
        setting("batch", text("10%"), 8),
        setting("timeout", text("600"), 9),
        setting("sudo", Value::Given(true), 10),
        setting("option", Value::Texts(options), 11),
    ];
    assert_eq!(upgrade.settings, settings);
    assert_eq!((drain.action.verb, drain.line), (Verb::Script, 13));
    assert_eq!(drain.action.words, ["drain.sh", "web"]);
    assert_eq!((config.action.verb, config.line), (Verb::Put, 18));
    assert_eq!(config.settings, [setting("pause", text("0.5"), 18)]);
    assert_eq!(plan.graph().order(), [1, 2, 0]);
    assert_eq!(plan.graph().after(0), [2, 1]);
}

#[test]
fn a_cycle_is_refused_with_its_path() {
    let (line, said) = refused(
        "[step.first]\nrun = 'x'\n[step.a]\nafter = 'c'\nrun = 'x'\n[step.b]\nafter = ['a', 'first']\nrun = 'x'\n\
         [step.c]\nafter = 'b'\nrun = 'x'\n",
    );
    assert_eq!(line, 3);
    assert_eq!(
        said,
        "step a: it would wait for itself: a (line 3) comes after c (line 9), which comes after b (line 6), which comes after a"
    );
    let (line, said) = refused("[step.a]\nrun = 'x'\nafter = 'a'");
    assert_eq!(line, 1);
    assert_eq!(
        said,
        "step a: it would wait for itself: a (line 1) comes after a"
    );
}

#[test]
fn a_name_that_is_no_step_is_refused_with_its_line() {
    let (line, said) =
        refused("[step.a]\nrun = 'x'\n[step.b]\nrun = 'x'\nafter = [\n  'a',\n  'drian',\n]\n");
    assert_eq!(line, 7);
    assert_eq!(
        said,
        "step b: it comes after drian, which is no step; there are: a, b"
    );
    let (line, said) = refused("[step.a]\nrun = 'x'\n[step.b]\nrun = 'x'\nafter = ['a', 'a']");
    assert_eq!((line, said.as_str()), (5, "step b: after names a twice"));
}

#[test]
fn a_step_does_one_thing() {
    let (line, said) = refused("\n[step.a]\nhosts = 'x'");
    assert_eq!(line, 2);
    assert!(said.starts_with("step a: it does nothing"), "{said}");
    let (line, said) = refused("[step.a]\nrun = 'x'\nput = ['x', 'y']");
    assert_eq!(line, 3);
    assert_eq!(
        said,
        "step a: it has both run and put; make two steps of it"
    );
    for (action, wanted) in [
        ("run = ''", "run must be a command"),
        ("run = [' ', '']", "run must be a command"),
        ("run = true", "run must be a command"),
        ("put = 'file'", "put must be a list"),
        ("put = ['file']", "put must be a list"),
        ("get = []", "get must be a list"),
        ("script = {}", "script must be a file"),
    ] {
        let (line, said) = refused(&format!("[step.a]\n{action}"));
        assert_eq!(line, 2);
        assert!(said.contains(wanted), "{said}");
    }
}

#[test]
fn what_is_no_plan_is_refused_with_its_line() {
    for (text, line, wanted) in [
        ("", 1, "there is no step"),
        ("[step]", 1, "there is no step"),
        ("[step.a]\nrun = 'x'\n\n[step.a]\nrun = 'y'", 4, ": a"),
        ("[step.a]\nrun = 'x'\nrun = 'y'", 3, ": run"),
        ("[step.a]\nrun = x", 2, ""),
        ("[steps.a]\nrun = 'x'", 1, "steps is not known here"),
        ("after = 'x'", 1, "after is not known here"),
        ("step = 'x'", 1, "step must be a table"),
        ("[step]\na = 'x'", 2, "step.a must be a table"),
        ("[step.'a b']\nrun = 'x'", 1, "is no name of a step"),
        ("[step.-a]\nrun = 'x'", 1, "is no name of a step"),
        (
            "[step.a]\nrun = 'x'\nafter = 3",
            3,
            "after must be the name",
        ),
        ("[step.a]\nrun = 'x'\nbatch = {}", 3, "batch must be a text"),
        (
            "[step.a]\nrun = 'x'\nbatch = [[1]]",
            3,
            "batch must be a text",
        ),
        ("[defaults]\nbatch = 2020-01-01", 2, "batch must be a text"),
    ] {
        let (found, said) = refused(text);
        assert_eq!(found, line, "{text}: {said}");
        assert!(said.contains(wanted), "{text}: {said}");
    }
    let (_, said) = refused(&" ".repeat(MAX_PLAN + 1));
    assert!(said.contains("at most 1048576 octets"), "{said}");
    let many: String = (0..=MAX_STEPS)
        .map(|step| format!("[step.{step}]\nrun='x'\n"))
        .collect();
    assert!(refused(&many).1.contains("at most 1000 steps"));
    let name = "a".repeat(MAX_NAME);
    assert!(Plan::parse(&format!("[step.{name}]\nrun='x'")).is_ok());
    assert!(
        refused(&format!("[step.{name}a]\nrun='x'"))
            .1
            .contains("is no name")
    );
}
