//! Has environments rewrite a launch, and prepares them ahead of one.

use std::time::Duration;

use wharf_backend::{Launch, Progress};
use wharf_model::{Capabilities, Code, Failure, SessionId, Spec, Text, Ticket};

use crate::Result;
use crate::instance::engine::Engine;
use crate::instance::shared::{Shared, now};
use crate::launch::{backend_launch, validate};

impl Shared {
    /// Whether starting this takes an environment, which may take its time.
    pub(crate) fn needs_environment(&self, spec: &Spec) -> bool {
        self.environments.iter().any(|environment| environment.concerns(spec))
    }

    /// The launch in its environments.
    pub(crate) async fn apply_environments(&self, mut launch: Launch) -> Result<Launch> {
        let place = self.environment_place(&launch.spec)?;
        launch.spec.in_force.clear();
        if launch.spec.container.is_none() {
            let unmapped = launch.spec.unmapped.iter();
            launch.spec.in_force.extend(unmapped.map(|what| format!("{what}: nothing to map")));
        }
        launch.spec.mounts.clear();
        launch.spec.weakened.clear();
        launch.spec.enter.clear();
        for environment in &self.environments {
            if environment.concerns(&launch.spec) {
                let applied = environment.apply(launch, &place);
                launch = within(self.timeouts.environment, environment.name(), applied).await?;
            }
        }
        Ok(launch)
    }

    /// Has environments let go of what they kept for a session that goes.
    pub(crate) fn release_environments(&self, id: &SessionId, spec: &Spec) {
        for environment in self.environments.iter().filter(|environment| environment.concerns(spec)) {
            environment.release(id, spec);
        }
    }

    /// What the place of a spec can do; a failure where the spec asks for an environment that there is not.
    fn environment_place(&self, spec: &Spec) -> Result<Capabilities> {
        let asked = [("nix", spec.nix.is_some()), ("sandbox", spec.sandbox.is_some())];
        let has = |name: &str| self.environments.iter().any(|environment| environment.name() == name);
        if let Some((name, _)) = asked.into_iter().find(|(name, asked)| *asked && !has(name)) {
            return Err(Failure::unsupported(format!("the environment {name}"), "this instance"));
        }
        let backend = self.backend(spec.backend.as_deref().unwrap_or(&self.default_backend))?;
        Ok(backend.capabilities())
    }
}

impl Engine {
    /// Makes a spec's environments ready ahead of its start; says what is ready. Dropping the future ends what it began.
    pub async fn prepare(&self, mut spec: Spec, progress: &Progress) -> Result<Vec<String>> {
        let shared = &self.shared;
        validate::validate(&mut spec)?;
        spec.backend = Some(shared.choose(&mut spec).await?);
        let place = shared.environment_place(&spec)?;
        let (created, name) = (now(), "environment".parse()?);
        let (id, backend) = (shared.ids.next(created)?, spec.backend.clone().unwrap_or_default());
        let ticket = Ticket::new(id, created, name, backend, Text::default(), backend_launch::token()?, spec);
        let env = shared.variables(&ticket).await?;
        let home = shared.home.session(&ticket.id);
        let launch = backend_launch::of(ticket, home, env);
        let mut ready = Vec::new();
        for environment in &shared.environments {
            if environment.concerns(&launch.spec) {
                let prepared = environment.prepare(&launch, &place, progress);
                ready.extend(within(shared.timeouts.environment, environment.name(), prepared).await?);
            }
        }
        Ok(ready)
    }
}

async fn within<T>(patience: Duration, name: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::time::timeout(patience, work).await.unwrap_or_else(|_| {
        // Not `Timeout`: no backend was asked for anything yet, so nothing can have been started.
        Err(Failure::new(
            Code::Unavailable,
            format!("the environment {name} was not ready within {patience:?}"),
        )
        .hint("`wharf env prepare` makes it ready ahead of time, and shows what takes so long"))
    })
}
