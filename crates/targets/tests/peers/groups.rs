//! Groups, their sources and globs, against ClusterShell's resolver; and its groups.conf.

use std::{fs, process::Command};

use serde_json::{Map, Value, json};
use sshoal_targets::{Expansion, GroupTable, HostList, Need, Sources, Supply};

use crate::{compare, oracle::Oracle, ours, random::Random};

/// Groups that name hosts, ranges, and groups before them: no cycles. The same for either side.
fn sources(random: &mut Random) -> (Sources, Value) {
    let mut here = Sources::default();
    let mut there = Map::new();
    for source in ["racks", "roles"] {
        let has_all = random.below(2) == 0;
        let mut table = GroupTable::default();
        let mut groups = Map::new();
        for group in 0..5 {
            let mut operand =
                |random: &mut Random| match random.below(if group == 0 { 2 } else { 5 }) {
                    0 | 1 => random.small_spec(),
                    2 => format!("@{source}:g{}", random.below(group)),
                    3 => format!("@g{}", random.below(group)),
                    _ => format!("@g[0-{}]", group - 1),
                };
            let mut list = random.list(&mut operand).replace(' ', "");
            if !has_all {
                // ClusterShell joins the texts of all groups (see differences.rs).
                list = list.replace(['!', '&', '^'], ",");
            }
            table.insert_list(format!("g{group}"), &list);
            groups.insert(format!("g{group}"), list.into());
        }
        if has_all {
            let all = random.list(&mut |_| "@g[0-4]".to_owned()).replace(' ', "");
            table.insert_list("all", &all);
            groups.insert("all".to_owned(), all.into());
        }
        here.add_table(source, table);
        there.insert(source.to_owned(), groups.into());
    }
    (here, there.into())
}

#[test]
fn groups_and_globs_expand_as_nodeset_expands_them() {
    let mut oracle = Oracle::start();
    let mut random = Random(5);
    for _ in 0..500 {
        let (here, there) = sources(&mut random);
        let others = random.list(&mut |random| match random.below(5) {
            0 | 1 => random.small_spec(),
            2 => format!("@g{}", random.below(5)),
            3 => format!("@roles:g[{}-4]", random.below(5)),
            _ => random.pick(&["@*", "@roles:*", "@racks:*"]).to_owned(),
        });
        // Right of an operation a glob picks from what stands left of it here (see differences.rs).
        let glob = random.pick(&["n*", "*1*", "n?", "m[1-3]*", "*.lan", "?[0-9]"]);
        let list = match random.below(3) {
            0 => format!("{glob}{}{others}", random.pick(&[",", "!", "&", "^"])),
            1 => format!("{others}{}{glob}", random.pick(&[",", "^"])),
            _ => others,
        };
        let theirs = oracle.expand(&json!({ "expand": list, "sources": there }));
        compare(
            &format!("{list} in {there}"),
            ours(&list, Some(here)),
            theirs,
        );
    }
}

/// Gets what a list needs, as a program would.
fn supplied(sources: &mut Sources, list: &str) -> Result<Vec<String>, String> {
    let list = HostList::parse(list).map_err(|error| error.to_string())?;
    for _ in 0..20 {
        match sources.expand(&list).map_err(|error| error.to_string())? {
            Expansion::Targets(targets) => {
                return Ok(targets.into_iter().map(|target| target.name).collect());
            }
            Expansion::Needs(needs) => {
                for need in needs {
                    let supply = supply(&need);
                    sources.handle_supply(need, supply);
                }
            }
        }
    }
    panic!("{list} never has enough");
}

