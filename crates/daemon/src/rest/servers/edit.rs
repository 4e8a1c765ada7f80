//! Adding, changing, switching and removing servers. All of it is an edit of the config file.

use axum::extract::{Extension, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use config::{Document, ServerConfig, Sharing, Transport};
use mcp::check_object;
use policy::ServerName;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::check::{Check, try_out};
use super::entry::{self, ServerEntry, ServerPatch};
use super::{Server, find, parse_name, unknown_server};
use crate::http::{AppState, Principal};
use crate::rest::extract::{BodyText, Parameters, Segment};
use crate::rest::parameters::ServerPath;
use crate::rest::{Answer, ApiError, ApiResult, Data, ErrorBody};

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::rest) struct CreateQuery {
    /// Whether the server is only tried out: connected, asked for its tools, and let go.
    #[serde(default)]
    #[param(required = false)]
    dry_run: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::rest) struct Removed {
    #[schema(value_type = String)]
    name: ServerName,
}

/// Adds a server. A program can be added over the socket only, unless the config has
/// `allow_stdio_over_http`.
#[utoipa::path(
    post,
    path = "/api/v1/servers",
    tag = "servers",
    params(CreateQuery),
    request_body = ServerEntry,
    responses(
        (status = 200, description = "With `dry_run`: what the server offers.", body = Answer<Check>),
        (status = 201, description = "The server is added and being connected.", body = Answer<Server>),
        (status = 400, description = "The server is not valid.", body = ErrorBody),
        (status = 403, description = "A program cannot be added over TCP.", body = ErrorBody),
        (status = 409, description = "There is one of that name, or the config file is not valid.", body = ErrorBody),
        (status = 413, description = "The body is too long.", body = ErrorBody),
        (status = 422, description = "With `dry_run`: the server cannot be connected.", body = ErrorBody),
        (status = 503, description = "The file is changed, and the daemon is slow to follow.", body = ErrorBody),
    ),
)]
pub(in crate::rest) async fn create(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    Parameters(query): Parameters<CreateQuery>,
    BodyText(text): BodyText,
) -> Result<Response, ApiError> {
    let mut server = entry::read(&text)?;
    if !entry::says_sharing(&text) {
        server.sharing = Sharing::suggested(&server.transport);
    }
    check_program(&state, principal, &server)?;
    let name = server.name.clone();
    let taken = || {
        ApiError::conflict(
            "SERVER_EXISTS",
            format!("there is a server '{name}' already"),
        )
        .hint(format!(
            "choose another name, or first remove it with `mcpproxy upstream remove {name}`; PATCH /api/v1/servers/{name} changes it"
        ))
    };
    if query.dry_run {
        if state.engine.fleet().get(&name).is_some() {
            return Err(taken());
        }
        return Ok(try_out(&state.engine, server).await?.into_response());
    }
    let add = |document: &mut Document| {
        if document.server(&name).is_some() {
            return Err(taken());
        }
        document.set_server(&server);
        Ok(())
    };
    state.edit_config(add).await?;
    let upstream = find(&state.engine, name.as_str())?;
    let in_force = state.engine.current().await;
    let added = Data(Server::of(&state.engine, &in_force, &upstream));
    Ok((StatusCode::CREATED, added).into_response())
}

/// Changes a server. Only a change of how it is reached connects it anew.
#[utoipa::path(
    patch,
    path = "/api/v1/servers/{name}",
    tag = "servers",
    params(ServerPath),
    request_body(content = ServerPatch, content_type = "application/merge-patch+json"),
    responses(
        (status = 200, description = "The server as it is now.", body = Answer<Server>),
        (status = 400, description = "The change is not valid.", body = ErrorBody),
        (status = 403, description = "A program cannot be changed over TCP.", body = ErrorBody),
        (status = 404, description = "There is no such server.", body = ErrorBody),
        (status = 409, description = "The config file is not valid, or was changed meanwhile.", body = ErrorBody),
        (status = 413, description = "The body is too long.", body = ErrorBody),
        (status = 503, description = "The file is changed, and the daemon is slow to follow.", body = ErrorBody),
    ),
)]
pub(in crate::rest) async fn change(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    Segment(name): Segment,
    BodyText(text): BodyText,
) -> ApiResult<Server> {
    let patch = read_patch(&text)?;
    let changed = edit(&state, &name, |document, name| {
        let old = document.server(name).cloned();
        let (Some(old), Some(text)) = (old, document.patched_entry(name, &patch)) else {
            return Err(unknown_server(&state.engine, name.as_str()));
        };
        let new = entry::read(&text)?;
        if new.transport != old.transport {
            check_program(&state, principal, &new)?;
        }
        document.set_server(&new);
        Ok(())
    });
    changed.await.map(Data)
}

