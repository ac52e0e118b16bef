//! The step itself: it gives up rights, then becomes the command.

mod calls;
mod files;
mod namespace;
mod network;
mod privileges;
mod step;
mod view;

pub use step::main;
