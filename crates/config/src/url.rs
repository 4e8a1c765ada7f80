//! What is asked of an upstream's url, and how it is shown.

use http::Uri;
use http::uri::InvalidUri;

use crate::secret::{MASK, mask_unless_reference};
use crate::template::Template;

/// Why a text is not the url of an upstream.
#[derive(Debug, thiserror::Error)]
pub enum UrlError {
    #[error("the url starts with neither http:// nor https://")]
    Scheme,
    #[error("the url names no host")]
    Host,
    #[error("the url is malformed: {0}")]
    Malformed(#[from] InvalidUri),
}

/// Checks a url without references.
pub(crate) fn check(url: &str) -> Result<(), UrlError> {
    check_scheme(url)?;
    let uri: Uri = url.parse()?;
    match uri.host() {
        None | Some("") => Err(UrlError::Host),
        Some(_) => Ok(()),
    }
}

/// Checks as much of a url as is known before its references are filled in.
pub(crate) fn check_template(url: &Template) -> Result<(), UrlError> {
    let start = url.literal_start();
    if url.variables().next().is_none() {
        check(start)
    } else if start.is_empty() {
        Ok(())
    } else {
        check_scheme(start)
    }
}

fn check_scheme(url: &str) -> Result<(), UrlError> {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    match scheme {
        Some(name) if name.eq_ignore_ascii_case("http") || name.eq_ignore_ascii_case("https") => {
            Ok(())
        }
        _ => Err(UrlError::Scheme),
    }
}

/// The url as it may be shown: passwords and query values are masked unless they are references.
pub(crate) fn masked(url: &Template) -> String {
    let written = url.written();
    let (rest, query) = match written.split_once('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (written, None),
    };
    let mut shown = mask_user(rest);
    if let Some(query) = query {
        shown.push('?');
        let pairs: Vec<String> = query.split('&').map(mask_pair).collect();
        shown.push_str(&pairs.join("&"));
    }
    shown
}

fn mask_user(rest: &str) -> String {
    let Some((scheme, after)) = rest.split_once("://") else {
        return rest.to_owned();
    };
    let authority_end = after.find('/').unwrap_or(after.len());
    let (authority, path) = after.split_at(authority_end);
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://{MASK}@{host}{path}"),
        None => rest.to_owned(),
    }
}

fn mask_pair(pair: &str) -> String {
    match pair.split_once('=') {
        Some((key, value)) => format!("{key}={}", mask_unless_reference(value)),
        None => mask_unless_reference(pair).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> String {
        masked(&url.parse().unwrap())
    }

    #[test]
    fn what_may_be_a_key_is_masked() {
        assert_eq!(shown("https://h/mcp"), "https://h/mcp");
        assert_eq!(shown("https://u:p@h:1/a@b"), "https://***@h:1/a@b");
        assert_eq!(shown("https://u:p@h"), "https://***@h");
        assert_eq!(shown("https://h/?a=b&c&d="), "https://h/?a=***&***&d=");
        assert_eq!(shown("https://h/?a=${env:A}"), "https://h/?a=${env:A}");
        assert_eq!(shown("${env:URL}"), "${env:URL}");
    }

    #[test]
    fn only_http_is_accepted() {
        for url in [
            "http://h",
            "HTTPS://h:1/x?y",
            "http://127.0.0.1:8080/mcp",
            "http://[::1]/",
        ] {
            assert!(check(url).is_ok(), "{url}");
        }
        for url in [
            "",
            "h",
            "//h",
            "ws://h/",
            "http:/h",
            "http://",
            "http:///x",
            "https://a b/",
        ] {
            assert!(check(url).is_err(), "{url}");
        }
    }

    #[test]
    fn what_a_reference_hides_is_not_judged() {
        let check = |url: &str| check_template(&url.parse().unwrap());
        assert!(check("${env:BASE}/mcp").is_ok());
        assert!(check("https://${env:HOST}/mcp").is_ok());
        assert!(check("ftp://${env:HOST}/mcp").is_err());
    }
}
