//! Putting mcpproxy into a client.

use crate::adapter::{FileEdits, Rules, TRANSPORT_KEYS};
use crate::client::Client;
use crate::edit::Edit;
use crate::endpoint::{Endpoint, KEY_VARIABLE};
use crate::error::ClientFileError;
use crate::moving::{Origin, add_departures};
use crate::places::Places;
use crate::plan::{FileChange, Kind, Plan};

/// What the client may run without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// Nothing is said; the client does what it does.
    AsItIs,
    /// Tools that only read run silently, the others ask.
    Read,
}

/// Works out what has to change for a client to use mcpproxy, in place of the entries in `leaving`.
pub fn connect(
    client: Client,
    places: &Places,
    endpoint: &Endpoint,
    approval: Approval,
    leaving: &[Origin],
) -> Result<Plan, ClientFileError> {
    let adapter = client.adapter();
    let main = adapter.main_file(places);
    let set = adapter.entry(endpoint)?;
    let rules = match approval {
        Approval::AsItIs => Rules::default(),
        Approval::Read => adapter.approve_reads(places)?,
    };
    // What tells how we are reached is replaced as a whole; what else the entry has stays.
    let unset = TRANSPORT_KEYS.into_iter();
    let unset = unset.filter(|key| !set.contains_key(*key)).collect();
    let entry = Edit::Entry {
        path: main.own_entry(),
        set,
        unset,
    };
    let main = FileEdits {
        path: main.path,
        syntax: main.syntax,
        edits: [vec![entry], rules.entry].concat(),
    };
    let mut files = [vec![main], rules.files].concat();
    add_departures(leaving, &mut files);
    let mut changes = Vec::new();
    for edits in &files {
        changes.extend(FileChange::of(edits)?);
    }
    let mut notes = rules.notes;
    if matches!(
        endpoint,
        Endpoint::Http {
            needs_key: true,
            ..
        }
    ) {
        notes.push(format!(
            "the daemon asks for its key: set {KEY_VARIABLE} where {} is started",
            client.title()
        ));
    }
    Ok(Plan {
        client,
        changes,
        notes,
        kind: Kind::Connect,
    })
}
