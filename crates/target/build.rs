//! Compiles the library that `run --redirect=preload` loads into programs.

use std::path::PathBuf;

fn main() {
    const SOURCE: &str = "preload/connect.c";
    println!("cargo:rerun-if-changed={SOURCE}");
    let library = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it")).join("connect.so");
    let compiler = cc::Build::new().opt_level(2).pic(true).get_compiler();
    // No library is named in it: its few symbols are every C library's.
    let compiled = compiler
        .to_command()
        .args([
            "-shared",
            "-nostdlib",
            "-fvisibility=hidden",
            "-fno-stack-protector",
            "-U_FORTIFY_SOURCE",
            "-s",
            "-o",
        ])
        .arg(&library)
        .arg(SOURCE)
        .status();
    assert!(compiled.is_ok_and(|status| status.success()), "{SOURCE} cannot be compiled");
}
