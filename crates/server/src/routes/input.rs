//! Routes: types bytes into a session, and closes its input.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use serde::Deserialize;
use tokio::time::Instant;
use wharf_api::MAX_WRITE_LEN;
use wharf_model::{Code, Failure};

use crate::app::App;
use crate::input::{Key, Pieces, Query, announced};
use crate::refusal::Answer;

/// What goes to the session at once. A shorter text is never mixed with what others type; a longer one is not
/// mixed with what others write by this route.
const CHUNK_LEN: usize = 1 << 20;
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
pub(super) struct Within {
    within_ms: Option<u64>,
}

pub(super) async fn write(
    State(app): State<Arc<App>>,
    Key(key): Key,
    Query(query): Query<Within>,
    request: Request,
) -> Answer<Json<()>> {
    announced(request.headers(), MAX_WRITE_LEN)?;
    let within = query.within_ms.map_or(WRITE_TIMEOUT, Duration::from_millis);
    let deadline = Instant::now() + within.min(Duration::from_secs(24 * 3600));
    let session = app.engine.find(&key).await?;
    let mut pieces = Pieces::new(request.into_body(), MAX_WRITE_LEN);
    let mut piece = pieces.next(CHUNK_LEN).await?;
    let writer = app.writer(&session.id);
    let _turn = tokio::time::timeout_at(deadline, writer.lock()).await.map_err(|_| {
        Failure::new(Code::Busy, format!("somebody else is writing to session \"{}\"", session.name))
            .hint("nothing of this was written: try again, or allow more time")
    })?;
    let mut done = 0;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let (length, engine, id) = (piece.len(), app.engine.clone(), session.id.clone());
        // Finished though the asker hangs up: half a piece would be worse than either.
        let written = app
            .work
            .carry_out(async move { Ok(engine.session(id.as_str()).await?.write(&piece, left).await?) });
        written.await.map_err(|refusal| refusal.after(done))?;
        done += length;
        piece = pieces.next(CHUNK_LEN).await.map_err(|refusal| refusal.after(done))?;
        if piece.is_empty() {
            return Ok(Json(()));
        }
    }
}

pub(super) async fn close(State(app): State<Arc<App>>, Key(key): Key) -> Answer<Json<()>> {
    Ok(Json(app.engine.session(&key).await?.close_input().await?))
}
