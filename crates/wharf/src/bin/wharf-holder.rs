//! The holder's own program: small and static, so that it runs on any host and in any image.

use std::process::ExitCode;

fn main() -> ExitCode {
    wharf_holder::main()
}
