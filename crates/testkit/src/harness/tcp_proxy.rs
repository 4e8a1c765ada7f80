//! A TCP proxy between the daemon and an upstream that breaks connections on demand.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What becomes of connections, those that are open included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    Pass,
    /// Every chunk is held up this long.
    Delay(Duration),
    /// Half-open: everything is read and nothing is passed on.
    Swallow,
    /// Connections are closed in order.
    Close,
    /// Connections are reset.
    Reset,
}

/// A running proxy; it ends when dropped.
#[derive(Debug)]
pub struct TcpProxy {
    address: SocketAddr,
    network: watch::Sender<Network>,
    accepted: Arc<Mutex<Vec<Instant>>>,
    requests: Arc<Mutex<Vec<u8>>>,
    server: JoinHandle<()>,
}

impl TcpProxy {
    /// Starts a proxy in front of `target` on a free port of the loopback interface.
    pub async fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (network, changes) = watch::channel(Network::Pass);
        let accepted: Arc<Mutex<Vec<Instant>>> = Arc::default();
        let times = Arc::clone(&accepted);
        let requests: Arc<Mutex<Vec<u8>>> = Arc::default();
        let seen = Arc::clone(&requests);
        let server = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                times.lock().expect("the times").push(Instant::now());
                tokio::spawn(carry(client, target, changes.clone(), Arc::clone(&seen)));
            }
        });
        Self {
            address,
            network,
            accepted,
            requests,
            server,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn set(&self, network: Network) {
        self.network.send_replace(network);
    }

    /// Everything that was sent to the target, as text.
    pub fn requests(&self) -> String {
        let requests = self.requests.lock().expect("the requests");
        String::from_utf8_lossy(&requests).into_owned()
    }

    /// When connections were accepted.
    pub fn accepted(&self) -> Vec<Instant> {
        self.accepted.lock().expect("the times").clone()
    }
}

impl Drop for TcpProxy {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn carry(
    mut client: TcpStream,
    target: SocketAddr,
    mut network: watch::Receiver<Network>,
    requests: Arc<Mutex<Vec<u8>>>,
) {
    let now = *network.borrow_and_update();
    if ended(&client, now) {
        return;
    }
    let Ok(mut server) = TcpStream::connect(target).await else {
        return;
    };
    let mut now = now;
    let (mut up, mut down) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let delivered = tokio::select! {
            changed = network.changed() => {
                now = *network.borrow_and_update();
                if changed.is_err() || ended(&client, now) {
                    return;
                }
                true
            }
            read = client.read(&mut up) => {
                let length = *read.as_ref().unwrap_or(&0);
                requests.lock().expect("the requests").extend(&up[..length]);
                deliver(read, &up, &mut server, now).await
            }
            read = server.read(&mut down) => deliver(read, &down, &mut client, now).await,
        };
        if !delivered {
            return;
        }
    }
}

/// Whether connections are to end; one that is to be reset is prepared for it.
fn ended(client: &TcpStream, network: Network) -> bool {
    if network == Network::Reset {
        // An error means that it is gone already.
        let _ = client.set_zero_linger();
    }
    matches!(network, Network::Close | Network::Reset)
}

/// Passes a chunk on; false when there will be no more.
async fn deliver(
    read: std::io::Result<usize>,
    buffer: &[u8],
    to: &mut TcpStream,
    network: Network,
) -> bool {
    let Ok(length @ 1..) = read else {
        return false;
    };
    match network {
        Network::Swallow => return true,
        Network::Delay(pause) => tokio::time::sleep(pause).await,
        _ => (),
    }
    to.write_all(&buffer[..length]).await.is_ok()
}
