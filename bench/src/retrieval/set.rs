//! One set: a list of tools, and queries with known answers.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use catalog::{Query, ServerTools, Snapshot, ToolDefinition};
use policy::{ServerName, ToolId};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::measures::Measures;

/// A set as it was read.
pub(crate) struct RetrievalSet {
    pub(crate) servers: Vec<ServerTools>,
    pub(crate) queries: Vec<KnownQuery>,
    /// The place of each tool in the corpus, which breaks ties.
    order: HashMap<ToolId, usize>,
    /// From ids in the data to ours, which differ where a server's name is not one for us.
    ids: HashMap<String, ToolId>,
}

#[derive(Deserialize)]
pub(crate) struct KnownQuery {
    pub(crate) query: String,
    /// Each group is one thing to find; any tool of the group will do.
    groups: Vec<Vec<String>>,
}

#[derive(Deserialize)]
struct CorpusLine {
    server: String,
    name: String,
}

impl RetrievalSet {
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let mut servers: HashMap<ServerName, Vec<Arc<ToolDefinition>>> = HashMap::new();
        let mut order = HashMap::new();
        let mut ids = HashMap::new();
        for raw in read_lines::<Box<RawValue>>(&folder.join("corpus.jsonl"))? {
            let line: CorpusLine = serde_json::from_str(raw.get())?;
            // The data takes names from directories of servers, and those may hold spaces.
            let server: ServerName = line.server.replace(' ', "-").parse()?;
            let tool = Arc::new(ToolDefinition::parse(&server, raw)?);
            order.insert(tool.id.clone(), order.len());
            ids.insert(format!("{}:{}", line.server, line.name), tool.id.clone());
            servers.entry(server).or_default().push(tool);
        }
        let servers = servers.into_iter().map(|(server, tools)| ServerTools {
            server,
            tools: tools.into(),
            stale: false,
        });
        Ok(Self {
            servers: servers.collect(),
            queries: read_lines(&folder.join("queries.jsonl"))?,
            order,
            ids,
        })
    }

    /// The measures of all queries, and how many tools a query finds on average.
    #[expect(clippy::cast_precision_loss, reason = "thousands of tools at most")]
    pub(crate) fn measure(&self, snapshot: &Snapshot) -> (Measures, f64) {
        let (measures, hits): (Vec<_>, Vec<_>) = self
            .queries
            .iter()
            .map(|query| self.measure_query(snapshot, query))
            .unzip();
        let hits = hits.iter().sum::<usize>() as f64 / hits.len().max(1) as f64;
        (Measures::mean(&measures), hits)
    }

    fn measure_query(&self, snapshot: &Snapshot, query: &KnownQuery) -> (Measures, usize) {
        let mut hits = snapshot.search(&Query::new(&query.query, usize::MAX)).hits;
        // The search breaks ties by id, the published figures by the place in the corpus.
        hits.sort_by(|a, b| {
            let place = |id| self.order.get(id);
            b.score
                .total_cmp(&a.score)
                .then_with(|| place(&a.tool.id).cmp(&place(&b.tool.id)))
        });
        let ranks: HashMap<_, _> = hits.iter().map(|hit| &hit.tool.id).zip(1..).collect();
        let rank = |id: &String| ranks.get(self.ids.get(id)?).copied();
        let groups = query.groups.iter();
        let ranks = groups.map(|group| group.iter().filter_map(rank).min());
        (Measures::of(&ranks.collect::<Vec<_>>()), hits.len())
    }
}

fn read_lines<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Vec<T>> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| serde_json::from_str(line).with_context(|| format!("in {}", path.display())))
        .collect()
}
