//! `wharf-hostile [--once] ATTACK [WORDS]... [+ ATTACK [WORDS]...]...`: see `wharf_testing::hostile`.

use std::process::ExitCode;

fn main() -> ExitCode {
    match wharf_testing::hostile::run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("wharf-hostile: {message}");
            ExitCode::from(2)
        }
    }
}
