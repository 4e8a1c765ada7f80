//! `/activity`: listing, showing, summing up, exporting and verifying what happened.

use activity::{
    ActivityId, ExportFormat, ExportRequest, Filter, FilterError, GroupBy, Hash, ListRequest, Page,
    Period, Record, StoreError, Summary, Usage, Verification,
};
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Serialize;
use url::form_urlencoded;
use utoipa::ToSchema;

use super::extract::Segment;
use super::parameters::{
    ExportParameters, FilterParameters, PageParameters, RecordPath, SummaryParameters,
    UsageParameters, VerifyParameters,
};
use super::{Answer, ApiError, ApiResult, Data, ErrorBody};
use crate::http::AppState;

/// The parameters of a request, in order.
type Pairs = Vec<(String, String)>;

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Verified {
    /// Whether nothing was found wrong, and the head that was asked about was found.
    valid: bool,
    #[serde(flatten)]
    verification: Verification,
}

/// Lists records, newest first.
#[utoipa::path(
    get,
    path = "/api/v1/activity",
    tag = "activity",
    params(FilterParameters, PageParameters),
    responses(
        (status = 200, description = "A page of records.", body = Answer<Page>),
        (status = 400, description = "A filter is not understood; the message names the allowed values.", body = ErrorBody),
        (status = 503, description = "The log cannot be read.", body = ErrorBody),
    ),
)]
pub(super) async fn list(
    State(state): State<AppState>,
    RawQuery(query): RawQuery,
) -> ApiResult<Page> {
    let pairs = parse_pairs(query.as_deref())?;
    let request = ListRequest::from_pairs(borrowed(&pairs))?;
    Ok(Data(state.engine.activity().page(request).await?))
}

/// Shows one record, arguments and response included.
#[utoipa::path(
    get,
    path = "/api/v1/activity/{id}",
    tag = "activity",
    params(RecordPath),
    responses(
        (status = 200, description = "The record.", body = Answer<Record>),
        (status = 400, description = "That is not an id.", body = ErrorBody),
        (status = 404, description = "There is no such record, or no longer.", body = ErrorBody),
        (status = 503, description = "The log cannot be read.", body = ErrorBody),
    ),
)]
pub(super) async fn show(State(state): State<AppState>, Segment(id): Segment) -> ApiResult<Record> {
    let parsed: ActivityId = id.parse().map_err(|_| {
        ApiError::bad_request(format!("'{id}' is not the id of a record"))
            .hint("an id has 26 letters and digits, as `mcpproxy activity list` shows it")
    })?;
    let record = state.engine.activity().get(parsed).await?;
    record.map(Data).ok_or_else(|| {
        ApiError::not_found(format!("there is no record {id}"))
            .hint("it may have been removed by retention")
    })
}

/// Sums up a period by server, tool, status, intent type, client or hour.
#[utoipa::path(
    get,
    path = "/api/v1/activity/summary",
    tag = "activity",
    params(SummaryParameters),
    responses(
        (status = 200, description = "The sums.", body = Answer<Summary>),
        (status = 400, description = "A filter is not understood; the message names the allowed values.", body = ErrorBody),
        (status = 503, description = "The log cannot be read.", body = ErrorBody),
    ),
)]
pub(super) async fn summary(
    State(state): State<AppState>,
    RawQuery(query): RawQuery,
) -> ApiResult<Summary> {
    let (mut period, mut group_by) = (Period::Day, GroupBy::Server);
    for (name, value) in parse_pairs(query.as_deref())? {
        match name.as_str() {
            "period" => period = Period::parse(&value)?,
            "group_by" => group_by = GroupBy::parse(&value)?,
            _ => return Err(unknown(&name, &["period", "group_by"])),
        }
    }
    Ok(Data(
        state.engine.activity().summary(period, group_by).await?,
    ))
}

/// How much each tool is used: calls, errors, the 95th percentile of the duration, bytes.
#[utoipa::path(
    get,
    path = "/api/v1/activity/usage",
    tag = "activity",
    params(UsageParameters),
    responses(
        (status = 200, description = "The tools, most used first.", body = Answer<Usage>),
        (status = 400, description = "A filter is not understood; the message names the allowed values.", body = ErrorBody),
        (status = 503, description = "The log cannot be read.", body = ErrorBody),
    ),
)]
pub(super) async fn usage(
    State(state): State<AppState>,
    RawQuery(query): RawQuery,
) -> ApiResult<Usage> {
    let mut period = Period::Day;
    for (name, value) in parse_pairs(query.as_deref())? {
        match name.as_str() {
            "period" => period = Period::parse(&value)?,
            _ => return Err(unknown(&name, &["period"])),
        }
    }
    Ok(Data(state.engine.activity().usage(period).await?))
}

