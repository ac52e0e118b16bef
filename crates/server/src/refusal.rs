//! Turns a failure into an HTTP answer with a problem document.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use wharf_api::Problem;
use wharf_model::{Code, Failure};

/// Why a request is not carried out; it becomes problem+json.
#[derive(Debug)]
pub(crate) struct Refusal {
    failure: Failure,
    status: u16,
}

/// What a route answers.
pub(crate) type Answer<T> = Result<T, Refusal>;

impl Refusal {
    /// A refusal for which HTTP has a more exact status than the code has.
    pub(crate) fn with_status(status: StatusCode, failure: Failure) -> Self {
        Self { failure, status: status.as_u16() }
    }

    /// The same, said of something that was done in part: so many bytes of it went in before.
    pub(crate) fn after(mut self, done: usize) -> Self {
        if done > 0 {
            self.failure.message = format!("{} ({done} bytes had been written before)", self.failure.message);
        }
        self
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Failure::new(Code::Invalid, message).into()
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self { status: failure.code.status(), failure }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut problem = Problem::from(self.failure);
        problem.status = self.status;
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        (status, [(header::CONTENT_TYPE, Problem::MEDIA_TYPE)], body).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_status() {
        for &code in Code::ALL {
            let response = Refusal::from(Failure::new(code, "x")).into_response();
            assert_eq!(response.status().as_u16(), code.status());
            assert_eq!(response.headers()[header::CONTENT_TYPE], Problem::MEDIA_TYPE);
        }
    }
}
