//! Encryption of connections: rustls, with the certificates that the machine trusts.
//!
//! `sslmode=require` in the connection string encrypts, and verifies the server; its certificate's issuer can
//! be named by `SSL_CERT_FILE`. Otherwise a connection is plain: encryption that verifies nothing would keep
//! out nobody who can stand in between, and a server's self-made certificate would stop everybody else.

use std::sync::Arc;

use domain::store::StoreError;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

/// What makes encrypted connections, when the connection string asks for them.
pub(super) fn connector(config: &Config) -> Result<Option<MakeRustlsConnect>, StoreError> {
    if config.get_ssl_mode() != SslMode::Require {
        return Ok(None);
    }
    let errors = match MakeRustlsConnect::with_native_certs() {
        Ok((connector, errors)) => {
            for error in errors {
                tracing::warn!(%error, "a certificate of this machine cannot be read");
            }
            return Ok(Some(connector));
        }
        Err(errors) => errors,
    };
    let said = errors.first().map_or_else(|| "none found".to_owned(), ToString::to_string);
    Err(StoreError::Database {
        operation: "load the certificates that this machine trusts",
        source: Arc::new(std::io::Error::other(said)),
    })
}
