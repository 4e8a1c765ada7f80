//! All tools of all upstreams at one moment. It never changes; a change makes the next one.
//!
//! Tools are ordered by id and not as configured or announced, so that the same tools give the
//! same answers after any sequence of reconnects.

use std::ops::Range;
use std::sync::Arc;

use policy::{ServerName, ToolId};

use crate::document::Analyzer;
use crate::hash::HashMap;
use crate::index::Index;
use crate::segment::Segment;
use crate::tool::ToolDefinition;

/// What one upstream contributes.
#[derive(Debug, Clone)]
pub struct ServerTools {
    pub server: ServerName,
    /// As announced. Handing in the same `Arc` again costs nothing.
    pub tools: Arc<[Arc<ToolDefinition>]>,
    /// The upstream is not connected now, and this is what it announced last.
    pub stale: bool,
}

/// A tool as a snapshot holds it.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    pub tool: &'a Arc<ToolDefinition>,
    /// The upstream is not connected now, and this is what it announced last.
    pub stale: bool,
}

/// Every tool, and the index to search them.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub(crate) placed: Box<[Placed]>,
    by_server: HashMap<ServerName, usize>,
    pub(crate) index: Arc<Index>,
}

/// A segment and where its tools stand among all.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) segment: Arc<Segment>,
    pub(crate) stale: bool,
    pub(crate) first: u32,
}

impl Snapshot {
    pub fn build(servers: Vec<ServerTools>) -> Self {
        Self::default().rebuild(servers)
    }

    /// The snapshot that follows this one. Upstreams with the same list of tools keep their segment of
    /// the index; in the others only tools whose definition changed are analysed again. Where no list
    /// changed, the index is the same.
    #[must_use]
    pub fn rebuild(&self, mut servers: Vec<ServerTools>) -> Self {
        // Ids compare as `server:tool`, so a name that another begins with is not always first.
        let key = |server: &ServerName| server.as_str().bytes().chain([b':']).collect::<Vec<_>>();
        servers.sort_by_cached_key(|entry| key(&entry.server));
        servers.dedup_by(|later, first| later.server == first.server);
        let mut analyzer = Analyzer::default();
        let mut first = 0;
        let placed: Box<[Placed]> = servers
            .into_iter()
            .map(|entry| {
                let stale = entry.stale;
                let segment = self.segment_for(entry, &mut analyzer);
                let placed = Placed {
                    segment,
                    stale,
                    first,
                };
                first = placed.range().end.try_into().unwrap_or(u32::MAX);
                placed
            })
            .collect();
        let names = placed.iter().map(|placed| placed.segment.server.clone());
        let segments =
            |placed: &[Placed]| placed.iter().map(|it| Arc::as_ptr(&it.segment)).collect();
        let [before, after]: [Vec<_>; 2] = [segments(&self.placed), segments(&placed)];
        Self {
            by_server: names.zip(0..).collect(),
            index: if before == after {
                Arc::clone(&self.index)
            } else {
                Arc::new(Index::new(&placed))
            },
            placed,
        }
    }

    fn segment_for(&self, entry: ServerTools, analyzer: &mut Analyzer) -> Arc<Segment> {
        let previous = self.placed_of(&entry.server).map(|placed| &placed.segment);
        match previous.filter(|segment| segment.is_of(&entry.tools)) {
            Some(unchanged) => Arc::clone(unchanged),
            None => Arc::new(Segment::build(
                entry.server,
                entry.tools,
                previous.map(AsRef::as_ref),
                analyzer,
            )),
        }
    }

    pub fn get(&self, id: &ToolId) -> Option<Entry<'_>> {
        let placed = self.placed_of(id.server())?;
        let tool = placed.segment.get(id.tool())?;
        Some(Entry {
            tool,
            stale: placed.stale,
        })
    }

    /// Every tool, ordered by id.
    pub fn tools(&self) -> impl Iterator<Item = Entry<'_>> {
        self.placed.iter().flat_map(Placed::entries)
    }

    /// The tools of one upstream, ordered by name; nothing if it is not known.
    pub fn tools_of(&self, server: &ServerName) -> impl Iterator<Item = Entry<'_>> {
        self.placed_of(server).into_iter().flat_map(Placed::entries)
    }

    /// Every upstream, whether or not it has tools, in the order in which its tools are listed.
    pub fn servers(&self) -> impl Iterator<Item = &ServerName> {
        self.placed.iter().map(|placed| &placed.segment.server)
    }

    pub fn has_server(&self, server: &ServerName) -> bool {
        self.by_server.contains_key(server)
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.placed.last().map_or(0, |placed| placed.range().end)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn placed_of(&self, server: &ServerName) -> Option<&Placed> {
        self.placed.get(*self.by_server.get(server)?)
    }

    /// The segments of one upstream, or of all.
    pub(crate) fn placed_in(&self, server: Option<&ServerName>) -> &[Placed] {
        match server {
            None => &self.placed,
            Some(server) => self.placed_of(server).map_or(&[], std::slice::from_ref),
        }
    }

    pub(crate) fn at(&self, index: u32) -> Option<(&Placed, &Arc<ToolDefinition>)> {
        let after = self.placed.partition_point(|placed| placed.first <= index);
        // Upstreams without tools share their place with the next; the last one owns the index.
        let placed = self.placed.get(after.checked_sub(1)?)?;
        let tool = placed.segment.tools.get((index - placed.first) as usize)?;
        Some((placed, tool))
    }
}