fn supply(need: &Need) -> Supply {
    match need {
        Need::File { path } => fs::read(path).map_or(Supply::Absent, Supply::Content),
        Need::Directory { path, suffix } => match fs::read_dir(path) {
            Err(_) => Supply::Absent,
            Ok(entries) => {
                let paths = entries.map(|entry| entry.unwrap().path().to_str().unwrap().to_owned());
                Supply::Paths(paths.filter(|path| path.ends_with(suffix)).collect())
            }
        },
        Need::Program { command, directory } => {
            let mut shell = Command::new("/bin/sh");
            shell
                .args(["-c", command])
                .current_dir(directory.as_deref().unwrap_or("."));
            let output = shell.output().unwrap();
            match output.status.success() {
                true => Supply::Content(output.stdout),
                false => Supply::Failed(output.status.to_string()),
            }
        }
        other => panic!("{other:?}"),
    }
}

const CONF: &str = "\
# comment
[Main]
default: local
confdir: $CFGDIR/groups.conf.d \"$CFGDIR/no such\"
autodir: $CFGDIR/groups.d

[local]
map: sed -n 's/^$GROUP:\\(.*\\)/\\1/p' $CFGDIR/local.cfg
all: sed -n 's/^all:\\(.*\\)/\\1/p' local.cfg
list = sed -n 's/^\\([0-9A-Za-z_-]*\\):.*/\\1/p'
   $CFGDIR/local.cfg

[up,down]
map: echo $SOURCE-$GROUP ${GROUP}[1-3] $$((1+1))
list: echo a b c[1-2]
[bad]
map: exit 3
[whole]
mapall: printf 'g: x[1-3]\\nh: @g,y\\ng: z\\n'
";

const CLUSTER: &str = "\
racks:
  rack1: 'example[0,2]'
  rack2: example[4-5]
  old: '@rack[1-2]'
  list:
    - 'example[200-205]'  # comment
    - example300,example[401-406]
  none:
  all: '@rack1,example9'
cpu:
  ivy: 'e[32-63]'
  hsw: '@racks:old!@ivy'
  mixed: &m [e1, '@racks:rack2']
  again: *m
";

/// groups.conf with all it can hold: the same from ClusterShell, which runs the programs and reads the files
/// itself.
#[test]
fn groups_conf_means_what_clustershell_makes_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let conf = directory.path().join("groups.conf");
    for sub in ["groups.conf.d", "groups.d"] {
        fs::create_dir(directory.path().join(sub)).unwrap();
    }
    fs::write(&conf, CONF).unwrap();
    fs::write(
        directory.path().join("local.cfg"),
        "web: n[1-3] n9\ndb: @web,m1\nall: n[1-20]\n",
    )
    .unwrap();
    fs::write(directory.path().join("groups.d/cluster.yaml"), CLUSTER).unwrap();
    let more = "[more]\nmap: cat $GROUP.txt\nall: echo q[1-3]\n";
    fs::write(directory.path().join("groups.conf.d/more.conf"), more).unwrap();
    fs::write(
        directory.path().join("groups.conf.d/some.txt"),
        "some[1-2]\nother\n",
    )
    .unwrap();
    let conf = conf.to_str().unwrap().to_owned();
    let mut oracle = Oracle::start();
    for list in [
        "@web",
        "@db",
        "@db!@web",
        "@local:web",
        "@*",
        "@local:*",
        "n1*",
        "n?!n2",
        "@up:a",
        "@down:x-y",
        "@up:*",
        "@bad:x",
        "@bad:*",
        "@whole:g",
        "@whole:h",
        "@whole:*",
        "@racks:old",
        "@racks:rack[1-2]",
        "@racks:list",
        "@racks:none",
        "@racks:*",
        "@cpu:hsw",
        "@cpu:mixed&@racks:*",
        "@cpu:again",
        "@cpu:*",
        "@more:some",
        "@more:*",
        "@nosuch:web",
        "@more:absent",
        "@web,m[1-2]^@db",
    ] {
        let mut here = Sources::new(vec!["/nonexistent/groups.conf".into(), conf.clone()]);
        let theirs = oracle.expand(&json!({ "expand": list, "groups_conf": conf }));
        compare(list, supplied(&mut here, list), theirs);
    }
}
