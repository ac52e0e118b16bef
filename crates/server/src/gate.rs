//! Checks every request's peer, host and origin before any route sees it.

use std::convert::Infallible;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use wharf_api::linux::Peer;
use wharf_model::{Code, Failure};

use crate::rights::Rights;

/// The one way in: every listener serves a gate, and only what passes it reaches a route.
///
/// It refuses by default. A request must come from the daemon's own user, name exactly one host that means
/// this daemon, and have no origin: a browser, which sends one, has no business at a Unix socket.
#[derive(Clone)]
pub(crate) struct Gate {
    routes: TowerToHyperService<Router>,
}

/// What a request may call this daemon. A name that a page could make a browser send is none of them.
const HOSTS: &[&str] = &["wharf", "localhost"];

impl Gate {
    pub(crate) fn new(routes: Router) -> Self {
        Self { routes: TowerToHyperService::new(routes) }
    }

    /// Answers one request from a peer.
    pub(crate) async fn answer(
        self,
        peer: Peer,
        rights: Rights,
        mut request: Request<Incoming>,
    ) -> Result<Response<Body>, Infallible> {
        if let Err(failure) = admit(peer, request.headers()) {
            tracing::warn!(pid = peer.pid, uid = peer.uid, "refused: {failure}");
            return Ok(crate::refusal::Refusal::from(failure).into_response());
        }
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(rights);
        self.routes.call(request).await
    }
}

fn admit(peer: Peer, headers: &HeaderMap) -> Result<(), Failure> {
    let forbidden = |message: String| Failure::new(Code::Forbidden, message);
    if !peer.is_us() {
        return Err(forbidden(format!("user {} may not use this daemon", peer.uid))
            .hint("each user has a daemon of their own: HOME and XDG_STATE_HOME decide which"));
    }
    if headers.contains_key(header::ORIGIN) {
        return Err(forbidden("requests with an Origin header are refused".into())
            .hint("this socket is not for browsers"));
    }
    let mut hosts = headers.get_all(header::HOST).iter();
    let known = |host: &[u8]| HOSTS.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(host));
    match (hosts.next(), hosts.next()) {
        (Some(host), None) if known(host.as_bytes()) => Ok(()),
        (None, _) => Err(forbidden("a Host header is missing".into()).hint("send `Host: wharf`")),
        _ => {
            Err(forbidden("the Host header does not name this daemon".into())
                .hint("send `Host: wharf`, once"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us() -> Peer {
        Peer { pid: 1, uid: rustix::process::geteuid().as_raw() }
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn one_known_host_and_no_origin_is_let_in() {
        for host in ["wharf", "localhost", "LocalHost"] {
            assert_eq!(admit(us(), &headers(&[("host", host)])), Ok(()));
        }
    }

    #[test]
    fn everything_else_is_refused() {
        let cases: &[&[(&str, &str)]] = &[
            &[],
            &[("host", "evil.example")],
            &[("host", "127.0.0.1")],
            &[("host", "localhost.")],
            &[("host", "localhost:80")],
            &[("host", "localhost.evil.example")],
            &[("host", "wharf"), ("host", "wharf")],
            &[("host", "wharf"), ("host", "evil.example")],
            &[("host", "wharf"), ("origin", "null")],
            &[("host", "wharf"), ("origin", "http://localhost")],
            &[("host", "wharf"), ("origin", "")],
        ];
        for case in cases {
            let failure = admit(us(), &headers(case)).expect_err(&format!("{case:?} was let in"));
            assert_eq!(failure.code, Code::Forbidden);
            assert!(failure.hint.is_some());
        }
        let stranger = Peer { uid: us().uid + 1, ..us() };
        assert_eq!(admit(stranger, &headers(&[("host", "wharf")])).unwrap_err().code, Code::Forbidden);
    }
}
