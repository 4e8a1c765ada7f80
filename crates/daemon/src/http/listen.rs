//! The TCP address for clients and the Unix socket for our own commands.

use std::fs::{self, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use config::Limits;
use rustix::process::{Resource, geteuid, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::dispatch::Dispatch;
use super::holder::{Holder, held_by};
use super::serve::{Accept, Serving, Transport};

#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("cannot listen on {address}{}", held_by(.holder.as_ref()))]
    Tcp {
        address: SocketAddr,
        /// Who listens there, if it can be found out.
        holder: Option<Holder>,
        source: io::Error,
    },
    #[error("cannot listen on the socket {}", path.display())]
    Socket { path: PathBuf, source: io::Error },
}

/// Both listeners, bound and not yet served.
#[derive(Debug)]
pub(crate) struct Listeners {
    tcp: TcpListener,
    socket: UnixListener,
    socket_file: SocketFile,
}

/// Both listeners while they are served.
#[derive(Debug)]
pub(crate) struct Server {
    refusing_tcp: CancellationToken,
    refusing_socket: CancellationToken,
    closing: CancellationToken,
    aborting: CancellationToken,
    tasks: TaskTracker,
    accepted: Arc<AtomicU64>,
    socket_file: SocketFile,
}

/// The socket's place in the file system. However a daemon ends, short of being killed, and also
/// where it fails to start: a stale file would only puzzle the next command.
#[derive(Debug)]
struct SocketFile(PathBuf);

/// The Unix listener, which talks only to the user the daemon runs as.
#[derive(Debug)]
struct OwnerOnly(UnixListener);

// === impl Listeners ===

impl Listeners {
    /// Binds both. The caller holds the lock of the data directory, so a socket that is there was
    /// left by a daemon that is gone.
    pub(crate) async fn bind(address: SocketAddr, socket_path: &Path) -> Result<Self, ListenError> {
        let tcp = TcpListener::bind(address)
            .await
            .map_err(|source| ListenError::Tcp {
                address,
                holder: Holder::of(address),
                source,
            })?;
        let socket = bind_socket(socket_path).map_err(|source| ListenError::Socket {
            path: socket_path.to_owned(),
            source,
        })?;
        Ok(Self {
            tcp,
            socket,
            socket_file: SocketFile(socket_path.to_owned()),
        })
    }

    /// Like [`Listeners::bind`], at another port where that of `address` is taken. Commands and
    /// `stdio` clients use the socket, so a daemon in the background is of use without its port.
    pub(crate) async fn bind_somewhere(
        address: SocketAddr,
        socket_path: &Path,
    ) -> Result<Self, ListenError> {
        match Self::bind(address, socket_path).await {
            Err(ListenError::Tcp { source, holder, .. })
                if source.kind() == io::ErrorKind::AddrInUse =>
            {
                tracing::warn!(
                    "cannot listen on {address}{}; clients that use HTTP cannot connect there",
                    held_by(holder.as_ref())
                );
                Self::bind(SocketAddr::new(address.ip(), 0), socket_path).await
            }
            bound => bound,
        }
    }

    /// The address in use, which differs from the configured one where that left the port open.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// Serves both in the background. `limits` gives the limits in force; the socket has as many
    /// connections of its own as TCP, so that the operator gets in whatever other clients do.
    pub(crate) fn serve(
        self,
        dispatch: &Arc<Dispatch>,
        limits: impl Fn() -> Limits + Clone + Send + Sync + 'static,
    ) -> Server {
        let server = Server {
            refusing_tcp: CancellationToken::new(),
            refusing_socket: CancellationToken::new(),
            closing: CancellationToken::new(),
            aborting: CancellationToken::new(),
            tasks: TaskTracker::new(),
            accepted: Arc::default(),
            socket_file: self.socket_file,
        };
        let most = connections_that_fit();
        let wanted = limits().connections;
        if wanted > most {
            tracing::warn!(
                connections = most,
                "at most half the files this process may open are used for connections of clients, which is \
                 less than the {wanted} of `limits.connections`; raise the limit (`ulimit -n`, LimitNOFILE) \
                 if more clients are to connect"
            );
        }
        let limits = move || {
            let limits = limits();
            let connections = limits.connections.min(most);
            Limits {
                connections,
                ..limits
            }
        };
        let serving = |refusing: &CancellationToken| Serving {
            dispatch: Arc::clone(dispatch),
            limits: limits.clone(),
            refusing: refusing.clone(),
            closing: server.closing.clone(),
            aborting: server.aborting.clone(),
            tasks: server.tasks.clone(),
            accepted: Arc::clone(&server.accepted),
        };
        tokio::spawn(serving(&server.refusing_tcp).accept(self.tcp));
        tokio::spawn(serving(&server.refusing_socket).accept(OwnerOnly(self.socket)));
        server
    }
}

// === impl Server ===

impl Server {
    /// How many connections there have been.
    pub(crate) fn use_count(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Whether a client is connected.
    pub(crate) fn is_in_use(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// Accepts no TCP connection any more. The socket stays, so that commands learn what goes on.
    pub(crate) fn refuse_clients(&self) {
        self.refusing_tcp.cancel();
    }

    /// Closes every connection after the answer it is giving; what is left after `patience` is
    /// dropped.
    pub(crate) async fn close(self, patience: Duration) {
        self.refusing_tcp.cancel();
        self.refusing_socket.cancel();
        self.closing.cancel();
        self.tasks.close();
        if timeout(patience, self.tasks.wait()).await.is_err() {
            tracing::info!("connections that were not done in time are dropped");
        }
        self.aborting.cancel();
        self.tasks.wait().await;
        drop(self.socket_file);
    }
}

fn bind_socket(path: &Path) -> io::Result<UnixListener> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    // The directory is closed to others, so no other user gets in between these two lines.
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Raises the number of files this process may open as far as it may, and returns how many of
/// them one listener may use: the other listener, upstreams and the log need some as well.
fn connections_that_fit() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = rustix::process::Rlimit {
            current: limit.maximum,
            ..limit
        };
        match setrlimit(Resource::Nofile, raised) {
            Ok(()) => limit = raised,
            Err(error) => tracing::debug!(%error, "the number of open files stays limited"),
        }
    }
    let files = limit.current.and_then(|files| usize::try_from(files).ok());
    files.map_or(usize::MAX, |files| (files / 2).max(1))
}

// === impl SocketFile ===

impl Drop for SocketFile {
    fn drop(&mut self) {
        // One that stays is replaced by the next daemon.
        let _ = fs::remove_file(&self.0);
    }
}

// === impl Accept ===

impl Accept for TcpListener {
    type Stream = TcpStream;

    const NAME: &'static str = "tcp";

    async fn accept(&self) -> io::Result<Option<(TcpStream, Transport)>> {
        let (stream, peer) = Self::accept(self).await?;
        // Small messages both ways: waiting to fill a packet would only add delay.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY not set");
        }
        Ok(Some((stream, Transport::Tcp(peer.ip()))))
    }
}

impl Accept for OwnerOnly {
    type Stream = UnixStream;

    const NAME: &'static str = "socket";

    async fn accept(&self) -> io::Result<Option<(UnixStream, Transport)>> {
        let (stream, _) = self.0.accept().await?;
        match stream.peer_cred() {
            Ok(peer) if peer.uid() == geteuid().as_raw() => {
                return Ok(Some((stream, Transport::Socket)));
            }
            Ok(peer) => tracing::warn!(uid = peer.uid(), "foreign user refused on the socket"),
            Err(error) => tracing::warn!(%error, "peer of the socket unknown, refused"),
        }
        Ok(None)
    }
}
