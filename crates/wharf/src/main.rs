//! One runtime for agent sessions.
//!
//! The entry is the C library's own: what Rust's runtime sets up before `main` would be a tenth of a short command.

#![no_main]
#![expect(unsafe_code, reason = "the entry of a program is C's")]

mod entry;

use std::ffi::{c_char, c_int};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// As Rust's own runtime has it for a program that panicked.
const PANICKED: u8 = 101;

#[unsafe(no_mangle)]
extern "C" fn main(count: c_int, words: *const *const c_char) -> c_int {
    entry::prepare();
    // SAFETY: this is what the C library gives to a program.
    let argv = unsafe { entry::arguments(count, words) };
    let run = || wharf_cli::main(&argv, |home| wharf_server::run(&home));
    let code = catch_unwind(AssertUnwindSafe(run)).unwrap_or(PANICKED);
    // Whoever was to read it may be gone, and then it does not matter.
    let _ = std::io::stdout().flush();
    code.into()
}
