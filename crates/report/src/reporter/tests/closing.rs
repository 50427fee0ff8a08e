//! How a report ends, above all when its own output cannot be written.

use serde_json::Value;

use super::*;
use crate::{CutShort, PastEnding};

/// A report of two hosts with a result file, of which the first has ended well.
struct Begun {
    reporter: Reporter,
    stderr: Recorded,
    dir: tempfile::TempDir,
}

impl Begun {
    fn new(stdout: &Recorded, options: Options) -> Begun {
        let dir = tempfile::tempdir().unwrap();
        let stderr = Recorded::default();
        let options = Options {
            result_file: Some(dir.path().join("last-run.jsonl")),
            ..options
        };
        let mut reporter = Reporter::new(webs(2), options, stdout.file(), stderr.file()).unwrap();
        reporter
            .handle_output(HostId(0), Stream::Stdout, b"out\n")
            .unwrap();
        reporter.handle_result(&exit(0, 0)).unwrap();
        Begun {
            reporter,
            stderr,
            dir,
        }
    }

    fn tick(&mut self) -> io::Result<()> {
        self.reporter.tick(Instant::now(), &Progress::default())
    }

    /// Loses the second host and closes. Returns the exit status and what was said.
    fn finish(mut self, cut_short: Option<CutShort>) -> (u8, String) {
        // After a failure nobody asks how it went.
        let _ = self.reporter.handle_result(&lost(1));
        let end = RunEnd {
            cut_short,
            ..RunEnd::default()
        };
        let summary = self.reporter.finish(end);
        assert_eq!((summary.counts.ok, summary.counts.failed), (1, 1));
        // Whatever happened: the results are there, and the status in them is the true one.
        let path = self.dir.path().join("last-run.jsonl");
        let endings: Vec<PastEnding> = read_last_run(&path)
            .unwrap()
            .iter()
            .map(|host| host.ending)
            .collect();
        let lost = PastEnding::Failed(FailureKind::Lost);
        assert_eq!(endings, [PastEnding::Ok, lost]);
        let kept = std::fs::read_to_string(path).unwrap();
        assert_eq!(last_object(&kept)["exit_status"], summary.exit_status);
        (summary.exit_status, self.stderr.text())
    }
}

fn last_object(lines: &str) -> Value {
    serde_json::from_str(lines.lines().last().unwrap()).unwrap()
}

const SUMMARY: &str = "sshoal: 1 of 2 hosts ok, 1 failed, in 0.0 s\n\
                       lost: web2\n    web2: connection reset\n    to do: look there\n";

#[test]
fn a_full_disk_is_told_with_the_summary_and_a_status_of_its_own() {
    let stdout = Recorded::failing_after(6, io::ErrorKind::StorageFull);
    let mut begun = Begun::new(&stdout, Options::default());
    let error = begun.tick().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    let (status, said) = begun.finish(None);
    assert_eq!(status, 74);
    assert_eq!(
        said,
        format!("sshoal: cannot write standard output: no storage space\n{SUMMARY}")
    );
    assert_eq!(stdout.text(), "web1: ", "nothing follows half a line");
}

#[test]
fn it_is_told_as_well_if_all_hosts_had_ended() {
    let stdout = Recorded::failing_after(0, io::ErrorKind::StorageFull);
    let (status, said) = Begun::new(&stdout, quiet(Layout::Gather)).finish(None);
    assert_eq!(status, 74);
    // Even if the run is to be quiet; but no more than that.
    assert_eq!(
        said,
        "sshoal: cannot write standard output: no storage space\n"
    );
}

#[test]
fn a_folder_for_output_that_is_not_there_any_more_ends_it_too() {
    let stdout = Recorded::default();
    let outdir = tempfile::tempdir().unwrap();
    let options = Options {
        layout: Layout::Json,
        outdir: Some(outdir.path().join("out")),
        ..Options::default()
    };
    let mut begun = Begun::new(&stdout, options);
    std::fs::remove_dir_all(outdir.path()).unwrap();
    let reporter = &mut begun.reporter;
    let error = reporter.handle_output(HostId(1), Stream::Stdout, b"x");
    assert_eq!(error.unwrap_err().kind(), io::ErrorKind::NotFound);
    let (status, said) = begun.finish(None);
    assert_eq!(status, 74);
    let words = "cannot write output file";
    assert!(said.contains(words) && said.ends_with(SUMMARY), "{said}");
    // Without the summary the output is known to be cut off.
    assert_eq!(last_object(&stdout.text())["type"], "host");
}

#[test]
fn a_reader_that_has_gone_costs_no_results() {
    let stdout = Recorded::closing_after(0);
    let mut begun = Begun::new(&stdout, Options::default());
    begun.tick().unwrap_err();
    assert_eq!(begun.finish(None), (141, String::new()));
}

#[test]
fn the_summary_has_the_status_of_the_process_whatever_ended_the_run() {
    for (cut_short, expected) in [
        (None, 3),
        (Some(CutShort::Interrupted), 130),
        (Some(CutShort::Stopped(15)), 143),
    ] {
        let stdout = Recorded::default();
        let (status, _) = Begun::new(&stdout, quiet(Layout::Json)).finish(cut_short);
        assert_eq!(status, expected);
        let summary = last_object(&stdout.text());
        assert_eq!(summary["exit_status"], expected);
        assert_eq!(summary["interrupted"], cut_short.is_some());
    }
}

#[test]
fn nothing_that_cannot_be_said_while_it_goes_on_is_forgotten() {
    type Saying = fn(&mut Reporter) -> io::Result<()>;
    let sayings: [Saying; 4] = [
        |reporter| reporter.demand("touch the key"),
        |reporter| {
            reporter.banner("web1", b"welcome\n")?;
            reporter.pause()
        },
        |reporter| reporter.notice("by the way"),
        |reporter| reporter.handle_output(HostId(0), Stream::Stderr, &[b'\n'; 40_000]),
    ];
    for say in sayings {
        let stderr = Recorded::failing_after(0, io::ErrorKind::StorageFull);
        let options = Options {
            verbosity: Verbosity::Verbose,
            ..Options::default()
        };
        let stdout = Recorded::default();
        let mut reporter = Reporter::new(webs(1), options, stdout.file(), stderr.file()).unwrap();
        assert!(say(&mut reporter).is_err());
        reporter.handle_result(&exit(0, 0)).unwrap();
        assert_eq!(reporter.finish(RunEnd::default()).exit_status, 74);
    }
}
