//! Names that collide: the same tool twice, another server's, the proxy's own, and look-alikes.

use std::collections::HashMap;

use super::lookalike::{latin, plain, skeleton};
use super::{Finding, FindingCode};
use crate::ToolFacts;
use crate::escape::{excerpt, visible};

/// The tools that mcpproxy itself shows to clients.
const RESERVED: [&str; 6] = [
    "retrieve_tools",
    "describe_tool",
    "call_tool_read",
    "call_tool_write",
    "call_tool_destructive",
    "read_cache",
];

/// Names that are worth recognising inside a description: short or plain ones are words.
const MIN_MENTIONED: usize = 8;

/// Other tools that are named in one message at most.
const MAX_NAMED: usize = 3;

/// All names of a list, for finding out which of them collide.
#[derive(Debug)]
pub(crate) struct NameIndex<'a> {
    by_skeleton: HashMap<String, Vec<&'a ToolFacts<'a>>>,
    reserved: [(&'static str, String); 6],
    /// Which servers have a tool of exactly this name.
    servers: HashMap<&'a str, Vec<&'a str>>,
}

impl<'a> NameIndex<'a> {
    pub(crate) fn new(tools: &'a [ToolFacts<'a>]) -> Self {
        let mut by_skeleton: HashMap<_, Vec<_>> = HashMap::with_capacity(tools.len());
        let mut servers: HashMap<_, Vec<_>> = HashMap::with_capacity(tools.len());
        for tool in tools {
            by_skeleton
                .entry(skeleton(tool.name))
                .or_default()
                .push(tool);
            servers.entry(tool.name).or_default().push(tool.server);
        }
        Self {
            by_skeleton,
            reserved: RESERVED.map(|name| (name, skeleton(name))),
            servers,
        }
    }

    /// What is wrong with the name of a tool of the list.
    pub(crate) fn check(&self, tool: &ToolFacts<'_>, findings: &mut Vec<Finding>) {
        let seen = skeleton(tool.name);
        let typed = plain(tool.name);
        if let Some((reserved, _)) = self.reserved.iter().find(|(_, own)| *own == seen) {
            let message = format!("agents could take the tool for the proxy's own {reserved}");
            findings.push(FindingCode::ReservedName.finding(message));
        }
        let alike = self.by_skeleton.get(&seen).into_iter().flatten();
        let (mut shadowed, mut confusable, mut same) = (Vec::new(), Vec::new(), 0);
        for other in alike {
            match (other.server == tool.server, other.name == tool.name) {
                (true, true) => same += 1,
                (false, _) if plain(other.name) == typed => shadowed.push(other.id()),
                (_, false) if plain(other.name) != typed => confusable.push(other.id()),
                _ => {}
            }
        }
        if same > 1 {
            let message = format!("the server lists {same} tools of this name");
            findings.push(FindingCode::DuplicateName.finding(message));
        }
        if !shadowed.is_empty() {
            let message = format!("the name is also that of {}", named(&shadowed));
            findings.push(FindingCode::ShadowedName.finding(message));
        }
        if !confusable.is_empty() {
            let message = format!("the name looks like {}", named(&confusable));
            findings.push(FindingCode::ConfusableName.finding(message));
        } else if let Some((character, letter)) = foreign_letter(tool.name) {
            findings.push(FindingCode::ConfusableName.finding(format!(
                "the name has U+{:04X}, which looks like the letter {letter}",
                u32::from(character)
            )));
        }
        self.check_mentions(tool, findings);
    }

    /// A description that speaks of another server's tool can change how that tool is used.
    fn check_mentions(&self, tool: &ToolFacts<'_>, findings: &mut Vec<Finding>) {
        let identifier = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        let words = tool.description.split(|c| !identifier(c));
        let foreign = words.filter(|word| word.len() >= MIN_MENTIONED && word.contains('_'));
        let mut mentioned: Vec<&str> = foreign
            .filter(|word| {
                let servers = self.servers.get(word);
                servers.is_some_and(|servers| !servers.contains(&tool.server))
            })
            .collect();
        mentioned.sort_unstable();
        mentioned.dedup();
        if let Some(name) = mentioned.first() {
            let server = self.servers.get(name).and_then(|servers| servers.first());
            let message = format!(
                "the description speaks of {}:{}",
                excerpt(server.copied().unwrap_or_default(), 64),
                visible(name)
            );
            findings.push(FindingCode::MentionsForeignTool.finding(message));
        }
    }
}

