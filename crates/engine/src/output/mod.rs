//! A session's output: read from its log, followed while it runs, copied to a file.

pub(crate) mod copy_to_file;
pub(crate) mod read;
