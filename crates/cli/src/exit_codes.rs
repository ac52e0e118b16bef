//! Lists the exit codes of `wharf` and what each means.

/// What each exit code of `wharf` means. The manual and `docs/exit-codes.md` show this table.
pub const EXIT_CODES: &[(&str, &str)] = &[
    ("0", "it worked"),
    ("1", "a check failed (doctor)"),
    ("2", "the command line, a name or the configuration is wrong (invalid, invalid_name)"),
    ("3", "no such session, or no daemon runs (not_found)"),
    (
        "4",
        "the session is in the wrong state, or the name is taken (name_taken, ended, running, not_started)",
    ),
    ("5", "not allowed (forbidden)"),
    ("6", "this backend or host cannot do that (unsupported, limit_refused)"),
    ("7", "a daemon, session or backend cannot be reached (unavailable, unreachable, locked)"),
    ("8", "something is full or left over (busy, exhausted, disk_full, survivors)"),
    ("9", "the agent asks a question, or asks none (asking, not_asking)"),
    ("10", "the message was refused: it would not arrive as what it is (refused)"),
    ("11", "it was typed, and there is no proof that it was taken (unconfirmed)"),
    ("12", "the message was not typed in time, and will not be (expired)"),
    ("13", "the message was taken back (cancelled)"),
    ("124", "it took longer than was allowed (timeout)"),
    ("125", "the session could not be started, or a fault of wharf (no_directory, too_long, internal)"),
    ("126", "the command is not executable (not_executable)"),
    ("127", "the command, or one it requires, was not found (command_not_found, missing_requirement)"),
    ("128+N", "the command was ended by signal N (wait, exec, run --attach, attach)"),
];

#[cfg(test)]
mod tests {
    use wharf_model::Code;

    use super::*;

    #[test]
    fn every_code_stands_in_the_table_under_its_number() {
        for code in Code::ALL {
            let number = code.exit_code().to_string();
            let row = EXIT_CODES.iter().find(|(n, _)| *n == number);
            let (_, meaning) = row.unwrap_or_else(|| panic!("{number} is not in the table"));
            assert!(meaning.contains(code.as_str()), "{code} is not told under {number}");
        }
    }
}
