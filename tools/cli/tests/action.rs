//! `action.yml`, run with the environment that a workflow gives its steps.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use onetrip_pgserver::PgServer;

/// A job's workspace and the files that its steps write.
struct Job {
    directory: tempfile::TempDir,
}

impl Job {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// A step of the action, by the words of action.yml.
    fn step(&self, step: &str, inputs: &[(&str, &str)]) -> Output {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let action = std::fs::read_to_string(root.join("action.yml")).unwrap();
        let end = format!(" {step}'");
        let line = action
            .lines()
            .find(|line| line.trim_start().starts_with("run: '") && line.ends_with(&end))
            .unwrap();
        let script = line.trim().strip_prefix("run: '").unwrap().strip_suffix('\'').unwrap();
        let added = self.text("path").lines().map(|line| format!("{line}:")).collect::<String>();
        let mut command = Command::new("bash");
        command.args(["-e", "-o", "pipefail", "-c", script]).envs(inputs.iter().copied());
        command.env("PATH", format!("{added}{}", std::env::var("PATH").unwrap()));
        command.env("GITHUB_ACTION_PATH", root).env("RUNNER_TEMP", self.directory.path());
        for (variable, file) in
            [("GITHUB_PATH", "path"), ("GITHUB_OUTPUT", "output"), ("GITHUB_STEP_SUMMARY", "summary")]
        {
            command.env(variable, self.path(file));
        }
        command.output().unwrap()
    }

    /// An archive as `make dist` names its files.
    fn archive(&self) -> String {
        let tree = self.path("onetrip-0.1.0-test");
        std::fs::create_dir(&tree).unwrap();
        std::fs::copy(env!("CARGO_BIN_EXE_onetrip"), tree.join("onetrip")).unwrap();
        let archive = self.path("onetrip.tar.gz");
        let mut tar = Command::new("tar");
        tar.arg("-czf").arg(&archive).arg("-C").arg(self.directory.path()).arg("onetrip-0.1.0-test");
        assert!(tar.status().unwrap().success());
        archive.display().to_string()
    }
}

#[test]
fn a_job_installs_runs_and_finds_summary_annotations_and_outputs() {
    let server = PgServer::start(&[]);
    let job = Job::new();
    let archive = job.archive();
    let wrong = job.step("install", &[("ONETRIP_ARCHIVE", &archive), ("ONETRIP_SHA256", "00")]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&wrong.stdout).contains("::error title=onetrip::"));
    let installed = job.step("install", &[("ONETRIP_ARCHIVE", &archive), ("ONETRIP_SHA256", "")]);
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));

    let url = format!("postgres://onetrip:onetrip-secret@127.0.0.1:{}/postgres", server.at.port);
    let script = "(echo 'CREATE TEMP TABLE visits (who int, \"a|b\" int);'
for who in $(seq 20); do echo \"INSERT INTO visits VALUES ($who, 1);\"; done) | psql -qAt \"$DATABASE_URL\"";
    let inputs = [
        ("ONETRIP_RUN", script),
        ("ONETRIP_OPTIONS", "--budget trips=2 --budget OT001=0"),
        ("DATABASE_URL", &url),
    ];
    let done = job.step("run", &inputs);
    let output = String::from_utf8_lossy(&done.stdout).into_owned();
    assert_eq!(done.status.code(), Some(90), "{output}{}", String::from_utf8_lossy(&done.stderr));
    assert!(output.contains("::error title=onetrip budget::trips: "), "{output}");
    assert!(output.contains("::warning title=onetrip OT003::OT003 "), "{output}");
    let summary = job.text("summary");
    assert!(summary.starts_with("### onetrip: "), "{summary}");
    assert!(summary.contains("| trips | 2 | ") && summary.contains("| failed |"), "{summary}");
    assert!(summary.contains("| OT001 | 0 | 0 | passed |"), "{summary}");
    assert!(summary.contains("| OT003 "), "{summary}");
    assert!(job.text("output").contains("trips=") && job.text("output").contains("report="), "{output}");
    assert!(!summary.contains("onetrip-secret") && !output.contains("onetrip-secret"));

    let failing = [("ONETRIP_RUN", "false; true"), ("ONETRIP_OPTIONS", ""), ("DATABASE_URL", &url)];
    assert_eq!(job.step("run", &failing).status.code(), Some(1), "the command's own failure is the step's");
}
