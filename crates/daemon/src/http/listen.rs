//! The TCP address for clients and the Unix socket for our own commands.

use std::fs::{self, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use axum::extract::Extension;
use axum::serve::{Listener, ListenerExt};
use rustix::process::geteuid;
use tokio::net::unix::SocketAddr as UnixAddress;
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;

use super::auth::Transport;

#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("cannot listen on {address}")]
    Tcp {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("cannot listen on the socket {}", path.display())]
    Socket { path: PathBuf, source: io::Error },
}

/// Both listeners, bound and not yet served.
#[derive(Debug)]
pub(crate) struct Listeners {
    tcp: TcpListener,
    socket: OwnerOnly,
    socket_file: SocketFile,
}

/// The socket's place in the file system. However a daemon ends, short of being killed, and also
/// where it fails to start: a stale file would only puzzle the next command.
#[derive(Debug)]
struct SocketFile(PathBuf);

/// A Unix listener that talks only to the user the daemon runs as.
#[derive(Debug)]
struct OwnerOnly(UnixListener);

// === impl Listeners ===

impl Listeners {
    /// Binds both. The caller holds the lock of the data directory, so a socket that is there was
    /// left by a daemon that is gone.
    pub(crate) async fn bind(address: SocketAddr, socket_path: &Path) -> Result<Self, ListenError> {
        let tcp = TcpListener::bind(address)
            .await
            .map_err(|source| ListenError::Tcp { address, source })?;
        let socket = bind_socket(socket_path).map_err(|source| ListenError::Socket {
            path: socket_path.to_owned(),
            source,
        })?;
        Ok(Self {
            tcp,
            socket: OwnerOnly(socket),
            socket_file: SocketFile(socket_path.to_owned()),
        })
    }

    /// The address in use, which differs from the configured one where that left the port open.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// Serves both until told to stop, then lets running requests end.
    pub(crate) async fn serve(
        self,
        router: axum::Router,
        stop: CancellationToken,
    ) -> io::Result<()> {
        let over_socket = router.clone().layer(Extension(Transport::Socket));
        let tcp = self.tcp.tap_io(|stream| {
            // Small messages both ways: waiting to fill a packet would only add delay.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY not set");
            }
        });
        let by_tcp =
            axum::serve(tcp, router).with_graceful_shutdown(stop.clone().cancelled_owned());
        let by_socket =
            axum::serve(self.socket, over_socket).with_graceful_shutdown(stop.cancelled_owned());
        let outcome = tokio::try_join!(by_tcp.into_future(), by_socket.into_future());
        drop(self.socket_file);
        outcome.map(|_| ())
    }
}

fn bind_socket(path: &Path) -> io::Result<UnixListener> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    // The directory is closed to others, so nobody gets in between these two lines.
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

// === impl SocketFile ===

impl Drop for SocketFile {
    fn drop(&mut self) {
        // One that stays is replaced by the next daemon.
        let _ = fs::remove_file(&self.0);
    }
}

// === impl OwnerOnly ===

impl Listener for OwnerOnly {
    type Io = UnixStream;
    type Addr = UnixAddress;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = Listener::accept(&mut self.0).await;
            match stream.peer_cred() {
                Ok(peer) if peer.uid() == geteuid().as_raw() => return (stream, address),
                Ok(peer) => tracing::warn!(uid = peer.uid(), "foreign user refused on the socket"),
                Err(error) => tracing::warn!(%error, "peer of the socket unknown, refused"),
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.0.local_addr()
    }
}
