//! What the kernel keeps a sandbox from.

mod files;
mod network;
mod others;
mod refusals;
mod state;
mod support;
mod terminals;
