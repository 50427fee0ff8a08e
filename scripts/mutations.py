#!/usr/bin/env python3
"""One-rule mutations of the matchers: each must fail a unit test of its crate.

`scripts/mutations.py [CRATE...]` makes those of crates/CRATE/tests/mutations.toml, of all crates that have such a list if
none is named, in a copy, never in the sources themselves. It prints which tests fail, and exits 1 when a mutation goes
unnoticed or does not build. `--check` only looks whether the lists fit the sources. The rest is not part of `make test`: it
builds a crate once for each mutation.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]


def mutations(crate):
    """The list of a crate; each entry must fit one place of the sources."""
    entries = tomllib.loads((ROOT / "crates" / crate / "tests/mutations.toml").read_text())["mutation"]
    for entry in entries:
        path = ROOT / "crates" / crate / "src" / entry["file"]
        count = path.read_text().count(entry["before"])
        if count != 1:
            sys.exit(f"{path} holds {entry['before']!r} {count} times: bring the list of mutations up to date")
    return entries


def failures(crate, entry, copy, environment):
    """The tests that fail with a mutation, or why there are none."""
    path = copy / "crates" / crate / "src" / entry["file"]
    text = path.read_text()
    path.write_text(text.replace(entry["before"], entry["after"]))
    test = ["cargo", "test", "--locked", "-q", "-p", f"sshoal-{crate.replace('_', '-')}", "--lib"]
    run = subprocess.run(test, cwd=copy, env=environment, capture_output=True, text=True)
    path.write_text(text)
    failed = sorted(set(re.findall(r"^    (\w+(?:::\w+)+)$", run.stdout, re.MULTILINE)))
    if failed:
        return True, ", ".join(failed)
    return False, "UNNOTICED" if run.returncode == 0 else "DOES NOT BUILD"


def main(crates):
    listed = sorted(path.parts[-3] for path in ROOT.glob("crates/*/tests/mutations.toml"))
    lists = {crate: mutations(crate) for crate in crates or listed}
    environment = dict(os.environ)
    environment.setdefault("CARGO_TARGET_DIR", str(ROOT / "target/mutations"))
    bad = 0
    with tempfile.TemporaryDirectory() as scratch:
        copy = pathlib.Path(scratch) / "copy"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("target", ".git", "corpus", "artifacts"))
        for crate, entries in lists.items():
            for entry in entries:
                noticed, what = failures(crate, entry, copy, environment)
                bad += not noticed
                print(f"{what}: {crate}/src/{entry['file']}: {entry['rule']}", flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        for path in sorted(ROOT.glob("crates/*/tests/mutations.toml")):
            mutations(path.parts[-3])
    else:
        sys.exit(main(sys.argv[1:]))
