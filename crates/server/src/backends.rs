//! The places and environments of this build: each is a feature, and one that was left out says so to whoever asks for it.

use std::sync::Arc;

use wharf_backend::{Backend, Environment};
use wharf_model::Home;

#[cfg(not(all(feature = "tmux", feature = "docker", feature = "nix", feature = "sandbox")))]
use crate::left_out::LeftOut;

/// The places beside this host itself, for sessions with this limit of descriptors.
pub(crate) fn backends(home: &Home, descriptors: Option<u64>) -> Vec<Arc<dyn Backend>> {
    let mut all = vec![tmux(home, descriptors)];
    all.extend(engines(home));
    all
}

/// What may rewrite a launch, in this order.
pub(crate) fn environments(home: &Home) -> Vec<Arc<dyn Environment>> {
    let mut all = vec![nix(home), sandbox(home)];
    all.extend(images(home));
    all
}

#[cfg(feature = "tmux")]
fn tmux(home: &Home, descriptors: Option<u64>) -> Arc<dyn Backend> {
    let options = wharf_tmux::Options { descriptors, ..wharf_tmux::Options::new(home) };
    Arc::new(wharf_tmux::TmuxBackend::new(options))
}

#[cfg(not(feature = "tmux"))]
fn tmux(_: &Home, _: Option<u64>) -> Arc<dyn Backend> {
    Arc::new(LeftOut { name: "tmux", feature: "tmux" })
}

#[cfg(feature = "docker")]
fn engines(home: &Home) -> [Arc<dyn Backend>; 2] {
    use wharf_container::{ContainerBackend, Flavour, Options};
    [Flavour::Docker, Flavour::Podman].map(|flavour| {
        let options = Options::new(flavour, home);
        Arc::new(ContainerBackend::new(options)) as Arc<dyn Backend>
    })
}

#[cfg(not(feature = "docker"))]
fn engines(_: &Home) -> [Arc<dyn Backend>; 2] {
    // One crate has both.
    ["docker", "podman"].map(|name| Arc::new(LeftOut { name, feature: "docker" }) as Arc<dyn Backend>)
}

#[cfg(feature = "nix")]
fn nix(home: &Home) -> Arc<dyn Environment> {
    Arc::new(wharf_nix::NixEnvironment::new(home))
}

#[cfg(not(feature = "nix"))]
fn nix(_: &Home) -> Arc<dyn Environment> {
    Arc::new(LeftOut { name: "nix", feature: "nix" })
}

#[cfg(feature = "sandbox")]
fn sandbox(home: &Home) -> Arc<dyn Environment> {
    let guarded = wharf_sandbox::Guarded::of(home);
    Arc::new(wharf_sandbox::SandboxEnvironment::new(wharf_local::holder_program(), guarded))
}

#[cfg(not(feature = "sandbox"))]
fn sandbox(_: &Home) -> Arc<dyn Environment> {
    Arc::new(LeftOut { name: "sandbox", feature: "sandbox" })
}

/// Images are fetched and built ahead of a start.
#[cfg(feature = "docker")]
fn images(home: &Home) -> Vec<Arc<dyn Environment>> {
    vec![Arc::new(wharf_container::Images::new(home))]
}

#[cfg(not(feature = "docker"))]
fn images(_: &Home) -> Vec<Arc<dyn Environment>> {
    Vec::new()
}
