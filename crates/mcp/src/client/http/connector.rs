//! New connections to one server: TCP, the proxy that the environment names, and TLS.

use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Uri};
use hyper::rt::{Read, Write};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio_rustls::TlsConnector;
use tower::{ServiceExt, service_fn};
use url::{Host, Position, Url};

use crate::client::error::BoxError;

pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A byte stream to the server, encrypted or not.
pub(super) type Stream = Box<dyn Io>;

pub(super) trait Io: Read + Write + Send + Unpin + Debug {}

impl<T: Read + Write + Send + Unpin + Debug> Io for T {}

#[derive(Debug)]
pub(super) enum Connector {
    Direct(Hop),
    /// The proxy passes requests on, which name the whole URL.
    Forward {
        proxy: Hop,
        authorization: Option<HeaderValue>,
    },
    /// The proxy passes bytes on, and TLS reaches through it.
    Tunnel {
        proxy: Hop,
        authorization: Option<HeaderValue>,
        origin: Uri,
        tls: Tls,
    },
}

/// One TCP connection, with TLS on top of it where the scheme says so.
#[derive(Debug, Clone)]
pub(super) struct Hop {
    tcp: HttpConnector,
    address: Uri,
    tls: Option<Tls>,
}

#[derive(Clone)]
pub(super) struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

// === impl Connector ===

impl Connector {
    /// Prepares connections to the origin of `url`. The environment names proxies as for curl, but
    /// none is used for a server on this machine, which a proxy could not reach.
    pub(super) fn new(url: &Url) -> Result<Self, BoxError> {
        let origin: Uri = url[..Position::BeforePath].parse()?;
        let proxy = (!is_loopback(url)).then(Matcher::from_env);
        let Some(proxy) = proxy.and_then(|proxies| proxies.intercept(&origin)) else {
            return Ok(Self::Direct(Hop::new(origin)?));
        };
        let authorization = proxy.basic_auth().cloned();
        let proxy = Hop::new(proxy.uri().clone())?;
        Ok(match Tls::for_scheme(&origin)? {
            None => Self::Forward {
                proxy,
                authorization,
            },
            Some(tls) => Self::Tunnel {
                proxy,
                authorization,
                origin,
                tls,
            },
        })
    }

    pub(super) async fn connect(&self) -> Result<Stream, BoxError> {
        match self {
            Self::Direct(hop) | Self::Forward { proxy: hop, .. } => hop.clone().connect().await,
            Self::Tunnel {
                proxy,
                authorization,
                origin,
                tls,
            } => {
                let hop = proxy.clone();
                let to_proxy = service_fn(move |_: Uri| hop.clone().connect());
                let mut tunnel = Tunnel::new(proxy.address.clone(), to_proxy);
                if let Some(authorization) = authorization {
                    tunnel = tunnel.with_auth(authorization.clone());
                }
                tls.wrap(tunnel.oneshot(origin.clone()).await?).await
            }
        }
    }

    /// What the request line holds for `url`, which is of the origin that this connects to.
    pub(super) fn request_target(&self, url: &Url) -> Result<Uri, http::uri::InvalidUri> {
        let from = match self {
            Self::Forward { .. } => Position::BeforeScheme,
            Self::Direct(_) | Self::Tunnel { .. } => Position::BeforePath,
        };
        url[from..Position::AfterQuery].parse()
    }

    /// What a proxy that passes requests on wants to see in each of them.
    pub(super) fn proxy_authorization(&self) -> Option<&HeaderValue> {
        match self {
            Self::Forward { authorization, .. } => authorization.as_ref(),
            Self::Direct(_) | Self::Tunnel { .. } => None,
        }
    }
}

// === impl Hop ===

impl Hop {
    fn new(address: Uri) -> Result<Self, BoxError> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        // The system notices within 45 s that a peer has vanished.
        tcp.set_keepalive(Some(Duration::from_secs(15)));
        tcp.set_keepalive_interval(Some(Duration::from_secs(10)));
        tcp.set_keepalive_retries(Some(3));
        let tls = Tls::for_scheme(&address)?;
        Ok(Self { tcp, address, tls })
    }

    async fn connect(self) -> Result<Stream, BoxError> {
        let stream = Box::new(self.tcp.oneshot(self.address).await?);
        match self.tls {
            Some(tls) => tls.wrap(stream).await,
            None => Ok(stream),
        }
    }
}

// === impl Tls ===

impl Tls {
    /// TLS for `https`, none for `http`.
    fn for_scheme(address: &Uri) -> Result<Option<Self>, BoxError> {
        match address.scheme_str() {
            Some("https") => {}
            Some("http") => return Ok(None),
            scheme => {
                let scheme = scheme.unwrap_or_default();
                return Err(format!("addresses of the scheme {scheme:?} are not supported").into());
            }
        }
        let host = address.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_platform_verifier()?
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Some(Self {
            connector: TlsConnector::from(Arc::new(config)),
            name: ServerName::try_from(host.to_owned())?,
        }))
    }

    async fn wrap(&self, stream: Stream) -> Result<Stream, BoxError> {
        let plain = TokioIo::new(stream);
        let encrypted = self.connector.connect(self.name.clone(), plain).await?;
        Ok(Box::new(TokioIo::new(encrypted)))
    }
}

impl Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Tls").field(&self.name).finish()
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
