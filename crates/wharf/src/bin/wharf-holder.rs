//! The holder's own program: small and static, so that it runs on any host and in any image.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let word = arguments.next().unwrap_or_default();
    #[cfg(feature = "sandbox")]
    if word == wharf_sandbox::STEP {
        return wharf_sandbox::main(arguments);
    }
    wharf_errand::main(&word, arguments).unwrap_or_else(wharf_holder::main)
}
