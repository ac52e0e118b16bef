//! How a test ends that cannot run on this machine.

use std::io::Write;

/// Ends a test that needs something which is not here: it passes, and says what was missing. With `CI` set it fails,
/// because there nothing is left out.
///
/// A test has no other way to end early from below its own function. It works where each test has a process of its own, as
/// under cargo-nextest and `cargo xtask test`; elsewhere the test fails with the same words.
pub fn left_out(why: &str) -> ! {
    let ci =
        std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false" && value != "0");
    assert!(!ci, "CI leaves nothing out: {why}");
    let alone = ["NEXTEST", "WHARF_TEST_ALONE"].iter().any(|name| std::env::var_os(name).is_some());
    assert!(alone, "{why} (`cargo xtask test` leaves such a test out)");
    eprintln!("left out: {why}");
    // For whoever counts them; without it the line above is all there is.
    if let Some(path) = std::env::var_os("WHARF_TEST_LEFT_OUT")
        && let Ok(mut file) = std::fs::File::options().create(true).append(true).open(path)
    {
        // In one write: many tests say it at once.
        let _ = file.write_all(format!("{why}\n").as_bytes());
    }
    std::process::exit(0)
}
