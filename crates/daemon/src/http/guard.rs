//! Host and Origin, checked before anything else on every route.
//!
//! A page in a browser can make requests to loopback addresses. DNS rebinding makes it send a
//! foreign Host, a plain cross-site request a foreign Origin; both are turned away here.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::auth::Transport;
use crate::rest::ApiError;

/// The names this daemon goes by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Guard {
    listen: IpAddr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Foreign {
    Host,
    Origin,
}

impl Guard {
    pub(super) fn new(listen: SocketAddr) -> Self {
        Self {
            listen: listen.ip(),
        }
    }

    fn check(self, uri: &Uri, headers: &HeaderMap) -> Result<(), Foreign> {
        let host = match headers.get(header::HOST) {
            Some(value) => value.to_str().map_err(|_| Foreign::Host)?,
            None => uri
                .authority()
                .map(http::uri::Authority::as_str)
                .ok_or(Foreign::Host)?,
        };
        if !self.is_ours(host_name(host)) {
            return Err(Foreign::Host);
        }
        let Some(origin) = headers.get(header::ORIGIN) else {
            return Ok(());
        };
        let origin = origin.to_str().map_err(|_| Foreign::Origin)?;
        let host = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"))
            .ok_or(Foreign::Origin)?;
        if self.is_ours(host_name(host)) {
            Ok(())
        } else {
            Err(Foreign::Origin)
        }
    }

    fn is_ours(self, name: &str) -> bool {
        if name.eq_ignore_ascii_case("localhost") {
            return true;
        }
        let name = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'))
            .unwrap_or(name);
        name.parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback() || address == self.listen)
    }
}

/// The host of `host:port`, with the brackets of an IPv6 address.
fn host_name(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

/// Lets a request pass whose Host and Origin are this daemon's own. Nothing a browser does reaches
/// the Unix socket.
pub(super) async fn check(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    if request.extensions().get::<Transport>() == Some(&Transport::Socket) {
        return next.run(request).await;
    }
    let foreign = match guard.check(request.uri(), request.headers()) {
        Ok(()) => return next.run(request).await,
        Err(foreign) => foreign,
    };
    let (code, message) = match foreign {
        Foreign::Host => ("FOREIGN_HOST", "the Host header does not name this daemon"),
        Foreign::Origin => (
            "FOREIGN_ORIGIN",
            "requests from pages of other origins are refused",
        ),
    };
    ApiError::new(StatusCode::FORBIDDEN, code, message)
        .hint("use http://127.0.0.1 or http://localhost with the daemon's port")
        .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(host: &str, origin: Option<&str>) -> Result<(), Foreign> {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        let guard = Guard::new("192.0.2.7:8080".parse().unwrap());
        guard.check(&Uri::from_static("/mcp"), &headers)
    }

    #[test]
    fn our_own_names_pass() {
        for host in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:8080",
            "127.9.9.9",
            "[::1]:8080",
            "192.0.2.7",
        ] {
            assert_eq!(check(host, None), Ok(()), "{host}");
            assert_eq!(
                check(host, Some(&format!("http://{host}"))),
                Ok(()),
                "{host}"
            );
        }
    }

    #[test]
    fn foreign_names_do_not() {
        for host in [
            "evil.example",
            "localhost.evil.example:80",
            "127.0.0.1.evil.example",
            "[::2]",
            "0.0.0.0",
            "192.0.2.8",
            "",
            "localhost:80@evil.example",
        ] {
            assert_eq!(check(host, None), Err(Foreign::Host), "{host}");
        }
        for origin in [
            "http://evil.example",
            "null",
            "file://",
            "https://localhost.evil.example",
        ] {
            assert_eq!(
                check("localhost", Some(origin)),
                Err(Foreign::Origin),
                "{origin}"
            );
        }
    }

    #[test]
    fn a_request_without_any_host_is_refused() {
        let guard = Guard::new("127.0.0.1:8080".parse().unwrap());
        let answer = guard.check(&Uri::from_static("/mcp"), &HeaderMap::new());
        assert_eq!(answer, Err(Foreign::Host));
    }
}
