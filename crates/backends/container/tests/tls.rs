//! Engines whose port asks for certificates, as Docker's does when it is told to.

mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use support::{Bench, RemoteBench};
use tokio::net::{TcpListener, UnixStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use wharf_backend::conformance::{Transcript, within};
use wharf_backend::{Adoption, Backend, Stop};
use wharf_container::{ContainerBackend, Endpoint, Flavour, Options};
use wharf_model::{Code, Offset, Reason};

const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// An authority and a port that it vouches for, which lets in only whom it vouches for too.
struct Port {
    certificates: tempfile::TempDir,
    number: u16,
}

impl Port {
    async fn to(socket: &Path) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority =
            CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority");
        let signed = |name: &str| {
            let key = KeyPair::generate().expect("a key");
            let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
            (params.signed_by(&key, &authority).expect("a certificate"), key)
        };
        let (server, server_key) = signed("127.0.0.1");
        let (client, client_key) = signed("client");
        let dir = tempfile::tempdir().expect("a directory");
        for (name, text) in
            [("ca.pem", authority.pem()), ("cert.pem", client.pem()), ("key.pem", client_key.serialize_pem())]
        {
            std::fs::write(dir.path().join(name), text).expect("a file");
        }
        let mut roots = RootCertStore::empty();
        roots.add(authority.der().clone()).expect("a root");
        let provider = Arc::new(ring::default_provider());
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let key = PrivateKeyDer::try_from(server_key.serialize_der()).expect("a key");
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_client_cert_verifier(clients.build().expect("a verifier"))
            .with_single_cert(vec![server.der().clone()], key)
            .expect("a certificate");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let number = listener.local_addr().expect("it is bound").port();
        let (acceptor, socket) = (TlsAcceptor::from(Arc::new(config)), socket.to_owned());
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let (acceptor, socket) = (acceptor.clone(), socket.clone());
                tokio::spawn(async move {
                    let Ok(mut near) = acceptor.accept(near).await else { return };
                    let mut engine = UnixStream::connect(socket).await.expect("the engine");
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut engine).await;
                });
            }
        });
        Self { certificates: dir, number }
    }

    /// Found as Docker's own command line would find it.
    fn endpoint(&self, certificates: &Path) -> Endpoint {
        let vars = [
            ("DOCKER_HOST", format!("tcp://127.0.0.1:{}", self.number)),
            ("DOCKER_TLS_VERIFY", "1".to_owned()),
            ("DOCKER_CERT_PATH", certificates.display().to_string()),
        ];
        let var = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, value)| value.into());
        Endpoint::resolve(Flavour::Docker, var).expect("it is named")
    }
}

#[tokio::test]
async fn a_session_by_certificates() {
    let bench = RemoteBench::with(Bench::new(Flavour::Docker).await);
    let port = Port::to(&bench.socket()).await;
    let options = Options { endpoint: Some(port.endpoint(port.certificates.path())), ..bench.options() };
    let open = || ContainerBackend::new(options.clone());
    let started = open().start(bench.shell("echo up; exec cat")).await;
    let (ticket, connection) = started.map_err(|failure| format!("{failure:?}")).expect("it starts");
    connection.write(b"typed\n", TEST_TIMEOUT).await.expect("input works");
    Transcript::of(&*connection, Offset(0)).await.until("typed\n").await;
    let Ok(Adoption::Alive(again)) = open().adopt(&ticket).await else { panic!("it is found again") };
    let stop = Stop { grace: Duration::ZERO, reason: Reason::Killed, by: "a test".to_owned() };
    let record = within(TEST_TIMEOUT, "a stop", again.stop(stop)).await.expect("a stop");
    assert_eq!((record.signal, record.log_end.0), (Some(9), 9));
    bench.gone(&ticket).await;
}

#[tokio::test]
async fn who_is_not_vouched_for_is_refused_on_both_sides() {
    let bench = RemoteBench::with(Bench::new(Flavour::Docker).await);
    let (port, other) = (Port::to(&bench.socket()).await, Port::to(&bench.socket()).await);
    let stranger = tempfile::tempdir().expect("a directory");
    std::fs::copy(port.certificates.path().join("ca.pem"), stranger.path().join("ca.pem")).expect("a copy");
    for certificates in [other.certificates.path(), stranger.path(), Path::new("/no/such/certificates")] {
        let options = Options { endpoint: Some(port.endpoint(certificates)), ..bench.options() };
        let failure =
            ContainerBackend::new(options).start(bench.shell("exit 0")).await.err().expect("refused");
        assert_eq!(failure.code, Code::Unavailable, "{failure:?}");
        assert!(failure.message.contains("tls://"), "{failure:?}");
        println!("{failure}");
    }
}
