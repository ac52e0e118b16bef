//! The suite that every backend runs, on a real Podman.

mod support;

use wharf_container::Flavour;

wharf_backend::conformance_suite!(async || support::subject(Flavour::Podman).await);
