//! Reports containers that somebody pauses or lets go on, from the event streams of engines.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use bollard::query_parameters::EventsOptionsBuilder;
use futures_util::StreamExt;
use tokio::sync::{broadcast, watch};
use wharf_backend::{Frozen, Result};

use crate::containers::Containers;
use crate::engine::Engine;
use crate::engine::endpoint::Endpoint;
use crate::engine::inspect::ListedState;
use crate::owner::Owner;

/// How many events may be queued for a slow receiver, which is told when there were more.
const MAX_QUEUED_EVENTS: usize = 256;
/// The first and the longest wait before an engine's events are asked for again.
const RETRY_BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// The channel for pause events, and the engines that are watched.
pub(crate) struct PauseEvents {
    sender: broadcast::Sender<Frozen>,
    subscriptions: Mutex<HashMap<String, Weak<Subscription>>>,
}

/// Keeps an engine watched while it exists.
pub(crate) struct Subscription {
    _open: watch::Sender<()>,
}

impl PauseEvents {
    pub(crate) fn new() -> Self {
        Self { sender: broadcast::Sender::new(MAX_QUEUED_EVENTS), subscriptions: Mutex::default() }
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Frozen> {
        self.sender.subscribe()
    }

    /// Watches an engine while anybody keeps the returned subscription; each running session keeps one.
    pub(crate) fn watch(&self, containers: &Arc<Containers>, endpoint: Endpoint) -> Arc<Subscription> {
        let mut subscriptions = self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(subscription) = subscriptions.get(&endpoint.address).and_then(Weak::upgrade) {
            return subscription;
        }
        subscriptions.retain(|_, subscription| subscription.strong_count() > 0);
        let (open, mut closed) = watch::channel(());
        let subscription = Arc::new(Subscription { _open: open });
        subscriptions.insert(endpoint.address.clone(), Arc::downgrade(&subscription));
        let tasks = &containers.tasks;
        let (containers, sender) = (Arc::downgrade(containers), self.sender.clone());
        tasks.spawn(async move {
            tokio::select! {
                // The last subscription was dropped.
                _ = closed.changed() => {}
                () = watch_with_retries(&containers, &endpoint, &sender) => {}
            }
        });
        subscription
    }
}

/// Reconnects to the engine's events until the backend is dropped.
async fn watch_with_retries(
    containers: &Weak<Containers>,
    endpoint: &Endpoint,
    sender: &broadcast::Sender<Frozen>,
) {
    let mut wait = RETRY_BACKOFF.0;
    loop {
        let Some(here) = containers.upgrade() else { return };
        let reached =
            async { Ok::<_, wharf_model::Failure>((here.engine_at(endpoint).await?, here.owner()?.clone())) };
        let reached = reached.await;
        drop(here);
        match reached {
            Ok((engine, owner)) => {
                wait = RETRY_BACKOFF.0;
                if let Err(failure) = forward(&engine, &owner, sender).await {
                    tracing::debug!(%failure, "an engine is not heard any more");
                }
            }
            Err(failure) => tracing::debug!(%failure, "an engine is not heard"),
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(RETRY_BACKOFF.1);
    }
}

/// Reports the state of all containers, and then each change, until the event stream ends.
async fn forward(engine: &Engine, owner: &Owner, sender: &broadcast::Sender<Frozen>) -> Result<()> {
    // Subscribe from before the list: an event between the two is reported twice, but in order.
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    for container in engine.containers(&owner.selector()).await? {
        if let Some(session) = owner.session(container.labels()) {
            let _ = sender.send(Frozen { session, still: container.state == ListedState::Paused });
        }
    }
    let filters = HashMap::from([("type", vec!["container".to_owned()]), ("label", vec![owner.selector()])]);
    let options = EventsOptionsBuilder::default().since(&since.to_string()).filters(&filters).build();
    let (docker, allowance) = engine.stream()?;
    let mut events = docker.events(Some(options)).boxed();
    while let Some(event) = events.next().await {
        allowance.renew();
        let event = event.map_err(|error| engine.failure("events", &error))?;
        let still = match event.action.as_deref() {
            Some("pause") => true,
            Some("unpause") => false,
            _ => continue,
        };
        let labels = event.actor.and_then(|actor| actor.attributes).unwrap_or_default();
        if let Some(session) = owner.session(&labels) {
            let _ = sender.send(Frozen { session, still });
        }
    }
    Ok(())
}
