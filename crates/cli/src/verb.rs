//! Describes one verb of the command line: its word, help, arguments and function.

use clap::{ArgMatches, Command, FromArgMatches};
use wharf_model::Failure;

use crate::dispatch::Serve;
use crate::trouble::{Done, invalid};

/// One word that `wharf` understands.
pub(crate) struct Verb {
    /// The word.
    pub(crate) name: &'static str,
    /// What it does, in one line.
    pub(crate) about: &'static str,
    /// Adds its arguments to a command.
    pub(crate) args: fn(Command) -> Command,
    /// Does it.
    pub(crate) run: fn(&ArgMatches, Serve) -> Done,
}

impl Verb {
    /// Its command, for parsing and for help.
    pub(crate) fn command(&self) -> Command {
        // Its arguments have a description of their own, which is not for users.
        (self.args)(Command::new(self.name).bin_name(format!("wharf {}", self.name))).about(self.about)
    }
}

/// The arguments as their own type.
pub(crate) fn arguments<A: FromArgMatches>(matches: &ArgMatches) -> Result<A, Failure> {
    A::from_arg_matches(matches)
        .map_err(|error| invalid(error.render().to_string().trim_start_matches("error: ")))
}
