//! Which servers of a client move into our config, and which stay where they are.

use clients::{Candidate, Client, ImportVerdict, Origin};
use config::{Config, ServerConfig};
use serde_json::{Value, json};

use crate::commands::upstream::import;

/// What is to move.
#[derive(Debug, Default)]
pub(in crate::commands) struct Moving {
    /// New in our config.
    pub(in crate::commands) imports: Vec<ServerConfig>,
    /// Entries that leave the clients' files.
    pub(in crate::commands) leaving: Vec<Origin>,
    /// What differs here, and what stays there and why.
    pub(in crate::commands) notes: Vec<String>,
}

impl Moving {
    /// Sorts what was found. An entry leaves its file only if our config has it in use, or will.
    pub(in crate::commands) fn of(candidates: &[Candidate], config: &Config) -> Self {
        let mut moving = Self::default();
        for candidate in candidates {
            moving.add(candidate, config);
        }
        moving
    }

    fn add(&mut self, candidate: &Candidate, config: &Config) {
        let present = match &candidate.verdict {
            ImportVerdict::Take(_) => None,
            ImportVerdict::Present(name) => {
                let mut servers = config.mcp_servers.iter();
                servers.find(|server| server.name == *name)
            }
            ImportVerdict::Ourselves => return,
            ImportVerdict::Unusable(why) => {
                let name = &candidate.written_name;
                self.notes.push(format!("'{name}' stays: {why}"));
                return;
            }
        };
        let mut moves = false;
        for origin in &candidate.origins {
            if let Some(why) = reason_to_stay(origin, present) {
                let name = &origin.name;
                self.notes.push(format!("'{name}' stays: {why}"));
            } else {
                self.leaving.push(origin.clone());
                moves = true;
            }
        }
        if !moves {
            return;
        }
        let name = &candidate.written_name;
        let notes = candidate.notes.iter();
        self.notes
            .extend(notes.map(|note| format!("'{name}': {note}")));
        if let Some(server) = import::taken(candidate) {
            let missing = server.resolve(&|name| std::env::var(name).ok()).err();
            self.notes
                .extend(missing.map(|missing| format!("'{name}': {missing}")));
            self.imports.push(server);
        }
    }

    /// What leaves the files of one client.
    pub(in crate::commands) fn leaving_from(&self, client: Client) -> Vec<Origin> {
        let of_client = self.leaving.iter().filter(|it| it.client == client);
        of_client.cloned().collect()
    }

    /// The clients that lose entries, each once.
    pub(in crate::commands) fn clients(&self) -> Vec<Client> {
        let all = Client::ALL.into_iter();
        all.filter(|client| self.leaving.iter().any(|it| it.client == *client))
            .collect()
    }

    pub(in crate::commands) fn json(&self) -> Value {
        let leaving = self.leaving.iter();
        leaving
            .map(|origin| json!({"name": origin.name, "client": origin.client.as_str(), "file": origin.file}))
            .collect()
    }
}

fn reason_to_stay(origin: &Origin, present: Option<&ServerConfig>) -> Option<String> {
    if origin.shared {
        let file = origin.file.display();
        return Some(format!("{file} belongs to the project"));
    }
    let disabled = present.filter(|server| !server.enabled && origin.enabled)?;
    Some(format!(
        "mcpproxy has it switched off; `mcpproxy upstream enable {}`",
        disabled.name
    ))
}
