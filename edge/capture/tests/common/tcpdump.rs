//! tcpdump on the loopback interface.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

/// What the kernel keeps of packets that tcpdump has not yet read.
const KERNEL_KIB: &str = "65536";

/// Watches a port; ends with its owner.
pub struct Tcpdump {
    process: Child,
    last_words: Option<JoinHandle<Vec<String>>>,
    directory: tempfile::TempDir,
}

impl Tcpdump {
    /// Starts it; `None` where this user may not capture packets.
    pub fn start(port: u16) -> Option<Self> {
        let directory = tempfile::tempdir().expect("a directory");
        let process = Command::new("tcpdump")
            .args(["-i", "lo", "-s", "0", "-B", KERNEL_KIB, "-U", "-Z", "root", "-w"])
            .arg(directory.path().join("real.pcap"))
            .arg(format!("tcp port {port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("tcpdump is installed (scripts/setup test)");
        let mut tcpdump = Self { process, last_words: None, directory };
        let stderr = tcpdump.process.stderr.take().expect("a pipe");
        let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
        let told: Vec<String> = lines.by_ref().take_while(|line| !line.contains("listening on")).collect();
        if told.iter().any(|line| line.contains("ermission") || line.contains("not permitted")) {
            eprintln!("this user may not capture packets, so nothing is compared: {told:?}");
            return None;
        }
        // Its last words must find a reader.
        tcpdump.last_words = Some(std::thread::spawn(move || Vec::from_iter(lines)));
        Some(tcpdump)
    }

    /// Where it writes to.
    fn file(&self) -> PathBuf {
        self.directory.path().join("real.pcap")
    }

    /// Ends it: the capture, if the kernel had room for all of it.
    pub fn stop(mut self) -> Option<Vec<u8>> {
        std::thread::sleep(Duration::from_millis(1_500)); // what the kernel still holds
        self.end();
        let told = self.last_words.take()?.join().expect("it reads");
        let is_whole = told.iter().any(|line| line == "0 packets dropped by kernel");
        is_whole.then(|| std::fs::read(self.file()).expect("tcpdump wrote it"))
    }

    fn end(&mut self) {
        // It writes what it has when it is asked to end.
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        let _ = self.process.wait();
    }
}

impl Drop for Tcpdump {
    fn drop(&mut self) {
        if self.process.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.end();
        }
    }
}
