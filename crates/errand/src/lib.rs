//! What `wharf-holder` does where it holds nothing.
//!
//! - [`guest`] is the command of a session that is somebody else's container: it passes output and input through, and ends
//!   with that container's code.
//! - [`hook`] tells the daemon what an agent says of itself, from inside a container that has no other program of ours.
//!
//! Both are blocking and small: they are part of a program that runs in any image.

pub mod guest;
pub mod hook;

use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the errand that a word names; none where it names none.
pub fn main(word: &OsString, arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    match word.to_str()? {
        guest::STEP => Some(guest::main(arguments)),
        hook::STEP => Some(hook::main(arguments)),
        _ => None,
    }
}
