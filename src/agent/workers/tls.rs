//! TLS to the database, over the rustls that HTTP uses: what tokio-postgres needs to know of it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rustls_platform_verifier::ConfigVerifierExt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as RustlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, crypto};

/// Makes connections with TLS, checked against the certificates of the system.
#[derive(Clone)]
pub struct DatabaseTls(Arc<ClientConfig>);

/// A connection with TLS to one host.
pub struct HostTls {
    config: Arc<ClientConfig>,
    host: ServerName<'static>,
}

/// The bytes of such a connection.
pub struct DatabaseStream(RustlsStream<Socket>);

impl DatabaseTls {
    /// Reads the certificates of the system.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn new() -> io::Result<Self> {
        // A second time changes nothing.
        let _ = crypto::ring::default_provider().install_default();
        let config = ClientConfig::with_platform_verifier().map_err(io::Error::other)?;
        Ok(Self(Arc::new(config)))
    }
}

impl MakeTlsConnect<Socket> for DatabaseTls {
    type Stream = DatabaseStream;
    type TlsConnect = HostTls;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<HostTls> {
        let host = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        Ok(HostTls { config: Arc::clone(&self.0), host })
    }
}

impl TlsConnect<Socket> for HostTls {
    type Stream = DatabaseStream;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<DatabaseStream>>;

    fn connect(self, stream: Socket) -> Self::Future {
        let connector = TlsConnector::from(self.config);
        async move { connector.connect(self.host, stream).await.map(DatabaseStream) }.boxed()
    }
}

impl TlsStream for DatabaseStream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for DatabaseStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for DatabaseStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
