//! Terminal sequences: one scanner for output in any pieces, and one table of the questions to a terminal. It does no I/O.
//!
//! Three read a session's output, and each needs the same things of the scanner: whole sequences however the output is
//! cut, bounded memory whatever a program sends, and what is unfinished on request. Beyond that:
//!
//! | who | reads by | because |
//! |---|---|---|
//! | the screen model | [`ScanRules::MODEL`] | It acts as one terminal, ours: an escape ends a string at once, a control of the upper half is no control, `ESC k` sets the title. It wants text in long runs, the place of each sequence in the output for its signals, and its unfinished sequence in a checkpoint. |
//! | the watch over sessions that nobody attends ([`Queries`]) | [`ScanRules::MODEL`] | It must find the questions that the screen model answers, and no others. |
//! | the command line's filters (old output shown again, text alone, modes left on) | [`ScanRules::ANY_TERMINAL`] | They write to a terminal that they do not know: what any terminal takes for a control is one, a string without its end is dropped, and what passes comes out byte for byte as it came. Pictures pass while they arrive, because they are too long to be held. |
//!
//! The two sets of rules differ in what they make of odd input, and in their limits, and nowhere else.
//!
//! ```
//! use wharf_sequences::{Csi, TerminalQuestion, Queries, csi_question};
//!
//! let mut queries = Queries::new();
//! assert!(!queries.scan(b"some text \x1b["));
//! assert!(queries.scan(b"6n"), "where is the cursor?");
//! assert_eq!(Csi::parse(b"6n").and_then(|csi| csi_question(&csi)), Some(TerminalQuestion::Answered));
//! ```

mod csi;
mod queries;
mod question;
mod rules;
mod scanner;

pub use csi::Csi;
pub use queries::Queries;
pub use question::{
    TerminalQuestion, control_question, csi_question, dcs_question, escape_question, osc_question,
};
pub use rules::ScanRules;
pub use scanner::{End, Osc, Scanner, Sink};
