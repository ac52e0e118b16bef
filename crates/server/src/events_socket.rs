//! The events socket for a program that embeds the engine without the daemon.

use std::time::Duration;

use wharf_engine::Engine;
use wharf_holder::linux::origin;
use wharf_model::Failure;

use crate::listener::Listener;
use crate::rights::Callers;
use crate::sidecar;
use crate::work::Work;

/// How long those who are being served have to end by themselves.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Serves the socket that `WHARF_EVENTS` names in the sessions of an engine, with the limits that the daemon has, until it is
/// closed or dropped. The engine's lock keeps any other from the same place.
pub struct EventsSocket {
    engine: Engine,
    work: Work,
}

impl EventsSocket {
    /// Listens, and serves on the runtime that this is called in.
    pub fn open(engine: &Engine) -> Result<Self, Failure> {
        let listener = Listener::bind(&engine.home().events_socket(), engine.clone())?;
        origin::keep_reserve();
        let work = Work::new();
        let callers = Callers::new(engine.clone());
        work.spawn(sidecar::serve(listener, engine.clone(), callers, work.clone()));
        engine.set_events_served(true);
        Ok(Self { engine: engine.clone(), work })
    }

    /// Ends it, and returns once nobody is served any more. Before the engine is closed.
    pub async fn close(self) {
        self.work.stop();
        self.work.done(CLOSE_TIMEOUT).await;
        self.work.abandon().await;
    }
}

impl Drop for EventsSocket {
    fn drop(&mut self) {
        self.engine.set_events_served(false);
        self.work.stop();
    }
}
