//! `/audit`: what the auditor makes of the tools, in the format that is asked for.

use auditor::{FailOn, Manifest, Violation, render};
use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use catalog::ToolDefinition;
use mcp::RawValue;
use policy::ServerName;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::extract::Parameters;
use super::servers::known_server;
use super::{Answer, ApiError, Data, ErrorBody};
use crate::engine::Audited;
use crate::http::AppState;
use crate::off_thread::off_thread;

/// A manifest is JSON and not in the envelope, so it must not look like the report.
const MANIFEST: &str = "application/vnd.mcpproxy.manifest+json";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
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

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AuditQuery {
    /// Only this server.
    server: Option<String>,
    /// How the report is written.
    #[serde(default)]
    #[param(inline, required = false)]
    format: Format,
    /// error, warning or none: from which severity on the audit counts as failed.
    #[param(pattern = "^(error|warning|none)$")]
    fail_on: Option<String>,
}

/// Tools to audit that are not those of an upstream, and a manifest to check tools against.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AuditBody {
    tools: Option<SavedTools>,
    /// The text of a manifest.
    manifest: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SavedTools {
    /// The server that the tools are said to be of.
    #[schema(
        max_length = 64,
        pattern = "^[A-Za-z0-9][A-Za-z0-9.-]*(_[A-Za-z0-9.-]+)*$"
    )]
    server: String,
    /// Tools as an answer to `tools/list` has them.
    #[schema(value_type = Vec<Object>)]
    definitions: Vec<Box<RawValue>>,
}

/// The same as it is described.
#[derive(ToSchema)]
#[schema(as = AuditData)]
#[expect(dead_code, reason = "described, never made")]
struct AuditAnswer {
    tools: Vec<auditor::ToolReport>,
    summary: auditor::Summary,
    /// What does not agree with the manifest, if one was given.
    violations: Vec<Violation>,
    /// Whether the report has findings as severe as `fail_on`, or the manifest is violated.
    failed: bool,
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
#[utoipa::path(
    get,
    path = "/api/v1/audit",
    tag = "tools",
    params(AuditQuery),
    responses(
        (
            status = 200,
            description = "The report; in other formats than json, without an envelope.",
            content(
                (Answer<AuditAnswer> = "application/json"),
                (String = "text/markdown"),
                (Object = "application/sarif+json"),
                (String = "application/xml"),
                (Object = "application/vnd.mcpproxy.manifest+json"),
            ),
        ),
        (status = 400, description = "A parameter is not understood.", body = ErrorBody),
        (status = 404, description = "There is no such server, or no tool for a manifest.", body = ErrorBody),
    ),
)]
pub(super) async fn show(
    State(state): State<AppState>,
    Parameters(query): Parameters<AuditQuery>,
) -> Result<Response, ApiError> {
    answer(&state, &query, AuditBody::default()).await
}

/// Audits a saved list of tools, or checks tools against a manifest.
#[utoipa::path(
    post,
    path = "/api/v1/audit",
    tag = "tools",
    params(AuditQuery),
    request_body = AuditBody,
    responses(
        (
            status = 200,
            description = "The report; in other formats than json, without an envelope.",
            content(
                (Answer<AuditAnswer> = "application/json"),
                (String = "text/markdown"),
                (Object = "application/sarif+json"),
                (String = "application/xml"),
                (Object = "application/vnd.mcpproxy.manifest+json"),
            ),
        ),
        (status = 400, description = "The tools or the manifest are not understood.", body = ErrorBody),
        (status = 404, description = "There is no such server, or no tool for a manifest.", body = ErrorBody),
    ),
)]
pub(super) async fn check(
    State(state): State<AppState>,
    Parameters(query): Parameters<AuditQuery>,
    body: Result<Json<AuditBody>, JsonRejection>,
) -> Result<Response, ApiError> {
    let Json(body) = body.map_err(|error| ApiError::bad_request(error.body_text()))?;
    answer(&state, &query, body).await
}

async fn answer(
    state: &AppState,
    query: &AuditQuery,
    body: AuditBody,
) -> Result<Response, ApiError> {
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
        let in_force = state.engine.in_force();
        off_thread(move || in_force.audit_definitions(&definitions, manifest.as_ref())).await
    } else {
        let server = query.server.as_deref();
        let server = server
            .map(|name| known_server(&state.engine, name))
            .transpose()?;
        let in_force = state.engine.current().await;
        off_thread(move || in_force.audit(server.as_ref(), manifest.as_ref())).await
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
            Some(manifest) => text(MANIFEST, manifest.to_json()),
            None => ApiError::not_found("there is no tool to write a manifest of").into_response(),
        },
    }
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
