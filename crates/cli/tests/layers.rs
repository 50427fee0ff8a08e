//! Holds the workspace to ARCHITECTURE.md: its code map is the one table of crates, layers and allowed dependencies.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Crates that may deny `unsafe_code` instead of forbidding it, each with the one file that may allow it.
const UNSAFE_FILES: &[(&str, &str)] = &[
    ("net", "src/hints.rs"),
    ("spawn", "src/kernel.rs"),
    ("spawn_capi", "src/ffi.rs"),
    ("spawn_preload", "src/ffi.rs"),
    ("testbed", "src/delay_line/tun.rs"),
    ("tracer", "src/kernel.rs"),
];

/// Layers from the ground up. `dev` is above all: nothing that ships may use it.
const LAYERS: &[&str] = &["L0", "L1", "L2", "L3", "L4", "dev"];

/// A row of the code map.
struct Row {
    krate: String,
    layer: usize,
    may_use: BTreeSet<String>,
}

/// A dependency of one workspace crate on another.
struct Edge {
    from: String,
    to: String,
    dev: bool,
}

#[test]
fn the_table_points_downward_only() {
    let rows = code_map();
    for (position, row) in rows.iter().enumerate() {
        for used in &row.may_use {
            let above = rows[..position].iter().find(|other| other.krate == *used);
            let above = above.unwrap_or_else(|| {
                panic!("{} may use {used}, which has no row above it", row.krate)
            });
            assert!(
                above.layer <= row.layer,
                "{} may use {used} of a higher layer",
                row.krate
            );
        }
    }
}

#[test]
fn the_table_names_exactly_the_workspace_s_crates() {
    let listed: BTreeSet<String> = code_map().into_iter().map(|row| row.krate).collect();
    let (present, _) = workspace();
    assert_eq!(
        present, listed,
        "left: crates/, right: ARCHITECTURE.md's code map"
    );
}

#[test]
fn crates_use_only_what_the_table_allows() {
    let rows: BTreeMap<String, Row> = code_map()
        .into_iter()
        .map(|row| (row.krate.clone(), row))
        .collect();
    let (_, edges) = workspace();
    assert!(
        !edges.is_empty(),
        "cargo metadata lists no edge between the workspace's crates"
    );
    for Edge { from, to, dev } in &edges {
        let to_dev_layer = LAYERS[rows[to].layer] == "dev";
        let allowed = rows[from].may_use.contains(to) || (*dev && to_dev_layer);
        assert!(
            allowed,
            "{from} depends on {to}, which its row in ARCHITECTURE.md does not allow"
        );
    }
}

#[test]
fn unsafe_code_is_forbidden_but_in_the_named_files() {
    let root = workspace_root();
    let workspace_lint = section(
        &fs::read_to_string(root.join("Cargo.toml")).unwrap(),
        "[workspace.lints.rust]",
    );
    assert!(
        workspace_lint.contains(&"unsafe_code = \"forbid\"".to_owned()),
        "{workspace_lint:?}"
    );

    for row in code_map() {
        let folder = root.join("crates").join(&row.krate);
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        if section(&manifest, "[lints]").contains(&"workspace = true".to_owned()) {
            continue;
        }
        let exception = UNSAFE_FILES.iter().find(|(krate, _)| *krate == row.krate);
        let (_, file) = exception
            .unwrap_or_else(|| panic!("{} does not take the workspace's lints", row.krate));
        let own_lint = section(&manifest, "[lints.rust]");
        assert!(
            own_lint.contains(&"unsafe_code = \"deny\"".to_owned()),
            "{}: {own_lint:?}",
            row.krate
        );
        for source in rust_files(&folder) {
            let lifts_the_lint = fs::read_to_string(&source)
                .unwrap()
                .contains("(unsafe_code");
            assert!(
                !lifts_the_lint || source == folder.join(file),
                "{} lifts unsafe_code",
                source.display()
            );
        }
    }
}

/// The rows between the `layers` markers of ARCHITECTURE.md, in their order.
fn code_map() -> Vec<Row> {
    let text = fs::read_to_string(workspace_root().join("ARCHITECTURE.md")).unwrap();
    let (_, after) = text
        .split_once("<!-- layers:begin -->")
        .expect("the table's first marker");
    let (table, _) = after
        .split_once("<!-- layers:end -->")
        .expect("the table's last marker");
    table
        .lines()
        .filter(|line| line.starts_with('|'))
        .skip(2)
        .map(parse_row)
        .collect()
}

/// `| L1 | `proto` | `wire` `crypto` | what it is |`
fn parse_row(line: &str) -> Row {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [layer, krate, may_use, _] = cells[..] else {
        panic!("a row of four cells: {line}")
    };
    let names = |cell: &str| {
        cell.split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    Row {
        krate: names(krate)
            .pop()
            .unwrap_or_else(|| panic!("a crate's name in backquotes: {line}")),
        layer: LAYERS
            .iter()
            .position(|known| *known == layer)
            .unwrap_or_else(|| panic!("a known layer: {line}")),
        may_use: names(may_use).into_iter().collect(),
    }
}

/// The crates by the name of their folder, and the dependencies among them, as `cargo metadata` tells.
fn workspace() -> (BTreeSet<String>, Vec<Edge>) {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(workspace_root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();

    let crates = packages
        .iter()
        .map(|package| folder_name(Path::new(text(&package["manifest_path"])).parent()));
    let mut edges = Vec::new();
    for package in packages {
        let from = folder_name(Path::new(text(&package["manifest_path"])).parent());
        for dependency in package["dependencies"].as_array().unwrap() {
            // Only dependencies inside the workspace have a path.
            if let Some(path) = dependency["path"].as_str() {
                let to = folder_name(Some(Path::new(path)));
                edges.push(Edge {
                    from: from.clone(),
                    to,
                    dev: dependency["kind"] == "dev",
                });
            }
        }
    }
    (crates.collect(), edges)
}

fn folder_name(folder: Option<&Path>) -> String {
    folder
        .and_then(Path::file_name)
        .unwrap()
        .to_string_lossy()
        .into_owned()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
        .to_owned()
}

/// The lines of one section of a Cargo.toml.
fn section(manifest: &str, head: &str) -> Vec<String> {
    let lines = manifest
        .lines()
        .skip_while(|line| line.trim() != head)
        .skip(1);
    lines
        .take_while(|line| !line.starts_with('['))
        .map(|line| line.trim().to_owned())
        .collect()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}
