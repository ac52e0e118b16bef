//! What stands on a session's screen.

use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use wharf_model::{Code, Failure, Format, Offset, ScreenChanges, Size, What};

use crate::Client;
use crate::client::{Answer, millis, within};
use crate::connection::{Ask, body};
use crate::query::Query;
use crate::target::of;

/// The header of `GET …/repaint` that says where in the log output goes on.
pub const OFFSET_HEADER: &str = "wharf-offset";

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
