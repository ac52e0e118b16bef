//! What the command line takes from the user's configuration file.

use wharf_api::ConfigFile;
use wharf_model::{Failure, Home};

use crate::output;

/// The keys that the command line goes by.
#[derive(Debug)]
pub(crate) struct Config {
    /// The keys that leave an attached session.
    pub(crate) detach_keys: Option<String>,
    /// The backend of sessions that name none.
    pub(crate) backend: Option<String>,
}

/// Reads the file. Keys that mean nothing are told and passed over.
pub(crate) fn load(home: &Home) -> Result<Config, Failure> {
    let file = ConfigFile::load(home)?;
    for key in file.unknown {
        output::note(format!("warning: {}: {key:?} means nothing here", home.config_file().display()));
    }
    // The daemon's to go by; what is wrong with it is told here too, before anything is asked.
    file.names?;
    Ok(Config { detach_keys: file.detach_keys?, backend: file.backend? })
}

/// The backend of sessions that name none, where the user has chosen one: by a variable, or by the file.
pub(crate) fn backend(home: &Home) -> Result<Option<String>, Failure> {
    match std::env::var("WHARF_BACKEND").ok().filter(|name| !name.is_empty()) {
        None => Ok(load(home)?.backend),
        named => Ok(named),
    }
}
