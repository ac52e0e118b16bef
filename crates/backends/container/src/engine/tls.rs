//! Connections to a port that asks for certificates, and shows one of its own.

use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::transport::{Stream, keep_alive};
use crate::engine::caller;

/// Connects. Who is at the other end is always checked, against the authority that is named and no other.
pub(super) async fn dial(host: &str, port: u16, certificates: &Path) -> io::Result<Stream> {
    let dir = certificates.to_owned();
    // Whoever asks names the directory, and what stands there may take its time.
    let config = caller::run_limited(move || config(&dir)).await.map_err(io::Error::other)??;
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let stream = TcpStream::connect((host, port)).await?;
    keep_alive(&stream)?;
    Ok(Box::new(TlsConnector::from(Arc::new(config)).connect(name, stream).await?))
}

/// Read anew each time: certificates are replaced while we run.
fn config(dir: &Path) -> io::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for root in read(&dir.join("ca.pem"))? {
        roots.add(root).map_err(io::Error::other)?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots);
    let (own, key) = (dir.join("cert.pem"), dir.join("key.pem"));
    if !own.exists() && !key.exists() {
        return Ok(builder.with_no_client_auth());
    }
    let text = caller::read(&key).map_err(|error| unreadable(&key, &error))?;
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(|error| unreadable(&key, &error))?;
    builder.with_client_auth_cert(read(&own)?, key).map_err(io::Error::other)
}

fn read(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let text = caller::read(path).map_err(|error| unreadable(path, &error))?;
    CertificateDer::pem_slice_iter(&text).collect::<Result<_, _>>().map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("cannot read {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_pipe_in_the_place_of_a_certificate_keeps_nobody_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("ca.pem");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        // In a thread of its own: one that waits for the pipe could not be told to stop.
        let path = dir.path().to_owned();
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || tell.send(config(&path).is_err()));
        assert_eq!(told.recv_timeout(Duration::from_secs(5)), Ok(true));
        let failed = dial("127.0.0.1", 1, dir.path()).await.err().unwrap();
        assert!(failed.to_string().contains("ca.pem"), "{failed}");
    }
}
