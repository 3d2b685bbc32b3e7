//! Compiles the agent by which programs on the JVM tell their lines (`run --call-sites`). It needs no JDK.

use std::path::{Path, PathBuf};
use std::process::Command;

const DIRECTORY: &str = "src/call_sites/jvm";
const SOURCES: [&str; 6] = ["agent", "connections", "methods", "natives", "sites", "teller"];

fn main() {
    println!("cargo:rerun-if-changed={DIRECTORY}");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let compiler = cc::Build::new().opt_level(2).pic(true).get_compiler();
    // As edge/target does: in two steps, and without any library's name in it.
    let mut link = compiler.to_command();
    link.args(["-shared", "-nostdlib", "-s", "-o"]).arg(out.join("jvm.so"));
    for name in SOURCES {
        let (source, object) =
            (Path::new(DIRECTORY).join(name).with_extension("c"), out.join(name).with_extension("o"));
        let mut compile = compiler.to_command();
        compile.args(["-std=gnu11", "-Wall", "-Wextra", "-fvisibility=hidden", "-fno-stack-protector"]);
        run(compile.args(["-U_FORTIFY_SOURCE", "-c"]).arg(source).arg("-o").arg(&object));
        link.arg(object);
    }
    run(&mut link);
}

fn run(command: &mut Command) {
    let is_done = command.status().is_ok_and(|status| status.success());
    assert!(is_done, "the agent for the JVM cannot be compiled: {command:?}");
}