/// Switches a server on. The answer does not wait until it is connected: `GET
/// /api/v1/servers/{name}` shows how that goes.
#[utoipa::path(
    post,
    path = "/api/v1/servers/{name}/enable",
    tag = "servers",
    params(ServerPath),
    responses(
        (status = 202, description = "The server is switched on; its `state` says how far it is.", body = Answer<Server>),
        (status = 400, description = "That is not a name.", body = ErrorBody),
        (status = 404, description = "There is no such server.", body = ErrorBody),
        (status = 409, description = "The config file is not valid, or was changed meanwhile.", body = ErrorBody),
        (status = 503, description = "The file is changed, and the daemon is slow to follow.", body = ErrorBody),
    ),
)]
pub(in crate::rest) async fn enable(
    State(state): State<AppState>,
    Segment(name): Segment,
) -> Result<Response, ApiError> {
    Ok(switch(&state, &name, true).await?.accepted())
}

/// Switches a server off. It stays in the config. The answer does not wait until its process is
/// gone: `GET /api/v1/servers/{name}` says `stopping` until then.
#[utoipa::path(
    post,
    path = "/api/v1/servers/{name}/disable",
    tag = "servers",
    params(ServerPath),
    responses(
        (status = 202, description = "The server is switched off; its `state` says whether its process has ended.", body = Answer<Server>),
        (status = 400, description = "That is not a name.", body = ErrorBody),
        (status = 404, description = "There is no such server.", body = ErrorBody),
        (status = 409, description = "The config file is not valid, or was changed meanwhile.", body = ErrorBody),
        (status = 503, description = "The file is changed, and the daemon is slow to follow.", body = ErrorBody),
    ),
)]
pub(in crate::rest) async fn disable(
    State(state): State<AppState>,
    Segment(name): Segment,
) -> Result<Response, ApiError> {
    Ok(switch(&state, &name, false).await?.accepted())
}

/// Removes a server from the config. The answer does not wait until its process is gone: `GET
/// /api/v1/servers/{name}` says `stopping` until then, and 404 afterwards.
#[utoipa::path(
    delete,
    path = "/api/v1/servers/{name}",
    tag = "servers",
    params(ServerPath),
    responses(
        (status = 202, description = "The server is out of the config; its process may still be ending.", body = Answer<Removed>),
        (status = 400, description = "That is not a name.", body = ErrorBody),
        (status = 404, description = "There is no such server.", body = ErrorBody),
        (status = 409, description = "The config file is not valid, or was changed meanwhile.", body = ErrorBody),
        (status = 503, description = "The file is changed, and the daemon is slow to follow.", body = ErrorBody),
    ),
)]
pub(in crate::rest) async fn remove(
    State(state): State<AppState>,
    Segment(name): Segment,
) -> Result<Response, ApiError> {
    let parsed = parse_name(&name)?;
    let remove = |document: &mut Document| {
        let removed = document.remove_server(&parsed);
        removed
            .then_some(())
            .ok_or_else(|| unknown_server(&state.engine, &name))
    };
    state.edit_config(remove).await?;
    let removed = Data(Removed { name: parsed });
    Ok((StatusCode::ACCEPTED, removed).into_response())
}

async fn switch(state: &AppState, name: &str, enabled: bool) -> Result<Server, ApiError> {
    edit(state, name, |document, name| {
        let Some(server) = document.server(name).cloned() else {
            return Err(unknown_server(&state.engine, name.as_str()));
        };
        document.set_server(&ServerConfig { enabled, ..server });
        Ok(())
    })
    .await
}

/// Edits a server that is in the config and shows it as it is then.
async fn edit(
    state: &AppState,
    name: &str,
    change: impl FnOnce(&mut Document, &ServerName) -> Result<(), ApiError>,
) -> Result<Server, ApiError> {
    let parsed = parse_name(name)?;
    state
        .edit_config(|document| change(document, &parsed))
        .await?;
    let upstream = find(&state.engine, name)?;
    let in_force = state.engine.current().await;
    Ok(Server::of(&state.engine, &in_force, &upstream))
}

/// A caller that can name a program runs it as the daemon's user, which a key alone does not allow.
fn check_program(
    state: &AppState,
    principal: Principal,
    server: &ServerConfig,
) -> Result<(), ApiError> {
    let is_program = matches!(server.transport, Transport::Stdio { .. });
    let allowed = principal == Principal::Owner || state.engine.config().allow_stdio_over_http;
    if is_program && !allowed {
        let message = "a server that is a program cannot be added or changed over TCP";
        return Err(ApiError::forbidden("STDIO_NOT_ALLOWED", message).hint(
            "use `mcpproxy upstream add`, edit the config file, or set `allow_stdio_over_http` in it",
        ));
    }
    Ok(())
}

fn read_patch(text: &str) -> Result<Map<String, Value>, ApiError> {
    let hint = "send an object with what to change, as {\"timeout\": 30}";
    let invalid = |error: &serde_json::Error| {
        ApiError::bad_request(format!("the change is not valid: {error}")).hint(hint)
    };
    check_object(text).map_err(|error| invalid(&error))?;
    let patch: Map<String, Value> = serde_json::from_str(text).map_err(|error| invalid(&error))?;
    if patch.contains_key("name") {
        return Err(ApiError::bad_request("a server cannot be renamed")
            .hint("add it under the new name and remove the old one"));
    }
    Ok(patch)
}
