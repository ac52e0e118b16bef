//! `wharf-fake-agent MODE [--log FILE] [--work MS] [--delay MS] [--flood BYTES]`: see `wharf_testing::fake`.

use std::process::ExitCode;

fn main() -> ExitCode {
    match wharf_testing::fake::run(std::env::args().skip(1)) {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            eprintln!("wharf-fake-agent: {message}");
            ExitCode::from(2)
        }
    }
}
