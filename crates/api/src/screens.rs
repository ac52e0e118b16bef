//! What stands on a session's screen.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use serde::{Deserialize, Serialize};
use wharf_model::{Code, Failure, Offset, Size};

use crate::Client;
use crate::client::{Answer, millis, within};
use crate::connection::{Ask, body};
use crate::query::Query;
use crate::target::of;

/// The header of `GET …/repaint` that says where in the log output goes on.
pub const OFFSET_HEADER: &str = "wharf-offset";

/// Which lines of a screen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum What {
    /// What is on it now.
    #[default]
    Screen,
    /// The last lines that have text, those that have scrolled away included.
    Last(usize),
    /// All, those that have scrolled away included.
    All,
}

/// In which form.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// Text.
    #[default]
    Plain,
    /// Text with the sequences that colour it.
    Ansi,
    /// A page.
    Html,
    /// Cells, for programs.
    Json,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Ansi => "ansi",
            Self::Html => "html",
            Self::Json => "json",
        })
    }
}

/// What has changed on a screen since a cursor. Rows, and not a dump: a program that looks often pays little.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenChanges {
    /// Ask with this the next time.
    pub cursor: String,
    /// The rows that are different now.
    #[serde(default)]
    pub rows: Vec<ScreenRow>,
    /// The lines that have scrolled away since, the oldest first.
    #[serde(default)]
    pub scrolled: Vec<String>,
    /// These are all rows: the cursor was none, or too old.
    #[serde(default)]
    pub whole: bool,
    /// The screen's size.
    #[serde(default)]
    pub size: Size,
    /// The window's title.
    #[serde(default)]
    pub title: String,
}

impl ScreenChanges {
    /// Whether nothing has changed.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.scrolled.is_empty() && !self.whole
    }
}

/// One row of a screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenRow {
    /// Its number, from 0 at the top.
    pub row: usize,
    /// Its text.
    pub text: String,
}

impl Client {
    /// A session's screen as text.
    pub async fn capture(&self, key: &str, what: What, format: Format) -> Answer<String> {
        let (what, lines) = match what {
            What::Screen => ("screen", None),
            What::All => ("all", None),
            What::Last(lines) => ("last", Some(lines)),
        };
        let query = Query::default().push("what", what).push_some("lines", lines);
        let target = query.push("format", format.to_string()).after(&of(key, "/screen")?);
        let text = self.ask(Method::GET, target, None, Bytes::new(), self.timeouts().answer).await?;
        String::from_utf8(text.into())
            .map_err(|_| Failure::new(Code::Internal, "the daemon's answer is no text"))
    }

    /// What has changed since a cursor; everything where there is none. Where nothing has, a change is waited for
    /// as long as `wait` says.
    pub async fn screen_changes(
        &self,
        key: &str,
        since: Option<&str>,
        wait: Duration,
    ) -> Answer<ScreenChanges> {
        let query = Query::default().push_some("since", since).push("wait_ms", millis(wait));
        self.get_within(query.after(&of(key, "/screen/changes")?), wait).await
    }

    /// The bytes that paint a session's screen on a terminal of this size, which must be the session's own, and where in
    /// its log output goes on after them.
    pub async fn repaint(&self, key: &str, size: Size, deadline: Duration) -> Answer<(Bytes, Offset)> {
        let query = Query::default().push("cols", size.cols.to_string()).push("rows", size.rows.to_string());
        let target = query.after(&of(key, "/repaint")?);
        let ask = Ask { method: Method::GET, target, media_type: None, body: Bytes::new() };
        within(deadline, async {
            let (connection, response) = self.exchange(ask).await?;
            let header = response.headers().get(OFFSET_HEADER).and_then(|value| value.to_str().ok());
            let offset = header.and_then(|text| text.parse().ok()).map(Offset);
            let bytes = body(response).await;
            self.keep(connection);
            let offset =
                offset.ok_or_else(|| Failure::new(Code::Internal, "the daemon does not say where it is"));
            Ok((bytes?, offset?))
        })
        .await
    }
}
