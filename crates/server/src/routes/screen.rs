//! Routes: captures of the screen, its changes, and its repaint.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use serde::Deserialize;
use tokio::time::Instant;
use wharf_api::{OFFSET_HEADER, ScreenChanges};
use wharf_engine::{Format, What};
use wharf_model::{Code, Failure, Size};

use crate::app::App;
use crate::input;
use crate::refusal::{Answer, Refusal};

/// How long a change is waited for at most.
const MAX_CHANGE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a screen may take to have its terminal's size, and how often it is looked.
const RESIZE_TIMEOUT: Duration = Duration::from_millis(250);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

#[derive(Deserialize)]
pub(super) struct Capture {
    what: Option<String>,
    lines: Option<usize>,
    format: Option<String>,
}

pub(super) async fn capture(
    State(app): State<Arc<App>>,
    input::Key(key): input::Key,
    input::Query(query): input::Query<Capture>,
) -> Answer<impl IntoResponse> {
    let what = match (query.what.as_deref(), query.lines) {
        (Some("all"), None) => What::All,
        (Some("last") | None, Some(lines)) => What::Last(lines),
        (Some("screen") | None, None) => What::Screen,
        _ => return Err(Refusal::invalid("what is captured is screen, all, or last with lines")),
    };
    let (format, media_type) = match query.format.as_deref() {
        None | Some("plain") => (Format::Plain, "text/plain; charset=utf-8"),
        Some("ansi") => (Format::Ansi, "text/plain; charset=utf-8"),
        Some("html") => (Format::Html, "text/html; charset=utf-8"),
        Some("json") => (Format::Json, "application/json"),
        Some(_) => return Err(Refusal::invalid("the format is plain, ansi, html or json")),
    };
    let text = app.engine.session(&key).await?.capture(what, format).await?;
    Ok(([(header::CONTENT_TYPE, media_type)], text))
}

#[derive(Deserialize)]
pub(super) struct Since {
    since: Option<String>,
    #[serde(default)]
    wait_ms: u64,
}

pub(super) async fn changes(
    State(app): State<Arc<App>>,
    input::Key(key): input::Key,
    input::Query(query): input::Query<Since>,
) -> Answer<Json<ScreenChanges>> {
    let since = query.since.as_deref().filter(|since| !since.is_empty());
    let session = app.engine.session(&key).await?;
    let changes = match since {
        Some(since) if query.wait_ms > 0 => {
            let wait = Duration::from_millis(query.wait_ms).min(MAX_CHANGE_TIMEOUT);
            app.work.meanwhile(session.screen_change(since, wait)).await??
        }
        since => session.screen_since(since).await?,
    };
    Ok(Json(changes))
}

/// The size that the reader's terminal has, where it matters.
#[derive(Deserialize)]
pub(super) struct Painting {
    cols: Option<u16>,
    rows: Option<u16>,
}

pub(super) async fn repaint(
    State(app): State<Arc<App>>,
    input::Key(key): input::Key,
    input::Query(painting): input::Query<Painting>,
) -> Answer<impl IntoResponse> {
    if let (Some(cols), Some(rows)) = (painting.cols, painting.rows) {
        resized(&app, &key, Size { cols, rows }).await?;
    }
    let (bytes, offset) = app.engine.session(&key).await?.repaint().await?;
    let headers = [
        (header::CONTENT_TYPE.as_str(), "application/octet-stream".to_owned()),
        (OFFSET_HEADER, offset.to_string()),
    ];
    Ok((headers, bytes))
}

/// Waits until a screen has this size: it hears of a change of size a moment after the terminal itself.
async fn resized(app: &App, key: &str, size: Size) -> Result<(), Failure> {
    let (session, until) = (app.engine.session(key).await?, Instant::now() + RESIZE_TIMEOUT);
    while session.screen_since(None).await?.size != size {
        if Instant::now() > until {
            return Err(Failure::new(Code::Busy, format!("the screen of {key:?} has another size")));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}