impl Placed {
    pub(crate) fn range(&self) -> Range<usize> {
        let first = self.first as usize;
        first..first + self.segment.tools.len()
    }

    fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let stale = self.stale;
        self.segment
            .tools
            .iter()
            .map(move |tool| Entry { tool, stale })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::value::RawValue;

    use super::*;

    fn server_tools(server: &str, names: &[&str]) -> ServerTools {
        let server: ServerName = server.parse().unwrap();
        let tools = names.iter().map(|name| {
            let json = serde_json::json!({"name": name, "description": format!("Tool {name}.")});
            let raw = RawValue::from_string(json.to_string()).unwrap();
            Arc::new(ToolDefinition::parse(&server, raw).unwrap())
        });
        ServerTools {
            tools: tools.collect(),
            server: server.clone(),
            stale: false,
        }
    }

    /// A snapshot of tools that have only names.
    pub(crate) fn snapshot(servers: &[(&str, &[&str])]) -> Snapshot {
        Snapshot::build(
            servers
                .iter()
                .map(|(server, names)| server_tools(server, names))
                .collect(),
        )
    }

    fn ids<'a>(entries: impl Iterator<Item = Entry<'a>>) -> Vec<&'a str> {
        entries.map(|entry| entry.tool.id.as_str()).collect()
    }

    #[test]
    fn tools_are_ordered_by_id_even_where_one_servers_name_begins_another() {
        let snapshot = snapshot(&[
            ("b", &["y", "x"]),
            ("a", &["z"]),
            ("a-b", &["y"]),
            ("empty", &[]),
        ]);
        let listed = ids(snapshot.tools());
        assert_eq!(listed, ["a-b:y", "a:z", "b:x", "b:y"]);
        assert!(listed.is_sorted());
        assert_eq!((snapshot.len(), snapshot.is_empty()), (4, false));
        assert!(
            (0..4).all(|index| {
                snapshot.at(index).unwrap().1.id.as_str() == listed[index as usize]
            })
        );
        assert!(snapshot.at(4).is_none());
    }

    #[test]
    fn tools_are_found_by_id_and_by_server() {
        let snapshot = snapshot(&[("a", &["x", "y"]), ("b", &["x"])]);
        let id: ToolId = "a:y".parse().unwrap();
        assert_eq!(snapshot.get(&id).unwrap().tool.id, id);
        assert!(snapshot.get(&"b:y".parse().unwrap()).is_none());
        assert!(snapshot.get(&"c:x".parse().unwrap()).is_none());
        assert_eq!(
            ids(snapshot.tools_of(&"a".parse().unwrap())),
            ["a:x", "a:y"]
        );
        assert_eq!(ids(snapshot.tools_of(&"c".parse().unwrap())), [""; 0]);
        assert_eq!(
            snapshot
                .servers()
                .map(ServerName::as_str)
                .collect::<Vec<_>>(),
            ["a", "b"]
        );
        assert!(snapshot.has_server(&"b".parse().unwrap()));
    }

    #[test]
    fn of_two_tools_with_one_name_the_first_counts() {
        let mut tools = server_tools("a", &["x"]);
        let first = Arc::clone(&tools.tools[0]);
        tools.tools = [Arc::clone(&first), Arc::new((*first).clone())].into();
        let snapshot = Snapshot::build(vec![tools]);
        assert_eq!(snapshot.len(), 1);
        assert!(Arc::ptr_eq(snapshot.get(&first.id).unwrap().tool, &first));
    }

    #[test]
    fn an_upstream_that_did_not_change_keeps_its_index() {
        let (kept, changed) = (server_tools("a", &["x"]), server_tools("b", &["x", "y"]));
        let before = Snapshot::build(vec![kept.clone(), changed]);
        let stale = ServerTools {
            stale: true,
            ..kept
        };
        let after = before.rebuild(vec![server_tools("b", &["y", "z"]), stale]);
        assert!(Arc::ptr_eq(
            &before.placed[0].segment,
            &after.placed[0].segment
        ));
        assert!(!Arc::ptr_eq(
            &before.placed[1].segment,
            &after.placed[1].segment
        ));
        assert!(after.get(&"a:x".parse().unwrap()).unwrap().stale);
        assert!(!after.get(&"b:z".parse().unwrap()).unwrap().stale);
        assert!(after.get(&"b:x".parse().unwrap()).is_none());
        assert!(!Arc::ptr_eq(&before.index, &after.index));
    }

    #[test]
    fn the_index_outlives_a_change_of_state() {
        let tools = server_tools("a", &["x"]);
        let stale = ServerTools {
            stale: true,
            ..tools.clone()
        };
        let before = Snapshot::build(vec![tools]);
        let after = before.rebuild(vec![stale]);
        assert!(Arc::ptr_eq(&before.index, &after.index));
        assert!(after.get(&"a:x".parse().unwrap()).unwrap().stale);
    }
}
