//! What routes take in, with limits.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;
use wharf_model::{Code, Failure, Name};

use crate::refusal::Refusal;
use crate::rights::Rights;
use crate::room::{Room, has_too_many_values};
use crate::route_rights::Checked;

/// The largest JSON request: a spec with an environment as large as the kernel takes, escaped, and a prompt.
pub(crate) const MAX_JSON_LEN: usize = 32 << 20;
/// How long a client may take to send what it has announced.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// A JSON body, and the room that it has until the request is answered. The media type must say so: a form of a page cannot.
pub(crate) struct Json<T>(
    pub(crate) T,
    #[expect(dead_code, reason = "held until the request is answered, and not looked at")] pub(crate) Room,
);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &S) -> Result<Self, Refusal> {
        let media_type =
            request.headers().get(header::CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
        let essence = media_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        if !essence.eq_ignore_ascii_case(b"application/json") {
            let failure = Failure::new(Code::Invalid, "the request's media type is not application/json");
            return Err(Refusal::with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE, failure));
        }
        announced(request.headers(), MAX_JSON_LEN)?;
        // One that does not say how large it is may be as large as any.
        let known = length(request.headers()).map(|len| len as usize);
        let outside = request.extensions().get::<Rights>().is_some_and(Rights::are_all);
        let room = Room::take(known.unwrap_or(MAX_JSON_LEN), outside).await?;
        let mut pieces = Pieces::new(request.into_body(), MAX_JSON_LEN);
        let body = in_time(pieces.whole(known.unwrap_or_default())).await??;
        if has_too_many_values(&body) {
            return Err(Refusal::invalid("the request has too many values".to_owned()));
        }
        // The reader itself refuses what is nested more than 128 deep.
        serde_json::from_slice(&body)
            .map(|value| Self(value, room))
            .map_err(|error| Refusal::invalid(format!("cannot read the request: {error}")))
    }
}

/// The query of a request.
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let query = axum::extract::Query::<T>::try_from_uri(&parts.uri);
        query.map(|query| Self(query.0)).map_err(|error| Refusal::invalid(error.body_text().to_lowercase()))
    }
}

/// The name or id of a session, in the path of a request.
pub(crate) struct Key(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Key {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        if let Some(checked) = parts.extensions.get::<Checked>() {
            return Ok(Self(checked.0.as_str().to_owned()));
        }
        let path = axum::extract::Path::<String>::from_request_parts(parts, state).await;
        let key = path.map_err(|error| Refusal::invalid(error.body_text().to_lowercase()))?.0;
        // An id, and the beginning of one, is a legal name too.
        let name: Name = key.parse().map_err(Failure::from)?;
        Ok(Self(name.into()))
    }
}

/// Refuses a body that announces to be too large before any of it is read.
pub(crate) fn announced(headers: &HeaderMap, most: usize) -> Result<(), Refusal> {
    if length(headers).is_some_and(|length| length > most as u64) { Err(too_large(most)) } else { Ok(()) }
}

fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

pub(crate) fn too_large(most: usize) -> Refusal {
    let failure = Failure::new(Code::Invalid, format!("the request is larger than {most} bytes"))
        .hint("send it in parts");
    Refusal::with_status(StatusCode::PAYLOAD_TOO_LARGE, failure)
}

/// Reads a body piece by piece.
pub(crate) struct Pieces {
    body: Body,
    left: usize,
    most: usize,
}

impl Pieces {
    pub(crate) fn new(body: Body, most: usize) -> Self {
        Self { body, left: most, most }
    }

    /// All of it, in one piece that is made no larger than it is announced to be.
    async fn whole(&mut self, announced: usize) -> Result<Vec<u8>, Refusal> {
        let mut all = Vec::with_capacity(announced);
        loop {
            let piece = self.next(1).await?;
            if piece.is_empty() {
                return Ok(all);
            }
            all.extend_from_slice(&piece);
        }
    }

    /// The next bytes, at least `enough` of them unless the body ends before; none at its end.
    pub(crate) async fn next(&mut self, enough: usize) -> Result<Vec<u8>, Refusal> {
        use http_body_util::BodyExt as _;
        let mut piece = Vec::new();
        while piece.len() < enough {
            let Some(frame) = in_time(self.body.frame()).await? else { break };
            let Ok(bytes) = frame.map_err(|error| broke_off(&error))?.into_data() else { continue };
            self.left = self.left.checked_sub(bytes.len()).ok_or_else(|| too_large(self.most))?;
            piece.extend_from_slice(&bytes);
        }
        Ok(piece)
    }
}

async fn in_time<T>(work: impl Future<Output = T>) -> Result<T, Refusal> {
    tokio::time::timeout(BODY_TIMEOUT, work).await.map_err(|_| {
        let failure = Failure::new(Code::Timeout, "the request did not arrive in time");
        Refusal::with_status(StatusCode::REQUEST_TIMEOUT, failure)
    })
}

fn broke_off(error: &axum::Error) -> Refusal {
    Refusal::invalid(format!("the request broke off: {error}"))
}
