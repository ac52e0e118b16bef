//! The step itself: it gives up rights, then becomes the command.

mod calls;
mod descriptors;
mod files;
mod held;
mod mounts;
mod namespace;
mod network;
mod own_devices;
mod privileges;
mod step;
mod view;

pub use step::main;
