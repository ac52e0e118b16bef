//! Chooses the backend of a session: the one that its spec names, or else the first that can be used.

use std::sync::Arc;

use wharf_backend::Backend;
use wharf_model::{Code, Failure, Spec};

use crate::Result;
use crate::instance::shared::Shared;

/// The word for any backend that can be used, in the instance's own order.
const AUTO: &str = "auto";

impl Shared {
    /// The backend of a spec. One that asks for a container gets a container or an error, never something else. Where
    /// it was left open, the spec says afterwards why it is this one.
    pub(crate) async fn choose(&self, spec: &mut Spec) -> Result<String> {
        let flake = self.choose_flake(spec).await;
        let chosen = self.choose_place(spec).await?;
        let whys: Vec<String> = spec.chosen.take().into_iter().chain(flake).collect();
        spec.chosen = Some(whys.join("; ")).filter(|whys| !whys.is_empty());
        Ok(chosen)
    }

    /// Decides whether the flake that is there is used, where that was left open: it is where nix can be.
    async fn choose_flake(&self, spec: &mut Spec) -> Option<String> {
        let flake = spec.nix.as_ref().filter(|nix| nix.auto)?.flake.lossy().into_owned();
        let nix = self.environments.iter().find(|environment| environment.name() == "nix");
        let within = self.timeouts.call;
        let why = match nix {
            None => "this instance has no nix".to_owned(),
            Some(nix) => match tokio::time::timeout(within, nix.probe()).await {
                Ok(probe) if probe.available => {
                    return Some(format!("the flake {flake} is there, and nix can be used"));
                }
                Ok(probe) => format!("nix cannot be used: {}", probe.detail),
                Err(_) => format!("nix did not answer within {within:?}"),
            },
        };
        spec.nix = None;
        Some(format!("the flake {flake} is left out: {why}"))
    }

    async fn choose_place(&self, spec: &mut Spec) -> Result<String> {
        spec.chosen = None;
        let (name, why) = match spec.backend.as_deref() {
            None | Some(AUTO) if spec.container.is_some() => self.first_with_containers(spec).await?,
            Some(AUTO) => self.first_of_order(spec).await?,
            Some(named) => {
                let backend = self.backend(named)?;
                if spec.container.is_some() && !backend.capabilities().isolation {
                    return Err(Failure::unsupported("an image", format!("the backend {named}"))
                        .hint("`wharf backends` shows which keep a session from the host"));
                }
                return Ok(named.to_owned());
            }
            None => return Ok(self.default_backend.clone()),
        };
        spec.chosen = Some(why);
        Ok(name)
    }

    /// The first backend with containers that can be used now, in the order in which they are listed.
    async fn first_with_containers(&self, spec: &Spec) -> Result<(String, String)> {
        let has: Vec<&Arc<dyn Backend>> =
            self.backends.iter().filter(|backend| backend.capabilities().isolation).collect();
        if has.is_empty() {
            let message = "no container can be had: this instance has no backend with containers";
            return Err(Failure::new(Code::Unavailable, message));
        }
        self.first_of(&has, spec).await.map_err(|why| {
            Failure::new(Code::Unavailable, format!("no container can be had: {why}"))
                .hint("start an engine, or leave --image out to run on this host")
        })
    }

    /// The first backend of the instance's order that can be used now, and that has the kind of session asked for.
    async fn first_of_order(&self, spec: &Spec) -> Result<(String, String)> {
        let order = Some((self.auto)()?).filter(|order| !order.is_empty());
        let order = order.unwrap_or_else(|| vec![self.default_backend.clone()]);
        let mut named = Vec::new();
        for name in &order {
            let backend = self.backend(name).map_err(|failure| {
                failure.hint(format!(
                    "the order of `auto` is {}: see backends.auto in config.toml",
                    order.join(", ")
                ))
            })?;
            let can = backend.capabilities();
            // One with containers needs an image, and none was given.
            if !can.isolation && (if spec.tty { can.tty } else { can.pipes }) {
                named.push(backend);
            }
        }
        let none = |why: String| {
            Failure::new(Code::Unavailable, format!("no backend of {} can be used: {why}", order.join(", ")))
                .hint("`wharf backends` shows which can; backends.auto in config.toml has the order")
        };
        if named.is_empty() {
            return Err(none("none takes such a session without an image".to_owned()));
        }
        self.first_of(&named, spec).await.map_err(none)
    }

    /// The first of these that can be used, and why it is this one; or why it is none.
    async fn first_of(
        &self,
        backends: &[&Arc<dyn Backend>],
        spec: &Spec,
    ) -> std::result::Result<(String, String), String> {
        let within = self.timeouts.call;
        let order: Vec<&str> = backends.iter().map(|backend| backend.name()).collect();
        let mut passed = Vec::new();
        for backend in backends {
            let name = backend.name();
            match tokio::time::timeout(within, backend.probe_for(spec)).await {
                Ok(probe) if probe.available => {
                    passed.insert(0, format!("{name} is the first of {} that can be used", order.join(", ")));
                    return Ok((name.to_owned(), passed.join("; ")));
                }
                Ok(probe) => passed.push(format!("{name}: {}", probe.detail)),
                Err(_) => passed.push(format!("{name}: it did not answer within {within:?}")),
            }
        }
        Err(passed.join("; "))
    }
}
