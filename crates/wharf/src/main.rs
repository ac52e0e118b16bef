//! One runtime for agent sessions.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let argv: Vec<OsString> = std::env::args_os().collect();
    wharf_cli::main(&argv, |home| wharf_server::run(&home)).into()
}
