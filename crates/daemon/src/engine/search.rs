//! `retrieve_tools`: the tools that fit a query, with as much detail as a budget allows.

use catalog::{Hit, LONGEST_QUERY, Query, Reasons, signature, summary};
use mcp::RawValue;
use policy::{Code, Hold, Provenance, Refusal, ServerName, Tier, ToolId, ToolVariant};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::in_force::InForce;
use super::tools::ToolState;
use super::view::{annotations_of, no_annotations};

const DEFAULT_LIMIT: usize = 10;
const MAX_LIMIT: usize = 50;

/// Characters of a description in answers that do not show everything.
const SUMMARY_LENGTH: usize = 300;
const COMPACT_SUMMARY_LENGTH: usize = 100;

/// How many servers a hint names.
const NAMED: usize = 10;

const USAGE: &str = "Run a tool with the variant in its call_with (call_tool_read, call_tool_write or \
call_tool_destructive): its name, its args, and an intent whose operation_type matches the variant.";
const NOTHING_FOUND: &str = "No tool matches. Try other words for what the tool should do, or leave \
out the server and lane filters.";

/// The arguments of `retrieve_tools`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchRequest {
    pub query: String,
    #[serde(default)]
    pub limit: Option<i64>,
    #[serde(default)]
    pub server: Option<String>,
    #[serde(default)]
    pub lane: Option<String>,
    #[serde(default)]
    pub detail: Option<Detail>,
    /// Whether each hit says why it was found. It is for people who write descriptions, and not an
    /// argument of the tool: an agent would pay for it with every search.
    #[serde(skip)]
    pub explain: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Detail {
    /// Whole schemas for the best hits until the budget is spent, signatures for the rest.
    #[default]
    Auto,
    Full,
    Compact,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SearchResult {
    pub tools: Vec<SearchHit>,
    /// How many tools match, of which `tools` are the best.
    pub total: usize,
    pub usage_instructions: &'static str,
    /// Shown only when there are any: servers that are being connected. Their tools are those they last had.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub starting: Vec<ServerName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SearchHit {
    #[schema(value_type = String)]
    pub name: ToolId,
    #[schema(value_type = String)]
    pub server: ServerName,
    pub description: String,
    pub score: f32,
    #[serde(rename = "inputSchema", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub input_schema: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    #[schema(value_type = Object)]
    pub annotations: Box<RawValue>,
    /// Not in compact answers, which leave it to `call_with` and `describe_tool`.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub tier: Option<KnownTier>,
    pub call_with: ToolVariant,
    /// Shown only when there is one: what keeps the tool from being called until the operator
    /// approves it. Its own words are withheld as long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// Shown only when true: the upstream is reconnecting and this is what it last announced.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stale: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub explanation: Option<Reasons>,
}

/// What a tool counts as, and who says so.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KnownTier {
    pub effective_tier: Option<Tier>,
    pub provenance: Provenance,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SearchError {
    #[error("query is empty; say what the tool should do")]
    EmptyQuery,
    #[error("limit is {0}; it must be between 1 and {MAX_LIMIT}")]
    Limit(i64),
    #[error("lane is '{0}'; it must be read, write or destructive")]
    Lane(String),
    #[error("unknown server '{name}'{}", did_you_mean(.near))]
    Server { name: String, near: Vec<ServerName> },
}

impl From<SearchError> for Refusal {
    fn from(error: SearchError) -> Self {
        let code = match error {
            SearchError::Server { .. } => Code::UnknownServer,
            SearchError::EmptyQuery | SearchError::Limit(_) | SearchError::Lane(_) => {
                Code::InvalidArgs
            }
        };
        Self::new(code, error.to_string())
    }
}

impl InForce {
    pub(crate) fn search(&self, request: &SearchRequest) -> Result<SearchResult, SearchError> {
        if request.query.trim().is_empty() {
            return Err(SearchError::EmptyQuery);
        }
        let limit = match request.limit {
            None => DEFAULT_LIMIT,
            Some(limit) => usize::try_from(limit)
                .ok()
                .filter(|limit| (1..=MAX_LIMIT).contains(limit))
                .ok_or(SearchError::Limit(limit))?,
        };
        let lane = request.lane.as_deref().map(parse_lane).transpose()?;
        let server = request
            .server
            .as_deref()
            .map(|name| self.server_named(name))
            .transpose()?;
        let on_lane = |tool: &catalog::ToolDefinition| {
            let state = || self.tool(&tool.id);
            lane.is_none_or(|lane| state().is_some_and(|state| state.call_with == lane))
        };
        let mut query = Query::new(&request.query, limit);
        query.server = server.as_ref();
        query.filter = Some(&on_lane);
        let found = self.catalog.search(&query);
        let mut budget = self.config.retrieve_tools.schema_budget;
        let detail = request.detail.unwrap_or_default();
        let mut tools: Vec<_> = found
            .hits
            .iter()
            .filter_map(|hit| Some(show(hit, self.tool(&hit.tool.id)?, detail, &mut budget)))
            .collect();
        if request.explain {
            for (tool, explained) in tools.iter_mut().zip(self.catalog.explain(&query)) {
                tool.explanation = Some(explained.reasons);
            }
        }
        let starting = self.starting(server.as_ref());
        let missing = self.missing(server.as_ref());
        Ok(SearchResult {
            hint: hint(&request.query, tools.is_empty(), &starting, &missing),
            tools,
            total: found.total,
            usage_instructions: USAGE,
            starting,
        })
    }

    fn server_named(&self, name: &str) -> Result<ServerName, SearchError> {
        let unknown = || SearchError::Server {
            name: name.to_owned(),
            near: self.catalog.suggest_servers(name),
        };
        let server: ServerName = name.parse().map_err(|_| unknown())?;
        self.server(&server).map(|_| server).ok_or_else(unknown)
    }
}

/// A hit with as much detail as is wanted and the budget for schemas allows.
fn show(hit: &Hit, state: &ToolState, detail: Detail, budget: &mut usize) -> SearchHit {
    let tool = &hit.tool;
    let schema = tool.input_schema.as_deref();
    let cost = schema.map_or(0, |schema| schema.get().len());
    let whole = match detail {
        Detail::Full => true,
        Detail::Compact => false,
        Detail::Auto => cost <= *budget,
    };
    if detail == Detail::Auto {
        // The first schema that does not fit ends the whole ones, so that the order of detail
        // is the order of rank.
        *budget = if whole { *budget - cost } else { 0 };
    }
    let description = match detail {
        Detail::Full => tool.description.clone(),
        Detail::Auto => summary(&tool.description, SUMMARY_LENGTH),
        Detail::Compact => summary(&tool.description, COMPACT_SUMMARY_LENGTH),
    };
    let open = state.hold.is_none();
    SearchHit {
        name: tool.id.clone(),
        server: tool.id.server().clone(),
        description: if open { description } else { state.reason() },
        score: rounded(hit.score),
        input_schema: schema.filter(|_| whole && open).map(ToOwned::to_owned),
        signature: (!whole && open).then(|| signature(schema)),
        annotations: if open {
            annotations_of(tool)
        } else {
            no_annotations()
        },
        tier: (detail != Detail::Compact).then(|| KnownTier {
            effective_tier: state.effective.tier(),
            provenance: state.effective.provenance(),
        }),
        call_with: state.call_with,
        hold: state.hold,
        stale: hit.stale,
        explanation: None,
    }
}

/// A lane may be named by its operation type or by its variant.
fn parse_lane(text: &str) -> Result<ToolVariant, SearchError> {
    ToolVariant::ALL
        .into_iter()
        .find(|variant| text == variant.as_str() || text == variant.operation_type().as_str())
        .ok_or_else(|| SearchError::Lane(text.to_owned()))
}

/// Further digits say nothing, and an agent pays for each of them.
fn rounded(score: f32) -> f32 {
    (score * 1000.0).round() / 1000.0
}

/// What an agent should do next. As long as a server has not answered, nothing is said not to exist.
fn hint(
    query: &str,
    nothing_found: bool,
    starting: &[ServerName],
    missing: &[ServerName],
) -> Option<String> {
    if query.len() > LONGEST_QUERY {
        let advice = "say in one sentence what the tool should do";
        return Some(format!(
            "Only the first {LONGEST_QUERY} bytes of the query count; {advice}."
        ));
    }
    if !starting.is_empty() {
        let known = if nothing_found {
            "No tool that is known so far matches"
        } else {
            "There may be more tools"
        };
        let starting = listed(starting);
        return Some(format!(
            "{known}: still starting are {starting}. Search again in a few seconds."
        ));
    }
    if nothing_found && !missing.is_empty() {
        let missing = listed(missing);
        return Some(format!("{NOTHING_FOUND} Not connected are {missing}."));
    }
    nothing_found.then(|| NOTHING_FOUND.to_owned())
}

/// The first names and the number of the rest.
fn listed(names: &[ServerName]) -> String {
    let shown: Vec<&str> = names.iter().take(NAMED).map(ServerName::as_str).collect();
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn did_you_mean(near: &[ServerName]) -> String {
    near.first()
        .map(|best| format!(". Did you mean '{best}'?"))
        .unwrap_or_default()
}
