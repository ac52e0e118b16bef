//! The suite that every backend runs, with every session in a container that others share.

mod support;

use wharf_container::Flavour;

wharf_backend::conformance_suite!(async || support::shared(Flavour::Docker).await);
