//! Chooses the backend of the delivery tests, and runs each case on every backend.

use std::path::Path;
use std::sync::Arc;

use wharf_backend::Backend;
use wharf_container::{ContainerBackend, Flavour};
use wharf_local::LocalBackend;
use wharf_model::{Container, Home, Spec, Volume};
use wharf_tmux::TmuxBackend;

use crate::engine::{IMAGE, TestEngine};

/// Where the agents of a test run. What is promised of a message does not depend on it.
pub(crate) enum Ground {
    Local,
    Tmux,
    Containers(Flavour, TestEngine),
}

impl Ground {
    pub(crate) async fn containers(flavour: Flavour) -> Self {
        Self::Containers(flavour, TestEngine::get(flavour).await)
    }

    pub(crate) fn backend(&self, home: &Home) -> Arc<dyn Backend> {
        match self {
            Self::Local => Arc::new(LocalBackend::new(wharf_local::Options::new(home))),
            Self::Tmux => Arc::new(TmuxBackend::new(wharf_tmux::Options::new(home))),
            Self::Containers(flavour, engine) => {
                let options = wharf_container::Options::new(*flavour, home);
                let endpoint = Some(engine.endpoint());
                Arc::new(ContainerBackend::new(wharf_container::Options { endpoint, ..options }))
            }
        }
    }

    /// Gives a session what it needs here: in a container, its directory and the agent at their own paths.
    pub(crate) fn shape(&self, spec: &mut Spec, dir: &Path) {
        if let Self::Containers(..) = self {
            let seen =
                |path: &Path, read_only| Volume { source: path.into(), target: path.into(), read_only };
            let agent = Path::new(env!("CARGO_BIN_EXE_wharf-fake-agent"));
            let volumes = vec![seen(dir, false), seen(agent, true)];
            let container = Container { network: Some("none".into()), volumes, ..Container::of(IMAGE) };
            spec.container = Some(Box::new(container));
        }
    }
}

/// Makes a test of each case for each place.
macro_rules! everywhere {
    ($($case:ident)*) => {
        mod local {
            $( #[tokio::test] async fn $case() { super::$case(crate::place::Place::new(crate::ground::Ground::Local).await).await; } )*
        }
        mod tmux {
            $( #[tokio::test] async fn $case() { super::$case(crate::place::Place::new(crate::ground::Ground::Tmux).await).await; } )*
        }
        mod docker {
            $( #[tokio::test] async fn $case() {
                let ground = crate::ground::Ground::containers(wharf_container::Flavour::Docker).await;
                super::$case(crate::place::Place::new(ground).await).await;
            } )*
        }
        mod podman {
            $( #[tokio::test] async fn $case() {
                let ground = crate::ground::Ground::containers(wharf_container::Flavour::Podman).await;
                super::$case(crate::place::Place::new(ground).await).await;
            } )*
        }
    };
}

pub(crate) use everywhere;
