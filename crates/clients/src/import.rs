//! Which of the servers that were found are taken over, and under which names.

use std::collections::BTreeSet;

use config::ServerConfig;
use policy::ServerName;
use serde_json::{Map, Value};

use crate::client::Client;
use crate::moving::Origin;
use crate::servers::{Found, OwnAddress, Survey};

/// A server that was found, once, however many clients know it.
#[derive(Debug)]
pub struct Candidate {
    /// The name as the first of the clients has it.
    pub written_name: String,
    /// Where it was found, at least once.
    pub origins: Vec<Origin>,
    /// In the form of our config file.
    pub entry: Map<String, Value>,
    pub config: Option<ServerConfig>,
    pub verdict: Verdict,
    pub notes: Vec<String>,
}

/// What becomes of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is taken over under this name.
    Take(ServerName),
    /// It is in our config already, under this name.
    Present(ServerName),
    /// It is mcpproxy itself.
    Ourselves,
    /// It cannot be taken over, and why.
    Unusable(String),
}

/// Decides about everything that was found. Names that are taken are changed, servers that
/// several clients know are taken once.
pub fn select(survey: Survey, present: &[ServerConfig], own: &OwnAddress) -> Vec<Candidate> {
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut taken: BTreeSet<String> = present
        .iter()
        .map(|server| server.name.to_string())
        .collect();
    for found in survey.found {
        let same = candidates
            .iter_mut()
            .find(|candidate| candidate.is_same(&found));
        if let Some(known) = same {
            known.origins.push(found.origin);
            continue;
        }
        candidates.push(Candidate::of(found, present, own, &mut taken));
    }
    candidates
}

impl Candidate {
    fn of(
        found: Found,
        present: &[ServerConfig],
        own: &OwnAddress,
        taken: &mut BTreeSet<String>,
    ) -> Self {
        let client = found.origin.client;
        let candidate = Self {
            entry: Map::new(),
            config: None,
            verdict: Verdict::Ourselves,
            notes: Vec::new(),
            written_name: found.origin.name.clone(),
            origins: vec![found.origin],
        };
        let usable = match found.server {
            Ok(usable) => usable,
            Err(obstacle) => {
                return Self {
                    verdict: Verdict::Unusable(obstacle.to_string()),
                    ..candidate
                };
            }
        };
        let transport = &usable.config.transport;
        let known = present.iter().find(|server| server.transport == *transport);
        let mut notes = usable.notes;
        let verdict = if own.is_us(&candidate.written_name, transport) {
            Verdict::Ourselves
        } else if let Some(known) = known {
            Verdict::Present(known.name.clone())
        } else {
            match free_name(&candidate.written_name, client, taken) {
                Some(name) => {
                    if name.as_str() != candidate.written_name {
                        notes.push(format!("called {:?} there", candidate.written_name));
                    }
                    Verdict::Take(name)
                }
                None => Verdict::Unusable("no name is left for it".to_owned()),
            }
        };
        Self {
            entry: usable.entry,
            config: Some(usable.config),
            verdict,
            notes,
            ..candidate
        }
    }

    /// The clients that know it, each once.
    pub fn clients(&self) -> Vec<Client> {
        let mut clients: Vec<Client> = Vec::new();
        for origin in &self.origins {
            if !clients.contains(&origin.client) {
                clients.push(origin.client);
            }
        }
        clients
    }

    fn is_same(&self, found: &Found) -> bool {
        match (&self.config, &found.server) {
            (Some(known), Ok(usable)) => known.transport == usable.config.transport,
            _ => false,
        }
    }
}

/// The wanted name as far as ours allow it, and one that nobody has.
fn free_name(wanted: &str, client: Client, taken: &mut BTreeSet<String>) -> Option<ServerName> {
    let base = allowed(wanted);
    let numbered = (2..1000).map(|number| format!("{base}-{number}"));
    let names = [base.clone(), format!("{base}-{client}")]
        .into_iter()
        .chain(numbered);
    let name = names
        .filter_map(|name| name.parse::<ServerName>().ok())
        .find(|name| !taken.contains(name.as_str()))?;
    taken.insert(name.to_string());
    Some(name)
}

/// A name of letters, digits, `.`, `_` and `-`, short enough for something to be added.
fn allowed(wanted: &str) -> String {
    let mut name = String::new();
    for letter in wanted.chars() {
        let letter = match letter {
            '_' if name.ends_with('_') => continue,
            '.' | '_' | '-' => letter,
            letter if letter.is_ascii_alphanumeric() => letter,
            _ if name.ends_with('-') => continue,
            _ => '-',
        };
        name.push(letter);
    }
    let name = name.trim_start_matches(['.', '_', '-']);
    let name = &name[..name.len().min(ServerName::MAX_LENGTH - 20)];
    let name = name.trim_end_matches(['_', '-']);
    if name.is_empty() {
        "server".to_owned()
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_kept_as_far_as_they_can_be() {
        for (wanted, name) in [
            ("github", "github"),
            ("My Server!", "My-Server"),
            ("a__b_", "a_b"),
            ("@scope/pkg", "scope-pkg"),
            ("世界", "server"),
            ("", "server"),
        ] {
            assert_eq!(allowed(wanted), name, "{wanted}");
        }
    }

    #[test]
    fn a_taken_name_gets_the_client_and_then_a_number() {
        let mut taken = BTreeSet::from(["github".to_owned()]);
        let mut next = || {
            free_name("github", Client::Cursor, &mut taken)
                .unwrap()
                .to_string()
        };
        assert_eq!(
            [next(), next(), next()],
            ["github-cursor", "github-2", "github-3"]
        );
    }

    proptest! {
        #[test]
        fn every_name_becomes_one_of_ours(wanted in any::<String>()) {
            let mut taken = BTreeSet::new();
            let first = free_name(&wanted, Client::ClaudeDesktop, &mut taken);
            let second = free_name(&wanted, Client::ClaudeDesktop, &mut taken);
            prop_assert!(first.is_some() && second.is_some() && first != second);
        }
    }
}
