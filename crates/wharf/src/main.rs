//! One runtime for agent sessions.

use std::process::ExitCode;

fn main() -> ExitCode {
    wharf_cli::main(|home| wharf_server::run(&home))
}
