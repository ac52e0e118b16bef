//! Wharf's wire types and typed client: all that a face (command line, page, program) needs.

mod types;

pub use types::*;
