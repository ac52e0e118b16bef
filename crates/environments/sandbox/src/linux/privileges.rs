//! What a superuser gives up before the command runs. Of anybody else there is nothing to take.

use rustix::thread::{CapabilitySet, CapabilitySets, remove_capability_from_bounding_set, set_capabilities};
use wharf_model::{Code, Failure};

use crate::Result;

/// What concerns only files and processes that the rules let it touch anyway.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// Gives up every privilege but those.
pub(super) fn drop_all() -> Result<()> {
    let cannot = |error: rustix::io::Errno| {
        Failure::new(Code::Unsupported, format!("privileges cannot be given up here: {error}"))
    };
    let has = rustix::thread::capabilities(None).map_err(cannot)?;
    if has.permitted.is_empty() {
        return Ok(());
    }
    if has.effective.contains(CapabilitySet::SETPCAP) {
        for capability in CapabilitySet::all().iter().filter(|capability| !KEPT.contains(*capability)) {
            match remove_capability_from_bounding_set(capability) {
                // One that this kernel does not have.
                Ok(()) | Err(rustix::io::Errno::INVAL) => {}
                Err(error) => return Err(cannot(error)),
            }
        }
    }
    let kept = |set: CapabilitySet| set & KEPT;
    let sets = CapabilitySets {
        effective: kept(has.effective),
        permitted: kept(has.permitted),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets).map_err(cannot)
}
