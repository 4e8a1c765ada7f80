//! Authentication: a request comes over our own socket, with the API key, or anonymously.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use activity::Source;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use config::{SHORTEST_API_KEY, Secret};
use subtle::ConstantTimeEq;

use super::guesses::TooMany;
use super::router::AppState;
use super::serve::Transport;
use crate::rest::ApiError;

const KEY_FILE: &str = "api_key";
const KEY_HEADER: &str = "x-api-key";

/// On whose behalf a request is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Principal {
    /// The user who runs the daemon, over the Unix socket.
    Owner,
    /// A caller that has the API key.
    KeyHolder,
    /// A client on this machine that was not asked for a key.
    Anonymous,
}

impl Principal {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::KeyHolder => "key holder",
            Self::Anonymous => "anonymous",
        }
    }
}

/// The key that REST asks for.
#[derive(Debug, Clone)]
pub(crate) struct ApiKey(Option<Secret>);

#[derive(Debug, thiserror::Error)]
pub enum ApiKeyError {
    #[error("the API key file {} cannot be read or written", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("the API key file {} is empty; remove it, and a new key is made", path.display())]
    Empty { path: PathBuf },
    #[error("there is no randomness to make an API key from")]
    Randomness,
    #[error(
        "the API key in {place} has only {length} characters, and {SHORTEST_API_KEY} are the least"
    )]
    Short { place: String, length: usize },
}

// === impl Principal ===

impl Principal {
    /// The source that the log records for it.
    pub(crate) fn source(self) -> Source {
        match self {
            Self::Owner => Source::Cli,
            Self::KeyHolder | Self::Anonymous => Source::Api,
        }
    }
}

// === impl ApiKey ===

impl ApiKey {
    /// No key at all: whatever is offered is wrong.
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// The configured key, or the one in the data directory, which is made at first run.
    pub(crate) fn load_or_create(
        configured: Option<&Secret>,
        data_dir: &Path,
    ) -> Result<Self, ApiKeyError> {
        if let Some(key) = configured {
            check_length(key.expose(), || {
                "the config (`api_key`, or MCPPROXY_API_KEY)".to_owned()
            })?;
            return Ok(Self(Some(key.clone())));
        }
        let path = data_dir.join(KEY_FILE);
        match fs::read_to_string(&path) {
            Ok(text) if text.trim().is_empty() => Err(ApiKeyError::Empty { path }),
            Ok(text) => {
                check_length(text.trim(), || path.display().to_string())?;
                Ok(Self(Some(text.trim().into())))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::create(path),
            Err(source) => Err(ApiKeyError::File { path, source }),
        }
    }

    fn create(path: PathBuf) -> Result<Self, ApiKeyError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|_| ApiKeyError::Randomness)?;
        let (high, low) = bytes.split_at(16);
        let half = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(0_u128, |sum, byte| sum << 8 | u128::from(*byte))
        };
        let text = format!("{:032x}{:032x}", half(high), half(low));
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| writeln!(file, "{text}"));
        match written {
            Ok(()) => Ok(Self(Some(text.into()))),
            Err(source) => Err(ApiKeyError::File { path, source }),
        }
    }

    /// Compares in constant time, so that the time taken tells nothing about the key.
    fn matches(&self, offered: &str) -> bool {
        let Some(key) = &self.0 else {
            return false;
        };
        key.expose().as_bytes().ct_eq(offered.as_bytes()).into()
    }
}

/// The key in the data directory, if one was made.
pub(crate) fn api_key_file(data_dir: &Path) -> Option<String> {
    fs::read_to_string(data_dir.join(KEY_FILE)).ok()
}

fn check_length(key: &str, place: impl FnOnce() -> String) -> Result<(), ApiKeyError> {
    let length = key.chars().count();
    if length < SHORTEST_API_KEY {
        return Err(ApiKeyError::Short {
            place: place(),
            length,
        });
    }
    Ok(())
}

/// Finds out who is asking; refuses a wrong key.
async fn identify(
    state: &AppState,
    transport: Option<Transport>,
    headers: &HeaderMap,
) -> Result<Principal, ApiError> {
    match (transport, offered_key(headers)) {
        (Some(Transport::Socket), _) => Ok(Principal::Owner),
        (_, None) => Ok(Principal::Anonymous),
        (transport, Some(key)) => {
            check_key(state, transport, key).await?;
            Ok(Principal::KeyHolder)
        }
    }
}

async fn check_key(
    state: &AppState,
    transport: Option<Transport>,
    key: &str,
) -> Result<(), ApiError> {
    let address = match transport {
        Some(Transport::Tcp(address)) => Some(address),
        Some(Transport::Socket) | None => None,
    };
    if let Some(Err(too_many)) = address.map(|address| state.guesses.check(address)) {
        return Err(too_many_guesses(&too_many));
    }
    if state.api_key.matches(key) {
        return Ok(());
    }
    if let Some(address) = address {
        tokio::time::sleep(state.guesses.wrong(address, key)).await;
    }
    Err(unauthorized("the API key is wrong"))
}

