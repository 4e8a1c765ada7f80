//! The search as others see it: a query, and the hits that answer it.

use std::sync::Arc;

use policy::ServerName;

use crate::query::ParsedQuery;
use crate::ranking::Ranking;
use crate::snapshot::Snapshot;
use crate::tool::ToolDefinition;

/// What to look for, and among which tools.
#[derive(Clone, Copy)]
pub struct Query<'a> {
    pub text: &'a str,
    /// At most this many hits; [`SearchResults::total`] counts the others too.
    pub limit: usize,
    /// Only tools of this upstream.
    pub server: Option<&'a ServerName>,
    /// Only tools for which this is true.
    pub filter: Option<&'a dyn Fn(&ToolDefinition) -> bool>,
}

/// The best hits, the best one first; equal scores are ordered by id.
#[derive(Debug, Clone, Default)]
pub struct SearchResults {
    pub hits: Vec<Hit>,
    /// How many tools match, before the cut to the limit. Tools that are far behind the best one
    /// do not count as matching.
    pub total: usize,
}

#[derive(Debug, Clone)]
pub struct Hit {
    pub tool: Arc<ToolDefinition>,
    /// From 0 to 1: how much of what the query asks for this tool has, in words and in meaning. It
    /// does not depend on the other tools found. 1 means that the query is or contains its
    /// `server:tool`, 0.9 and more that it names the tool.
    pub score: f32,
    /// The upstream is not connected now, and this is what it announced last.
    pub stale: bool,
}

impl<'a> Query<'a> {
    pub fn new(text: &'a str, limit: usize) -> Self {
        Self {
            text,
            limit,
            server: None,
            filter: None,
        }
    }
}

impl std::fmt::Debug for Query<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Query")
            .field("text", &self.text)
            .field("limit", &self.limit)
            .field("server", &self.server)
            .field("filter", &self.filter.map(|_| "…"))
            .finish()
    }
}

impl Snapshot {
    /// Finds the tools that match `query`. A query that is about nothing here has no hits.
    pub fn search(&self, query: &Query<'_>) -> SearchResults {
        let parsed = ParsedQuery::parse(query.text);
        let ranking = Ranking::new(self, &parsed, query);
        let best = ranking.best(query.limit).into_iter();
        SearchResults {
            hits: best.filter_map(|ranked| ranking.hit(ranked)).collect(),
            total: ranking.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranking::NAMED;
    use crate::snapshot::tests::snapshot;

    fn found(snapshot: &Snapshot, query: &str) -> Vec<(String, f32)> {
        let hits = snapshot.search(&Query::new(query, 10)).hits;
        hits.iter()
            .map(|hit| (hit.tool.id.to_string(), hit.score))
            .collect()
    }

    #[test]
    fn a_tool_that_is_named_comes_first() {
        let snapshot = snapshot(&[
            ("github", &["create_issue", "create_issue_comment"]),
            ("gitlab", &["create_issue", "Create_Issue"]),
        ]);
        let exact = found(&snapshot, "use GITLAB:create_issue please");
        assert!(
            exact[..2]
                .iter()
                .all(|(id, score)| id.starts_with("gitlab:") && *score >= 1.0)
        );
        let named = found(&snapshot, "gitlab create_issue");
        assert!(
            named[..2]
                .iter()
                .all(|(id, score)| id.starts_with("gitlab:") && *score < 1.0)
        );
        assert!(named[..3].iter().all(|(_, score)| *score >= NAMED));
        assert!(named[3..].iter().all(|(_, score)| *score < NAMED));
    }

    #[test]
    fn a_name_made_of_words_that_do_not_count_is_found_by_its_name() {
        let snapshot = snapshot(&[("a", &["do", "help", "get_help", "_"])]);
        assert_eq!(found(&snapshot, "do"), [("a:do".to_owned(), NAMED)]);
        assert_eq!(found(&snapshot, "_"), [("a:_".to_owned(), NAMED)]);
        assert_eq!(found(&snapshot, "help")[0].0, "a:help");
        assert_eq!(found(&snapshot, "help").len(), 2);
    }

    #[test]
    fn a_score_says_how_much_of_the_query_was_found() {
        let snapshot = snapshot(&[("a", &["list_quartz", "get_zinc", "get_lead"])]);
        let half = found(&snapshot, "quartz xylophone")[0].1;
        let whole = found(&snapshot, "list quartz")[0].1;
        assert!(half < whole && whole < NAMED);
    }

    #[test]
    fn stale_tools_are_found_and_marked() {
        let before = snapshot(&[("a", &["list_quartz"])]);
        let tools = before.tools().map(|entry| Arc::clone(entry.tool)).collect();
        let server = "a".parse().unwrap();
        let after = before.rebuild(vec![crate::ServerTools {
            server,
            tools,
            stale: true,
        }]);
        assert!(after.search(&Query::new("quartz", 1)).hits[0].stale);
        assert!(!before.search(&Query::new("quartz", 1)).hits[0].stale);
    }

    #[test]
    fn an_unknown_server_has_no_hits() {
        let snapshot = snapshot(&[("a", &["list_quartz"])]);
        let server = "b".parse().unwrap();
        let results = snapshot.search(&Query {
            server: Some(&server),
            ..Query::new("quartz", 9)
        });
        assert_eq!(results.total, 0);
        assert_eq!(
            Snapshot::default().search(&Query::new("quartz", 9)).total,
            0
        );
    }
}