/// A letter of another alphabet among Latin ones, in a name that has both.
fn foreign_letter(name: &str) -> Option<(char, char)> {
    if !name.contains(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    // Accented Latin letters are spelling, not disguise.
    let disguised = |c: &char| !matches!(u32::from(*c), 0xc0..=0x24f | 0x1e00..=0x1eff);
    let mut letters = name.chars().filter(disguised);
    letters.find_map(|character| Some((character, latin(character)?)))
}

fn named(ids: &[String]) -> String {
    let shown = ids.iter().take(MAX_NAMED).map(|id| excerpt(id, 128));
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if ids.len() > MAX_NAMED {
        text.push_str(&format!(" and {} more", ids.len() - MAX_NAMED));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use FindingCode as Code;

    fn codes(names: &[(&str, &str)]) -> Vec<Vec<Code>> {
        let facts = |(server, name)| ToolFacts {
            server,
            name,
            ..ToolFacts::default()
        };
        let tools: Vec<_> = names.iter().copied().map(facts).collect();
        let index = NameIndex::new(&tools);
        let check = |tool| {
            let mut findings = Vec::new();
            index.check(tool, &mut findings);
            findings.iter().map(|finding| finding.code).collect()
        };
        tools.iter().map(check).collect()
    }

    #[test]
    fn the_same_name_on_two_servers_shadows() {
        let found = codes(&[("a", "search"), ("b", "search"), ("b", "get")]);
        assert_eq!(
            found,
            [vec![Code::ShadowedName], vec![Code::ShadowedName], vec![]]
        );
        let styles = codes(&[("a", "get_user"), ("b", "getUser")]);
        assert_eq!(styles[0], [Code::ShadowedName]);
        assert_eq!(codes(&[("a", "get_user"), ("a", "getUser")])[0], []);
    }

    #[test]
    fn look_alikes_are_found_on_any_server_and_alone() {
        for server in ["a", "b"] {
            let found = codes(&[("a", "search"), (server, "sеarch")]);
            assert_eq!(found, [[Code::ConfusableName], [Code::ConfusableName]]);
        }
        assert_eq!(codes(&[("a", "sеarch")])[0], [Code::ConfusableName]);
        assert_eq!(codes(&[("a", "поиск"), ("a", "búsqueda")]).concat(), []);
    }

    #[test]
    fn our_own_names_are_reserved_even_in_disguise() {
        assert_eq!(codes(&[("a", "retrieve_tools")])[0], [Code::ReservedName]);
        assert_eq!(codes(&[("a", "call-tool-read")])[0], [Code::ReservedName]);
        assert!(codes(&[("a", "саll_tool_read")])[0].contains(&Code::ReservedName));
    }

    #[test]
    fn a_name_given_twice_is_found() {
        assert_eq!(
            codes(&[("a", "get"), ("a", "get")])[1],
            [Code::DuplicateName]
        );
    }

    #[test]
    fn speaking_of_another_servers_tool_is_found() {
        let tools = [
            ToolFacts {
                server: "mail",
                name: "send_email",
                ..ToolFacts::default()
            },
            ToolFacts {
                server: "facts",
                name: "fact",
                description: "Before `send_email` is used, ask for a fact.",
                ..ToolFacts::default()
            },
        ];
        let mut findings = Vec::new();
        NameIndex::new(&tools).check(&tools[1], &mut findings);
        assert_eq!(findings[0].code, Code::MentionsForeignTool);
        assert!(findings[0].message.contains("mail:send_email"));
    }
}
