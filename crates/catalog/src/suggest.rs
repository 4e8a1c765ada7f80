//! Did you mean: the known names that come closest to one that is not known.

use std::cmp::Reverse;

use policy::{ServerName, ToolId, ToolName};

use crate::snapshot::Snapshot;
use crate::text::{self, Role};

const MOST_SUGGESTIONS: usize = 3;

/// Similarity in thousandths below which a name is another one and not a misspelt one.
const ENOUGH: usize = 650;

/// Comparing takes time in the square of the length, and no name is that long.
const LONGEST_NAME: usize = 256;

/// Those of the servers whose names are closest to `name`, the closest first.
pub fn suggest_servers<'a>(
    name: &str,
    servers: impl Iterator<Item = &'a ServerName>,
) -> Vec<ServerName> {
    let wanted = Name::new(name);
    closest(servers.map(|server| (wanted.similarity(server.as_str()), server.clone())))
}

impl Snapshot {
    /// The upstreams whose names are closest to `name`, the closest first.
    pub fn suggest_servers(&self, name: &str) -> Vec<ServerName> {
        suggest_servers(name, self.servers())
    }

    /// The tools whose names are closest to `name`, which is `server:tool` or a tool alone.
    pub fn suggest_tools(&self, name: &str) -> Vec<ToolId> {
        let wanted = WantedTool::new(name);
        let wanted = &wanted;
        closest(self.placed.iter().flat_map(|placed| {
            let server = wanted.server_similarity(&placed.segment.server);
            let tools = placed.segment.tools.iter().map(|tool| &tool.id);
            tools.map(move |id| (wanted.similarity(server, id.tool()), id.clone()))
        }))
    }
}

/// What was asked for, read in both ways: a tool's own name may contain a colon too.
struct WantedTool {
    alone: Name,
    of_server: Option<(Name, Name)>,
}

impl WantedTool {
    fn new(name: &str) -> Self {
        let pair = name.split_once(':');
        Self {
            alone: Name::new(name),
            of_server: pair.map(|(server, tool)| (Name::new(server), Name::new(tool))),
        }
    }

    fn server_similarity(&self, known: &ServerName) -> usize {
        let server = self.of_server.as_ref().map(|(server, _)| server);
        server.map_or(0, |server| server.similarity(known.as_str()))
    }

    fn similarity(&self, server_similarity: usize, known: &ToolName) -> usize {
        let known = known.as_str();
        let Some((_, tool)) = &self.of_server else {
            return self.alone.similarity(known);
        };
        let of_server = match tool.similarity(known) {
            // Being of the right server does not make a tool the right one.
            low if low < ENOUGH => 0,
            similarity => (3 * similarity + server_similarity) / 4,
        };
        if known.contains(':') {
            of_server.max(self.alone.similarity(known))
        } else {
            of_server
        }
    }
}

/// A name that was asked for, prepared for many comparisons.
struct Name {
    folded: String,
    sorted_words: String,
}

impl Name {
    fn new(name: &str) -> Self {
        let name = &name[..name.floor_char_boundary(LONGEST_NAME)];
        Self {
            folded: name.to_lowercase(),
            sorted_words: sorted_words(name),
        }
    }

    /// From 0 to 1000. The order of words does not matter: `issues_list` is `list_issues`.
    fn similarity(&self, known: &str) -> usize {
        let written = similarity(&self.folded, &known.to_lowercase());
        written.max(similarity(&self.sorted_words, &sorted_words(known)))
    }
}

/// The share, in thousandths, of the longer text that need not be changed to get the other.
fn similarity(a: &str, b: &str) -> usize {
    let (a_length, b_length) = (a.chars().count(), b.chars().count());
    let longer = a_length.max(b_length);
    // Most names differ so much in length already that comparing them is not worth the time.
    if a_length.min(b_length) * 1000 < longer * ENOUGH || longer == 0 {
        return 0;
    }
    (longer - strsim::osa_distance(a, b)) * 1000 / longer
}

fn sorted_words(name: &str) -> String {
    let mut words = Vec::new();
    text::for_each_word(name, |word, role| {
        if role != Role::Whole {
            words.push(word.to_owned());
        }
    });
    words.sort_unstable();
    words.join(" ")
}

/// The best few that are close enough; equally close ones are ordered by name.
fn closest<T: Ord>(candidates: impl Iterator<Item = (usize, T)>) -> Vec<T> {
    let mut close: Vec<_> = candidates
        .filter(|(similarity, _)| *similarity >= ENOUGH)
        .collect();
    close.sort_by(|a, b| (Reverse(a.0), &a.1).cmp(&(Reverse(b.0), &b.1)));
    close.truncate(MOST_SUGGESTIONS);
    close.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::tests::snapshot;

    fn tools(name: &str) -> Vec<String> {
        let snapshot = snapshot(&[
            (
                "github",
                &["create_issue", "list_issues", "merge_pull_request"],
            ),
            ("gitlab", &["create_issue", "ns:get"]),
            ("notes", &["create_note", "日本"]),
        ]);
        snapshot
            .suggest_tools(name)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn misspelt_tools_are_recognised() {
        assert_eq!(tools("github:list_isues"), ["github:list_issues"]);
        assert_eq!(tools("github:listIssues"), ["github:list_issues"]);
        assert_eq!(tools("github:issues_list"), ["github:list_issues"]);
        assert_eq!(tools("merge_pull_requests"), ["github:merge_pull_request"]);
        assert_eq!(tools("ns:gett"), ["gitlab:ns:get"]);
        assert_eq!(tools("gitlab:ns:gett"), ["gitlab:ns:get"]);
    }

    #[test]
    fn the_server_decides_between_tools_of_one_name() {
        assert_eq!(
            tools("gitlab:create_isue")[..2],
            ["gitlab:create_issue", "github:create_issue"]
        );
        assert_eq!(
            tools("githb:create_issue")[..2],
            ["github:create_issue", "gitlab:create_issue"]
        );
        assert_eq!(
            tools("create_issue")[..2],
            ["github:create_issue", "gitlab:create_issue"]
        );
    }

    #[test]
    fn what_is_not_close_is_not_offered() {
        for name in [
            "",
            ":",
            "github:",
            "weather",
            "github:forecast",
            "👩‍💻",
            &"x".repeat(1 << 20),
        ] {
            assert_eq!(tools(name), [""; 0], "{:?}", name.get(..9));
        }
    }

    #[test]
    fn there_are_at_most_three() {
        let snapshot = snapshot(&[("notes", &["get_a", "get_b", "get_c", "get_d"])]);
        let suggested = snapshot.suggest_tools("get_x");
        let suggested: Vec<_> = suggested.iter().map(ToolId::as_str).collect();
        assert_eq!(suggested, ["notes:get_a", "notes:get_b", "notes:get_c"]);
    }

    #[test]
    fn misspelt_servers_are_recognised() {
        let snapshot = snapshot(&[("github", &[]), ("gitlab", &[]), ("notes", &["get"])]);
        let suggest = |name: &str| {
            let names = snapshot.suggest_servers(name);
            names.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(suggest("githb"), ["github", "gitlab"]);
        assert_eq!(suggest("Notes"), ["notes"]);
        assert_eq!(suggest("weather"), [""; 0]);
    }
}
