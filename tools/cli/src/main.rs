//! The `onetrip` program.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: onetrip_command::CountingAllocator<mimalloc::MiMalloc> =
    onetrip_command::CountingAllocator(mimalloc::MiMalloc);

fn main() -> ExitCode {
    ExitCode::from(onetrip_command::main(std::env::args_os()))
}
