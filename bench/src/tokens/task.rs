//! One task: an agent that knows what it wants, finds the tool for it and calls it.

use anyhow::Result;
use serde_json::{Value, json};

use super::agent::Agent;
use super::counter::Counter;

/// Characters of a description that make a query: about a sentence.
const QUERY_LENGTH: usize = 100;

/// A tool that is wanted, and how it is asked for.
#[derive(Debug)]
pub(super) struct Task {
    wanted: String,
    query: String,
}

/// What was spent on a task, in tokens.
#[derive(Debug, Default)]
pub(super) struct Spent {
    /// The ten best hits by detail; none where fewer were found.
    pub(super) ten_hits: Option<TenHits>,
    /// The query and its answer.
    pub(super) search: usize,
    /// The names and what describes them, if the schema was not among the hits.
    pub(super) describe: Option<usize>,
    /// The call beside its arguments: lane, name and intent.
    pub(super) call: usize,
    /// Whether the tool was among the hits; else the task is lost.
    pub(super) found: bool,
}

#[derive(Debug, Default)]
pub(super) struct TenHits {
    pub(super) compact: usize,
    pub(super) auto: usize,
    pub(super) full: usize,
}

impl Task {
    /// Tasks for `count` of the tools, spread evenly: what a tool's description begins with is asked
    /// for, so each has an answer.
    pub(super) fn spread(tools: &[(String, Value)], count: usize) -> Vec<Self> {
        let step = tools.len().div_ceil(count.max(1)).max(1);
        let described = tools.iter().filter_map(|(name, definition)| {
            let description = definition["description"].as_str()?;
            let query = catalog::summary(description, QUERY_LENGTH);
            (!query.trim().is_empty()).then(|| Self {
                wanted: name.clone(),
                query,
            })
        });
        described.step_by(step).collect()
    }

    pub(super) async fn carry_out(&self, agent: &mut Agent, counter: &Counter) -> Result<Spent> {
        let mut ten_hits = TenHits::default();
        let mut complete = true;
        let mut search = 0;
        let mut hit = Value::Null;
        for detail in ["compact", "full", "auto"] {
            let arguments = json!({"query": self.query, "detail": detail});
            let answer = agent.call("retrieve_tools", &arguments).await?;
            let tokens = counter.text(&answer);
            let answer: Value = serde_json::from_str(&answer)?;
            let hits = answer["tools"].as_array().map_or(&[][..], Vec::as_slice);
            complete &= hits.len() == 10;
            match detail {
                "compact" => ten_hits.compact = tokens,
                "full" => ten_hits.full = tokens,
                _ => {
                    ten_hits.auto = tokens;
                    search = tokens + counter.json(&json!({"query": self.query}))?;
                    let wanted = hits.iter().find(|hit| hit["name"] == self.wanted);
                    hit = wanted.cloned().unwrap_or_default();
                }
            }
        }
        let mut spent = Spent {
            ten_hits: complete.then_some(ten_hits),
            search,
            found: hit.is_object(),
            ..Spent::default()
        };
        if spent.found && hit["inputSchema"].is_null() {
            let arguments = json!({"names": [self.wanted]});
            let answer = agent.call("describe_tool", &arguments).await?;
            spent.describe = Some(counter.json(&arguments)? + counter.text(&answer));
        }
        spent.call = counter.json(&json!({
            "name": self.wanted,
            "args": {},
            "intent": {"operation_type": "read"}
        }))?;
        Ok(spent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_spread_over_all_tools_that_say_what_they_do() {
        let tool = |number: usize| {
            let description = json!(format!(
                "Does {number}. And more of it. {}",
                "X".repeat(200)
            ));
            (format!("s:t{number}"), json!({"description": description}))
        };
        let mut tools: Vec<_> = (0..100).map(tool).collect();
        tools.push(("s:silent".to_owned(), json!({})));
        let tasks = Task::spread(&tools, 10);
        assert!((8..=10).contains(&tasks.len()), "{tasks:?}");
        assert_eq!(tasks[0].query, "Does 0. And more of it.");
        assert!(Task::spread(&tools[100..], 10).is_empty());
    }
}
