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

use super::line::{Stream, keep_alive};

/// Connects. Who is at the other end is always checked, against the authority that is named and no other.
pub(super) async fn dial(host: &str, port: u16, certificates: &Path) -> io::Result<Stream> {
    let config = config(certificates)?;
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
    let key = PrivateKeyDer::from_pem_file(&key).map_err(|error| unreadable(&key, &error))?;
    builder.with_client_auth_cert(read(&own)?, key).map_err(io::Error::other)
}

fn read(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let all = CertificateDer::pem_file_iter(path).map_err(|error| unreadable(path, &error))?;
    all.collect::<Result<_, _>>().map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("cannot read {}: {error}", path.display()))
}
