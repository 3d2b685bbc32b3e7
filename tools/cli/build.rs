//! Compiles the agent by which programs on the JVM tell their lines (`run --call-sites`).

use std::path::PathBuf;

fn main() {
    const SOURCE: &str = "src/call_sites/jvm.c";
    println!("cargo:rerun-if-changed={SOURCE}");
    let directory = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let (object, library) = (directory.join("jvm.o"), directory.join("jvm.so"));
    let compiler = cc::Build::new().opt_level(2).pic(true).get_compiler();
    // As edge/target does: in two steps, and without any library's name in it.
    let options = ["-fvisibility=hidden", "-fno-stack-protector", "-U_FORTIFY_SOURCE", "-c", SOURCE, "-o"];
    let compiled = compiler.to_command().args(options).arg(&object).status();
    assert!(compiled.is_ok_and(|status| status.success()), "{SOURCE} cannot be compiled");
    let mut link = compiler.to_command();
    let linked = link.args(["-shared", "-nostdlib", "-s", "-o"]).arg(&library).arg(&object).status();
    assert!(linked.is_ok_and(|status| status.success()), "{SOURCE} cannot be linked");
}
