//! Host and Origin, checked before anything else on every route.
//!
//! A page in a browser can make requests to loopback addresses. DNS rebinding makes it send a
//! foreign Host, a plain cross-site request a foreign Origin; both are turned away here. Another
//! program on this machine that serves pages, on another port, is as foreign as any other site.

use std::net::{IpAddr, SocketAddr};

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri, header};

use super::serve::Transport;
use crate::rest::ApiError;

const HTTP_PORT: u16 = 80;

/// The names this daemon goes by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Guard {
    listen: IpAddr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Foreign {
    Host,
    /// More than one, of which different readers might take different ones.
    Hosts,
    Origin,
    Origins,
}

/// Host and port of a request or an origin. Without a port it is that of http.
#[derive(Debug, Clone, Copy)]
struct Authority<'a> {
    host: &'a str,
    port: u16,
}

impl Guard {
    pub(super) fn new(listen: SocketAddr) -> Self {
        Self {
            listen: listen.ip(),
        }
    }

    /// Admits a request whose Host is this daemon's own and whose Origin, if it has one, is so, too.
    /// Nothing a browser does reaches the Unix socket.
    pub(super) fn admit(self, transport: Transport, request: &Request) -> Result<(), ApiError> {
        if transport == Transport::Socket {
            return Ok(());
        }
        self.check(request.uri(), request.headers())
            .map_err(Foreign::refusal)
    }

    /// Any port passes in a Host, because ports are forwarded. An origin, however, is another one
    /// with another port: whatever runs there is not us.
    fn check(self, uri: &Uri, headers: &HeaderMap) -> Result<(), Foreign> {
        let in_header = only(headers, &header::HOST, Foreign::Host, Foreign::Hosts)?;
        let in_target = uri.authority().map(http::uri::Authority::as_str);
        for host in [in_header, in_target].into_iter().flatten() {
            let host = Authority::parse(host).ok_or(Foreign::Host)?;
            if !self.is_ours(host.host) {
                return Err(Foreign::Host);
            }
        }
        // What the target says counts more, as it does for every server.
        let host = in_target.or(in_header).and_then(Authority::parse);
        let host = host.ok_or(Foreign::Host)?;
        let origin = only(headers, &header::ORIGIN, Foreign::Origin, Foreign::Origins)?;
        let Some(origin) = origin else {
            return Ok(());
        };
        let is_same = origin
            .strip_prefix("http://")
            .and_then(Authority::parse)
            .is_some_and(|origin| self.is_ours(origin.host) && origin.port == host.port);
        if is_same {
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

impl<'a> Authority<'a> {
    /// Reads `host:port` or `host`; an IPv6 address keeps its brackets.
    fn parse(text: &'a str) -> Option<Self> {
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !text.ends_with(']') => (host, port.parse().ok()?),
            _ => (text, HTTP_PORT),
        };
        Some(Self { host, port })
    }
}

/// The value of a header that may be given once at most.
fn only<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
    unreadable: Foreign,
    several: Foreign,
) -> Result<Option<&'a str>, Foreign> {
    let mut values = headers.get_all(name).iter();
    let value = values.next();
    if values.next().is_some() {
        return Err(several);
    }
    value
        .map(|value| value.to_str().map_err(|_| unreadable))
        .transpose()
}

impl Foreign {
    fn refusal(self) -> ApiError {
        let (code, message, hint) = match self {
            Self::Host => (
                "FOREIGN_HOST",
                "the Host does not name this daemon",
                "use http://127.0.0.1 or http://localhost with the daemon's port",
            ),
            Self::Hosts => (
                "FOREIGN_HOST",
                "the request has more than one Host header",
                "send one",
            ),
            Self::Origin => (
                "FOREIGN_ORIGIN",
                "requests from pages that are not this daemon's own are refused",
                "send no Origin; only browsers need one",
            ),
            Self::Origins => (
                "FOREIGN_ORIGIN",
                "the request has more than one Origin header",
                "send none; only browsers need one",
            ),
        };
        ApiError::new(StatusCode::FORBIDDEN, code, message).hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_all(target: &str, given: &[(HeaderName, &str)]) -> Result<(), Foreign> {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.append(name, value.parse().unwrap());
        }
        let guard = Guard::new("192.0.2.7:8080".parse().unwrap());
        guard.check(&target.parse().unwrap(), &headers)
    }

    fn check(host: &str, origin: Option<&str>) -> Result<(), Foreign> {
        let mut given = vec![(header::HOST, host)];
        given.extend(origin.map(|origin| (header::ORIGIN, origin)));
        check_all("/mcp", &given)
    }

    #[test]
    fn our_own_names_pass() {
        for host in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:8080",
            "127.9.9.9",
            "[::1]:8080",
            "[::1]",
            "192.0.2.7",
        ] {
            assert_eq!(check(host, None), Ok(()), "{host}");
            assert_eq!(
                check(host, Some(&format!("http://{host}"))),
                Ok(()),
                "{host}"
            );
        }
        assert_eq!(check("LocalHost", Some("http://localhost:80")), Ok(()));
        assert_eq!(check("localhost:80", Some("http://localhost")), Ok(()));
        assert_eq!(
            check("127.0.0.1:8080", Some("http://localhost:8080")),
            Ok(())
        );
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
            "localhost:",
            "localhost:80@evil.example",
        ] {
            assert_eq!(check(host, None), Err(Foreign::Host), "{host}");
        }
    }

    #[test]
    fn an_origin_is_that_of_the_request_or_foreign() {
        for origin in [
            "http://evil.example",
            "null",
            "file://",
            "",
            "https://localhost.evil.example",
            "https://localhost:8080",
            "http://localhost:9999",
            "http://localhost",
            "http://localhost:8080/",
        ] {
            assert_eq!(
                check("localhost:8080", Some(origin)),
                Err(Foreign::Origin),
                "{origin}"
            );
        }
    }

    #[test]
    fn one_of_several_is_not_chosen() {
        let ours = (header::HOST, "localhost");
        let origin = (header::ORIGIN, "http://localhost");
        assert_eq!(
            check_all("/", &[ours.clone(), ours.clone()]),
            Err(Foreign::Hosts)
        );
        assert_eq!(
            check_all("/", &[ours, origin.clone(), origin]),
            Err(Foreign::Origins)
        );
    }

    #[test]
    fn the_authority_of_a_whole_address_is_a_host_too() {
        let host = |name| [(header::HOST, name)];
        assert_eq!(check_all("http://localhost:1/mcp", &[]), Ok(()));
        assert_eq!(
            check_all("http://localhost:1/mcp", &host("127.0.0.1")),
            Ok(())
        );
        for (target, header) in [
            ("http://evil.example/mcp", "localhost"),
            ("http://localhost/mcp", "evil.example"),
            ("http://user@localhost/mcp", "localhost"),
        ] {
            let answer = check_all(target, &host(header));
            assert_eq!(answer, Err(Foreign::Host), "{target} {header}");
        }
        assert_eq!(check_all("/mcp", &[]), Err(Foreign::Host));
    }
}
