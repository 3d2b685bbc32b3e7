//! Compiles the library that `run --redirect=preload` loads into programs.

use std::path::PathBuf;

fn main() {
    const SOURCE: &str = "preload/connect.c";
    println!("cargo:rerun-if-changed={SOURCE}");
    let directory = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let (object, library) = (directory.join("connect.o"), directory.join("connect.so"));
    let compiler = cc::Build::new().opt_level(2).pic(true).get_compiler();
    // In two steps: with -nostdlib, zig knows no headers of a C library's either.
    let options = ["-fvisibility=hidden", "-fno-stack-protector", "-U_FORTIFY_SOURCE", "-c", SOURCE, "-o"];
    let compiled = compiler.to_command().args(options).arg(&object).status();
    assert!(compiled.is_ok_and(|status| status.success()), "{SOURCE} cannot be compiled");
    // No library is named in it: its few symbols are every C library's.
    let mut link = compiler.to_command();
    let linked = link.args(["-shared", "-nostdlib", "-s", "-o"]).arg(&library).arg(&object).status();
    assert!(linked.is_ok_and(|status| status.success()), "{SOURCE} cannot be linked");
}
