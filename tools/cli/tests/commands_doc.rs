//! `docs/commands.md` has what `--help` says: `cargo xtask docs` writes it.

#![cfg(all(feature = "capture", feature = "embed", feature = "lab"))]

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn the_page_of_commands_says_what_the_help_says() {
    let output = Command::new(env!("CARGO_BIN_EXE_onetrip")).arg("reference").output().unwrap();
    assert!(output.status.success());
    let made = String::from_utf8(output.stdout).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &made).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap_or_default(), made, "run: cargo xtask docs");
    for (command, option) in [("run", "--remedies"), ("lab tune", "--table"), ("completions", "<SHELL>")] {
        let section =
            made.split("\n## ").find(|section| section.starts_with(&format!("onetrip {command}\n")));
        assert!(section.is_some_and(|section| section.contains(option)), "onetrip {command} has {option}");
    }
}
