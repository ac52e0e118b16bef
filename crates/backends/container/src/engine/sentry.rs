//! Hears from engines of containers that somebody made stand still, or go on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use bollard::query_parameters::EventsOptionsBuilder;
use futures_util::StreamExt;
use tokio::sync::{broadcast, watch};
use wharf_backend::{Frozen, Result};

use crate::engine::Engine;
use crate::engine::endpoint::Endpoint;
use crate::owner::Owner;
use crate::place::Place;

/// How much may wait for a slow listener, who is told when it was more.
const MAX_QUEUED_EVENTS: usize = 256;
/// The first and the longest wait before an engine is listened to again.
const RETRY_BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// What is heard of, and from which engines.
pub(crate) struct Sentry {
    heard: broadcast::Sender<Frozen>,
    posts: Mutex<HashMap<String, Weak<Post>>>,
}

/// Keeps an engine listened to.
pub(crate) struct Post {
    _open: watch::Sender<()>,
}

impl Sentry {
    pub(crate) fn new() -> Self {
        Self { heard: broadcast::Sender::new(MAX_QUEUED_EVENTS), posts: Mutex::default() }
    }

    pub(crate) fn news(&self) -> broadcast::Receiver<Frozen> {
        self.heard.subscribe()
    }

    /// Listens to an engine for as long as somebody keeps what this gives: sessions that live do.
    pub(crate) fn listen(&self, place: &Arc<Place>, endpoint: Endpoint) -> Arc<Post> {
        let mut posts = self.posts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(post) = posts.get(&endpoint.address).and_then(Weak::upgrade) {
            return post;
        }
        posts.retain(|_, post| post.strong_count() > 0);
        let (open, mut closed) = watch::channel(());
        let post = Arc::new(Post { _open: open });
        posts.insert(endpoint.address.clone(), Arc::downgrade(&post));
        let (place, heard) = (Arc::downgrade(place), self.heard.clone());
        tokio::spawn(async move {
            tokio::select! {
                // The post is given up.
                _ = closed.changed() => {}
                () = hear(&place, &endpoint, &heard) => {}
            }
        });
        post
    }
}

/// Listens again and again. It ends with the backend.
async fn hear(place: &Weak<Place>, endpoint: &Endpoint, heard: &broadcast::Sender<Frozen>) {
    let mut wait = RETRY_BACKOFF.0;
    loop {
        let Some(here) = place.upgrade() else { return };
        let reached =
            async { Ok::<_, wharf_model::Failure>((here.engine_at(endpoint).await?, here.owner()?.clone())) };
        let reached = reached.await;
        drop(here);
        match reached {
            Ok((engine, owner)) => {
                wait = RETRY_BACKOFF.0;
                if let Err(failure) = follow(&engine, &owner, heard).await {
                    tracing::debug!(%failure, "an engine is not heard any more");
                }
            }
            Err(failure) => tracing::debug!(%failure, "an engine is not heard"),
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(RETRY_BACKOFF.1);
    }
}

/// Tells how everything is now, and then what changes, until the engine falls silent.
async fn follow(engine: &Engine, owner: &Owner, heard: &broadcast::Sender<Frozen>) -> Result<()> {
    // From before the look on: what happens between the two is told twice, and in the right order.
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    for container in engine.containers(&owner.selector()).await? {
        if let Some(session) = owner.session(&container.labels) {
            let _ = heard.send(Frozen { session, still: container.state == "paused" });
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
            let _ = heard.send(Frozen { session, still });
        }
    }
    Ok(())
}
