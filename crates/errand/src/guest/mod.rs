//! The command of a session that is somebody else's container.
//!
//! - `talk` is what is asked of the engine, over its socket and without deadlines of its own: it waits for as long as the
//!   container takes.
//! - `streams` takes output apart, and joins what was printed before with what is printed now.
//! - `line` carries input, through as many connections as it takes.
//! - `pass` is the errand: output, input, and the end.

mod line;
mod pass;
mod streams;
mod talk;

use std::ffi::OsString;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use wharf_model::Text;

/// The word that makes `wharf-holder` this errand.
pub const STEP: &str = "guest";

/// The code of an errand whose container went, and nobody saw how.
const UNSEEN_END_CODE: u8 = 255;

/// A container to pass through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guest {
    /// The engine's socket.
    pub socket: Text,
    /// The container, by the engine's own id of it.
    pub container: String,
    /// Whether it has a terminal: then its output is one stream, and so is ours.
    pub tty: bool,
    /// Whether it reads what is typed.
    pub input: bool,
    /// Whether it is watched by its log alone. An engine may end the input of what it lets go of.
    #[serde(default)]
    pub by_log: bool,
    /// Which of what it printed before is wanted.
    pub past: Past,
}

/// How much of what a container printed before is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Past {
    /// All that the engine has.
    All,
    /// What it printed since, in seconds with a fraction.
    Since(String),
    /// Nothing.
    None,
}

impl Guest {
    /// What `wharf-holder` is called with.
    pub fn words(&self) -> serde_json::Result<[Text; 2]> {
        Ok([STEP.into(), serde_json::to_string(self)?.into()])
    }
}

/// Passes a container through until it has ended, and ends with its code.
pub(crate) fn main(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let guest = arguments.next().and_then(|text| serde_json::from_slice(text.as_encoded_bytes()).ok());
    let Some(guest) = guest else {
        eprintln!("wharf-holder: no container to pass through");
        return ExitCode::from(2);
    };
    match pass::run(&guest) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("wharf-holder: cannot pass container {} through: {error}", guest.container);
            ExitCode::from(UNSEEN_END_CODE)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_in_two_words() {
        let guest = Guest {
            socket: "/run/a b.sock".into(),
            container: "c0ffee".to_owned(),
            tty: true,
            input: false,
            by_log: true,
            past: Past::Since("12.5".to_owned()),
        };
        let [step, text] = guest.words().unwrap();
        assert_eq!(step, STEP.into());
        assert_eq!(serde_json::from_slice::<Guest>(text.as_bytes()).unwrap(), guest);
    }
}
