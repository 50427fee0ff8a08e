#!/usr/bin/env python3
"""One-rule mutations of the grammar and of folding: each must fail a test of the crate.

Changes a copy, never the sources themselves. Prints which tests fail, and exits 1 when a mutation goes unnoticed.
Not part of `make test`: it builds the crate once for each mutation.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# File, text as it is, text as it must not be, and the rule that it breaks.
MUTATIONS = [
    ("pattern.rs", "(first.is_padded() || last.is_padded())", "(first.is_padded() && last.is_padded())",
     "both ends of a padded range have one width"),
    ("pattern.rs", "/ self.step + 1", "/ self.step", "the last number of a range belongs to it"),
    ("scan.rs", "Some('!') => Operator::Difference", "Some('!') => Operator::Intersection", "! takes hosts away"),
    ("scan.rs", "!inside_brackets && (is_operator", "(is_operator", "a comma in brackets ends no operand"),
    ("scan.rs", "escaped = character == '\\\\'", "escaped = character == '$'", "a backslash escapes a slash"),
    ("set.rs", ".partition(is_here)", ".partition(|target| !is_here(target))", "^ keeps what one side has"),
    ("set.rs", "other.user == target.user && ", "", "users keep targets of one name apart"),
    ("select.rs", ".case_insensitive(true)", ".case_insensitive(false)", "globs and regexes ignore case"),
    ("sources/evaluate.rs", "self.list(&list, Some(source))", "self.list(&list, None)",
     "a group within a group is of the same source"),
    ("sources/evaluate.rs", "Operator::Difference | Operator::Intersection | Operator::Exclusion",
     "Operator::Difference | Operator::Exclusion", "a glob right of & picks from what stands left"),
    ("fold/runs.rs", "number.digits == width", "number.digits >= width", "a padded run has one width"),
    ("fold/runs.rs", "if !is_admitted || start != last", "if !is_admitted", "a run of two ends the padding at a gap"),
    ("fold/nd.rs", "            is_thorough = true;", "            break;", "rows that are no neighbours are united too"),
    ("genders/query.rs", "*picked && !other", "*picked && other", "-- takes nodes away"),
    ("inventory/mod.rs", ".chain([&host.variables])", ".chain([])", "a host's own variables count"),
]


def mutate(crate, file, before, after):
    """Writes the mutated file and returns the text it had."""
    path = crate / "src" / file
    text = path.read_text()
    if text.count(before) != 1:
        sys.exit(f"{file} holds {before!r} {text.count(before)} times: bring the list up to date")
    path.write_text(text.replace(before, after))
    return text


def main():
    root = pathlib.Path(__file__).resolve().parents[3]
    environment = dict(os.environ)
    environment.setdefault("CARGO_TARGET_DIR", str(root / "target/mutations"))
    test = ["cargo", "test", "--locked", "-q", "-p", "sshoal-targets", "--lib"]
    unnoticed = 0
    with tempfile.TemporaryDirectory() as scratch:
        copy = pathlib.Path(scratch) / "copy"
        shutil.copytree(root, copy, ignore=shutil.ignore_patterns("target", ".git"))
        crate = copy / "crates/targets"
        for file, before, after, rule in MUTATIONS:
            text = mutate(crate, file, before, after)
            run = subprocess.run(test, cwd=copy, env=environment, capture_output=True, text=True)
            (crate / "src" / file).write_text(text)
            failed = sorted(set(re.findall(r"^    (\w+(?:::\w+)+)$", run.stdout, re.MULTILINE)))
            unnoticed += not failed
            print(f"{', '.join(failed) or 'UNNOTICED'}: {file}: {rule}", flush=True)
    return int(unnoticed > 0)


if __name__ == "__main__":
    sys.exit(main())