/// REST: the key, or our own socket.
pub(super) async fn require_key(
    State(state): State<AppState>,
    mut request: Request,
    next: Next,
) -> Response {
    let transport = request.extensions().get().copied();
    match identify(&state, transport, request.headers()).await {
        Ok(Principal::Anonymous) => unauthorized("an API key is needed").into_response(),
        Ok(principal) => {
            request.extensions_mut().insert(principal);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

/// MCP: open to clients on this machine unless the config asks for the key.
pub(super) async fn of_mcp_client(
    state: &AppState,
    transport: Transport,
    headers: &HeaderMap,
) -> Result<Principal, ApiError> {
    if state.engine.config().require_mcp_auth {
        return match identify(state, Some(transport), headers).await? {
            Principal::Anonymous => {
                Err(unauthorized("this daemon asks MCP clients for its API key"))
            }
            principal => Ok(principal),
        };
    }
    // Some clients send an Authorization of their own to every server they know, so a wrong key is
    // none. It tells a client nothing either: a caller without one may do the same.
    Ok(match (transport, offered_key(headers)) {
        (Transport::Socket, _) => Principal::Owner,
        (_, Some(key)) if state.api_key.matches(key) => Principal::KeyHolder,
        _ => Principal::Anonymous,
    })
}

fn offered_key(headers: &HeaderMap) -> Option<&str> {
    if let Some(key) = headers.get(KEY_HEADER) {
        return key.to_str().ok();
    }
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

fn unauthorized(message: &'static str) -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", message).hint(
        "send it as `X-API-Key: KEY` or `Authorization: Bearer KEY`; it is in the file api_key of the data directory",
    )
}

fn too_many_guesses(too_many: &TooMany) -> ApiError {
    ApiError::new(
        StatusCode::TOO_MANY_REQUESTS,
        "TOO_MANY_WRONG_KEYS",
        "too many wrong API keys came from this address; none of it is looked at for now",
    )
    .retry_after(too_many.retry_after.as_secs() + 1)
    .hint("try again in a moment; the key is in the file api_key of the data directory")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_key_is_made_once_and_private() {
        let directory = tempfile::tempdir().unwrap();
        let first = ApiKey::load_or_create(None, directory.path()).unwrap();
        let again = ApiKey::load_or_create(None, directory.path()).unwrap();
        let text = first.0.unwrap().expose().to_owned();
        assert!(again.matches(&text));
        assert_eq!(text.len(), 64);
        let mode = fs::metadata(directory.path().join(KEY_FILE))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_configured_key_wins_and_only_the_whole_key_matches() {
        let directory = tempfile::tempdir().unwrap();
        let secret = "a secret of some length";
        let key = ApiKey::load_or_create(Some(&secret.into()), directory.path()).unwrap();
        assert!(key.matches(secret));
        for wrong in [
            "",
            &secret[1..],
            "a secret of some length2",
            "A SECRET OF SOME LENGTH",
        ] {
            assert!(!key.matches(wrong), "{wrong}");
        }
        assert!(!directory.path().join(KEY_FILE).exists());
    }

    #[test]
    fn an_empty_key_file_is_not_a_key() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(KEY_FILE), "\n").unwrap();
        let error = ApiKey::load_or_create(None, directory.path()).unwrap_err();
        assert!(matches!(error, ApiKeyError::Empty { .. }));
    }

    #[test]
    fn a_key_that_can_be_guessed_is_refused_wherever_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let short = "fifteen letters";
        let configured = ApiKey::load_or_create(Some(&short.into()), directory.path());
        fs::write(directory.path().join(KEY_FILE), short).unwrap();
        let in_file = ApiKey::load_or_create(None, directory.path());
        for refused in [configured, in_file] {
            let message = refused.unwrap_err().to_string();
            assert!(message.contains("only 15 characters"), "{message}");
            assert!(!message.contains(short), "{message}");
        }
    }

    #[test]
    fn both_headers_carry_the_key() {
        let mut headers = HeaderMap::new();
        assert_eq!(offered_key(&headers), None);
        headers.insert(header::AUTHORIZATION, "bearer abc".parse().unwrap());
        assert_eq!(offered_key(&headers), Some("abc"));
        headers.insert(header::AUTHORIZATION, "Basic abc".parse().unwrap());
        assert_eq!(offered_key(&headers), None);
        headers.insert(KEY_HEADER, "xyz".parse().unwrap());
        assert_eq!(offered_key(&headers), Some("xyz"));
    }
}
