//! `/audit`: what the auditor makes of the tools, in the format that is asked for.

use auditor::{FailOn, Manifest, Violation, render};
use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use catalog::ToolDefinition;
use mcp::RawValue;
use policy::ServerName;
use serde::{Deserialize, Serialize};

use super::servers::unknown_server;
use super::{ApiError, Data};
use crate::engine::Audited;
use crate::http::AppState;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    /// The report in the envelope of every answer.
    #[default]
    Json,
    Markdown,
    Sarif,
    Junit,
    /// The tiers as a manifest.
    Manifest,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AuditQuery {
    server: Option<String>,
    #[serde(default)]
    format: Format,
    fail_on: Option<String>,
}

/// Tools to audit that are not those of an upstream, and a manifest to check tools against.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AuditBody {
    tools: Option<SavedTools>,
    manifest: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedTools {
    server: String,
    definitions: Vec<Box<RawValue>>,
}

#[derive(Debug, Serialize)]
struct AuditData<'a> {
    #[serde(flatten)]
    report: &'a auditor::Report,
    /// What does not agree with the manifest, if one was given.
    violations: &'a [Violation],
    /// Whether the report has findings as severe as `fail_on`, or the manifest is violated.
    failed: bool,
}

/// Audits the tools of all upstreams, or of one.
pub(super) async fn show(
    State(state): State<AppState>,
    query: Result<Query<AuditQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(query) = query.map_err(|error| ApiError::bad_request(error.body_text()))?;
    answer(&state, &query, AuditBody::default())
}

/// Audits a saved list of tools, or checks tools against a manifest.
pub(super) async fn check(
    State(state): State<AppState>,
    query: Result<Query<AuditQuery>, QueryRejection>,
    body: Result<Json<AuditBody>, JsonRejection>,
) -> Result<Response, ApiError> {
    let Query(query) = query.map_err(|error| ApiError::bad_request(error.body_text()))?;
    let Json(body) = body.map_err(|error| ApiError::bad_request(error.body_text()))?;
    answer(&state, &query, body)
}

fn answer(state: &AppState, query: &AuditQuery, body: AuditBody) -> Result<Response, ApiError> {
    let fail_on = match query.fail_on.as_deref() {
        None => FailOn::Error,
        Some(text) => text.parse().map_err(|error: auditor::UnknownFailOn| {
            ApiError::bad_request(format!("invalid fail_on: {error}"))
        })?,
    };
    let manifest = body.manifest.as_deref().map(Manifest::parse).transpose();
    let manifest = manifest.map_err(|error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        let message = format!("{error}{}", cause.unwrap_or_default());
        ApiError::new(StatusCode::BAD_REQUEST, "INVALID_MANIFEST", message)
            .hint("write one with `mcpproxy audit --write-manifest FILE`")
    })?;
    let audited = if let Some(saved) = body.tools {
        let definitions = saved.parse()?;
        state
            .engine
            .audit_definitions(&definitions, manifest.as_ref())
    } else {
        let server = query.server.as_deref();
        let server = server.map(|name| known_server(state, name)).transpose()?;
        state.engine.audit(server.as_ref(), manifest.as_ref())
    };
    Ok(encode(&audited, query.format, fail_on))
}

fn encode(audited: &Audited, format: Format, fail_on: FailOn) -> Response {
    let Audited { report, violations } = audited;
    let text = |content_type: &'static str, text: String| {
        ([(header::CONTENT_TYPE, content_type)], text).into_response()
    };
    match format {
        Format::Json => Data(AuditData {
            report,
            violations,
            failed: report.fails(fail_on) || !violations.is_empty(),
        })
        .into_response(),
        Format::Markdown => text("text/markdown; charset=utf-8", render::markdown(report)),
        Format::Sarif => text(
            "application/sarif+json",
            format!("{:#}\n", render::sarif(report)),
        ),
        Format::Junit => text("application/xml", render::junit(report, fail_on)),
        Format::Manifest => match Manifest::from_report(report) {
            Some(manifest) => text("application/json", manifest.to_json()),
            None => ApiError::not_found("there is no tool to write a manifest of").into_response(),
        },
    }
}

fn known_server(state: &AppState, name: &str) -> Result<ServerName, ApiError> {
    let server = name
        .parse()
        .ok()
        .filter(|server| state.engine.fleet().get(server).is_some());
    server.ok_or_else(|| unknown_server(&state.engine, name))
}

// === impl SavedTools ===

impl SavedTools {
    fn parse(self) -> Result<Vec<ToolDefinition>, ApiError> {
        let server: ServerName = self
            .server
            .parse()
            .map_err(|error: policy::ServerNameError| ApiError::bad_request(error.to_string()))?;
        let definitions = self.definitions.into_iter().enumerate();
        definitions
            .map(|(index, raw)| {
                ToolDefinition::parse(&server, raw).map_err(|error| {
                    ApiError::bad_request(format!("tool {index} of the list: {error}"))
                })
            })
            .collect()
    }
}
