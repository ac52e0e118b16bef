//! What a superuser gives up before the command runs: every privilege, in every set. Of anybody else there is nothing to take.

use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities,
};
use wharf_model::{Code, Failure};

use crate::Result;

/// Gives up every privilege.
pub(super) fn drop_all() -> Result<()> {
    let cannot = |error: rustix::io::Errno| {
        Failure::new(Code::Unsupported, format!("privileges cannot be given up here: {error}"))
    };
    let has = rustix::thread::capabilities(None).map_err(cannot)?;
    if has.effective.contains(CapabilitySet::SETPCAP) {
        for capability in CapabilitySet::all().iter() {
            match remove_capability_from_bounding_set(capability) {
                // One that this kernel does not have.
                Ok(()) | Err(rustix::io::Errno::INVAL) => {}
                Err(error) => return Err(cannot(error)),
            }
        }
    }
    clear_ambient_capability_set().map_err(cannot)?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .map_err(cannot)
}
