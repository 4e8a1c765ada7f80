//! Parameters as the API document describes them. They exist only to be described: those of the
//! log are read by `activity`, and names by `policy`, so that a mistake gets the same answer
//! everywhere.
#![expect(dead_code, reason = "described, never made")]

use activity::{GroupBy, Period, RecordType, Source, Status};
use policy::{DataSensitivity, OperationType};
use utoipa::IntoParams;

/// A server in the path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct ServerPath {
    /// The name of a server.
    #[param(
        max_length = 64,
        pattern = "^[A-Za-z0-9][A-Za-z0-9.-]*(_[A-Za-z0-9.-]+)*$"
    )]
    name: String,
}

/// A tool in the path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct ToolPath {
    /// server:tool
    #[param(
        pattern = "^(?=[^:]{1,64}:)[A-Za-z0-9][A-Za-z0-9.-]*(_[A-Za-z0-9.-]+)*:[^\\u0000-\\u001f\\u007f-\\u009f]{1,128}$"
    )]
    id: String,
}

/// The tools that an override is for.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct OverridePath {
    /// server:tool, with `*` and `?`
    #[param(
        pattern = "^(?=[^:]{1,64}:)[A-Za-z0-9*?][A-Za-z0-9.*?-]*(_[A-Za-z0-9.*?-]+)*:[^\\u0000-\\u001f\\u007f-\\u009f]{1,128}$"
    )]
    id: String,
}

/// A record in the path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct RecordPath {
    /// The id of a record, 26 letters and digits.
    #[param(pattern = "^[0-7][0-9A-HJKMNP-TV-Z]{25}$")]
    id: String,
}

/// The conditions that every look at the log knows. All that are given must hold.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct FilterParameters {
    /// Only records of this type.
    #[param(rename = "type")]
    record_type: Option<RecordType>,
    /// Only this server.
    #[param(min_length = 1)]
    server: Option<String>,
    /// Only this tool, by its name without the server's.
    #[param(min_length = 1)]
    tool: Option<String>,
    /// Only records that stand so.
    status: Option<Status>,
    /// Only calls that declared this operation type.
    intent_type: Option<OperationType>,
    /// Only calls that declared this data sensitivity.
    sensitivity: Option<DataSensitivity>,
    /// Only this session.
    #[param(min_length = 1)]
    session_id: Option<String>,
    /// Only this request.
    #[param(min_length = 1)]
    request_id: Option<String>,
    /// Only records from this source.
    source: Option<Source>,
    /// Only this client.
    #[param(min_length = 1)]
    client: Option<String>,
    /// Not before this time, and not after `end_time`.
    #[param(value_type = Option<String>, format = DateTime)]
    start_time: Option<String>,
    /// Not after this time.
    #[param(value_type = Option<String>, format = DateTime)]
    end_time: Option<String>,
    /// Up to 16 words, each in the tool's name, the arguments, the error or the reason.
    #[param(pattern = "[0-9A-Za-z]")]
    q: Option<String>,
}

/// Where a page begins and how long it is.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PageParameters {
    /// How many records; 50 unless given.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<u32>,
    /// Skip so many records. Not together with `cursor`.
    #[param(minimum = 0, maximum = 10_000_000)]
    offset: Option<u64>,
    /// `next_cursor` of the page before.
    #[param(pattern = "^[0-9a-f]{26}$")]
    cursor: Option<String>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct SummaryParameters {
    /// How far back; 24h unless given.
    period: Option<Period>,
    /// What is summed up; by server unless given.
    group_by: Option<GroupBy>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct UsageParameters {
    /// How far back; 24h unless given.
    period: Option<Period>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ExportParameters {
    /// json, jsonl or csv; json unless given.
    #[param(pattern = "^(json|jsonl|csv)$")]
    format: Option<String>,
    /// Whether arguments and responses come along.
    include_bodies: Option<bool>,
    /// At most so many records.
    #[param(minimum = 1)]
    limit: Option<u64>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct VerifyParameters {
    /// A head that was noted elsewhere: 64 hexadecimal digits.
    #[param(pattern = "^[0-9a-f]{64}$")]
    head: Option<String>,
}
