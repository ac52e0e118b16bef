//! The suite, on Docker by a port: nothing is shared with where it runs.

mod support;

use wharf_container::Flavour;

wharf_backend::conformance_suite!(async || support::remote_subject(Flavour::Docker).await);
