//! What differs between systems, behind the same names.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::{Watches, foreground, run_age, with_spread_dirs};

#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(not(target_os = "linux"))]
pub(crate) use other::{Watches, foreground, run_age, with_spread_dirs};
