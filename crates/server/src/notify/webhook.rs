//! Posts a notification to a web server.

use std::collections::BTreeMap;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// A server that is told by a POST.
#[derive(Debug)]
pub(super) struct Webhook {
    host: String,
    port: u16,
    target: String,
    headers: HeaderMap,
}

impl Webhook {
    /// What is wrong is told without the address: its path and its user may be secrets.
    pub(super) fn new(url: &str, headers: &BTreeMap<String, String>) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|_| "its webhook is no address".to_owned())?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err("its webhook is https, which a command does: \
                            [\"curl\", \"-sS\", \"--json\", \"@-\", \"https://…\"]"
                    .to_owned());
            }
            _ => return Err("its webhook does not begin with http://".to_owned()),
        }
        let authority = uri.authority().ok_or("its webhook names no host")?;
        if authority.as_str().contains('@') {
            return Err("its webhook names a user: give headers = { authorization = \"…\" }".to_owned());
        }
        let mut all = HeaderMap::new();
        all.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        all.insert(HOST, authority.as_str().parse().map_err(|_| "its webhook names no host")?);
        for (name, value) in headers {
            let name: HeaderName = name.parse().map_err(|_| format!("{name:?} is no header"))?;
            let value = value.parse().map_err(|_| format!("the header {name} has no legal value"))?;
            all.insert(name, value);
        }
        let target = uri.path_and_query().map_or("/", hyper::http::uri::PathAndQuery::as_str).to_owned();
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { host, port: authority.port_u16().unwrap_or(80), target, headers: all })
    }

    /// The host, which is all that is told of it in the daemon's log.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Tells it.
    pub(super) async fn post(&self, body: Bytes) -> Result<(), String> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await;
        let stream = stream.map_err(|error| format!("it cannot be reached: {error}"))?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| format!("it does not speak HTTP: {error}"))?;
        let mut request = Request::builder().method(Method::POST).uri(&self.target);
        if let Some(headers) = request.headers_mut() {
            headers.clone_from(&self.headers);
        }
        let request = request.body(Full::new(body)).map_err(|error| format!("bad request: {error}"))?;
        let mut answer = std::pin::pin!(sender.send_request(request));
        let response = tokio::select! {
            biased;
            response = &mut answer => response,
            // It has hung up after its answer, or in place of it.
            _ = connection => answer.await,
        };
        let response = response.map_err(|error| format!("no answer: {error}"))?;
        let status = response.status();
        if status.is_success() { Ok(()) } else { Err(format!("it answered {status}")) }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    async fn answered(status: &str) -> (Result<(), String>, String) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let headers = [("x-key".to_owned(), "k".to_owned())].into();
        let hook = Webhook::new(&format!("http://127.0.0.1:{port}/a?b=c"), &headers).unwrap();
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        let server = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = Vec::new();
            while !asked.ends_with(b"{\"a\":1}") {
                asked.push(stream.read_u8().await.unwrap());
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8(asked).unwrap()
        };
        tokio::join!(hook.post(Bytes::from_static(b"{\"a\":1}")), server)
    }

    #[tokio::test]
    async fn a_server_gets_the_body_and_its_refusal_is_told() {
        let (done, asked) = answered("204 No Content").await;
        assert_eq!(done, Ok(()));
        assert!(asked.starts_with("POST /a?b=c HTTP/1.1\r\n"), "{asked}");
        assert!(asked.contains("x-key: k\r\n") && asked.contains("host: 127.0.0.1:"), "{asked}");
        let (done, _) = answered("500 No").await;
        assert!(done.unwrap_err().contains("500"));
    }

    #[test]
    fn only_plain_addresses_are_taken() {
        let none = BTreeMap::new();
        for bad in ["", "x", "https://host/", "http://", "http://user:secret@host/", "file:///x"] {
            let why = Webhook::new(bad, &none).expect_err(bad);
            assert!(!why.contains("secret"), "{why}");
        }
        let six = Webhook::new("http://[::1]:8080", &none).unwrap();
        assert_eq!((six.host(), six.port, six.target.as_str()), ("::1", 8080, "/"));
    }
}
