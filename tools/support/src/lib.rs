//! What the tools of this repository share: instances of Wharf and container engines of a run's own, processes, and flags.

pub mod container_engine;
pub mod flags;
pub mod instance;
pub mod process;
pub mod step;