/// Streams all matching records as a file.
#[utoipa::path(
    get,
    path = "/api/v1/activity/export",
    tag = "activity",
    params(FilterParameters, ExportParameters),
    responses(
        (
            status = 200,
            description = "The records, oldest first, without an envelope.",
            content(
                (Vec<Record> = "application/json"),
                (String = "application/x-ndjson"),
                (String = "text/csv"),
            ),
        ),
        (status = 400, description = "A filter is not understood; the message names the allowed values.", body = ErrorBody),
        (status = 503, description = "The log cannot be read.", body = ErrorBody),
    ),
)]
pub(super) async fn export(
    State(state): State<AppState>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let mut format = ExportFormat::Json;
    let mut include_bodies = false;
    let mut limit = None;
    let mut filters = Pairs::new();
    for (name, value) in parse_pairs(query.as_deref())? {
        match name.as_str() {
            "format" => format = ExportFormat::parse(&value)?,
            "include_bodies" => include_bodies = parse_bool("include_bodies", &value)?,
            "limit" => limit = Some(parse_number("limit", &value)?),
            known if Filter::PARAMETERS.contains(&known) => filters.push((name, value)),
            _ => {
                let mut known = Filter::PARAMETERS.to_vec();
                known.extend(["format", "include_bodies", "limit"]);
                return Err(unknown(&name, &known));
            }
        }
    }
    let export = state.engine.activity().export(ExportRequest {
        filter: Filter::from_pairs(borrowed(&filters))?,
        format,
        include_bodies,
        limit,
    });
    let chunks = stream::try_unfold(export, |mut export| async move {
        let chunk = export.next_chunk().await?;
        Ok::<_, activity::ExportError>(chunk.map(|chunk| (Bytes::from(chunk), export)))
    });
    let content_type = [(header::CONTENT_TYPE, format.content_type())];
    Ok((content_type, Body::from_stream(chunks)).into_response())
}

/// Walks the hash chain and says whether the log is as it was written.
#[utoipa::path(
    get,
    path = "/api/v1/activity/verify",
    tag = "activity",
    params(VerifyParameters),
    responses(
        (status = 200, description = "What was found.", body = Answer<Verified>),
        (status = 400, description = "A filter is not understood; the message names the allowed values.", body = ErrorBody),
        (status = 503, description = "The log cannot be read.", body = ErrorBody),
    ),
)]
pub(super) async fn verify(
    State(state): State<AppState>,
    RawQuery(query): RawQuery,
) -> ApiResult<Verified> {
    let mut head = None;
    for (name, value) in parse_pairs(query.as_deref())? {
        match name.as_str() {
            "head" => {
                let hash: Hash = value.parse().map_err(|_| {
                    ApiError::bad_request(format!("'{value}' is not a hash"))
                        .hint("a head has 64 hexadecimal digits, as an earlier verify printed it")
                })?;
                head = Some(hash);
            }
            _ => return Err(unknown(&name, &["head"])),
        }
    }
    let verification = state.engine.activity().verify(head).await?;
    Ok(Data(Verified {
        valid: verification.holds(),
        verification,
    }))
}

/// The parameters, each of which may be given once: of two, one would be ignored.
pub(super) fn parse_pairs(query: Option<&str>) -> Result<Pairs, FilterError> {
    let mut pairs = Pairs::new();
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        if pairs.iter().any(|(given, _)| *given == name) {
            let name = name.into_owned();
            return Err(FilterError::Repeated { name });
        }
        pairs.push((name.into_owned(), value.into_owned()));
    }
    Ok(pairs)
}

pub(super) fn borrowed(pairs: &Pairs) -> impl Iterator<Item = (&str, &str)> {
    pairs
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
}

fn unknown(name: &str, known: &[&'static str]) -> ApiError {
    FilterError::UnknownParameter {
        name: name.to_owned(),
        known: known.to_vec(),
    }
    .into()
}

fn parse_number(parameter: &'static str, value: &str) -> Result<u64, ApiError> {
    // Not up to what 64 bits hold: most languages read numbers with a sign.
    let number = value.parse::<i64>().ok();
    number
        .filter(|number| *number > 0)
        .and_then(|number| u64::try_from(number).ok())
        .ok_or_else(|| {
            let message = format!("invalid {parameter} '{value}'; use a whole number from 1 up");
            ApiError::new(StatusCode::BAD_REQUEST, "INVALID_FILTER", message)
        })
}

fn parse_bool(parameter: &'static str, value: &str) -> Result<bool, ApiError> {
    match value {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(FilterError::UnknownWord {
            parameter,
            value: value.to_owned(),
            allowed: vec!["true", "false"],
        }
        .into()),
    }
}

impl From<FilterError> for ApiError {
    fn from(error: FilterError) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "INVALID_FILTER", error.to_string())
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        let message = format!("{error}{}", cause.unwrap_or_default());
        tracing::error!(%message, "the activity log did not answer");
        let hint = match error {
            StoreError::Corrupt(_) => {
                "start `mcpproxy serve` anew, which keeps the damaged log aside and begins another"
            }
            StoreError::Full => "free some disk space",
            _ => "see what is wrong with `mcpproxy doctor`",
        };
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Self::new(status, "ACTIVITY_UNAVAILABLE", message).hint(hint)
    }
}
