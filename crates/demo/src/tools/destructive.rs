//! Tier 4: tools whose work cannot be undone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::reply::count;
use super::{Call, Reply, ToolError};
use crate::note::{NoteId, PortableNote};
use crate::progress::Progress;
use crate::store::{Notes, Scope, Store};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PurgeNote {
    /// The id of the note, in the bin or not.
    id: NoteId,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PurgeBin {}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PurgeAllNotes {}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ImportNotes {
    /// The notes, in the shape that export_notes gives.
    #[schemars(length(min = 1))]
    notes: Vec<PortableNote>,
    /// What happens to the notes that are there: add keeps them, replace purges them all, those
    /// in the bin included.
    #[serde(default)]
    mode: ImportMode,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ImportMode {
    #[default]
    Add,
    Replace,
}

impl Call for PurgeNote {
    fn call(self, store: &mut Store, _: &Progress) -> Result<Reply, ToolError> {
        let note = store.write(|notes| {
            let note = notes.get(self.id)?;
            notes.purge(self.id)?;
            Ok::<_, ToolError>(note)
        })?;
        let text = format!("Purged note {} ({}) and its versions.", note.id, note.title);
        Ok(Reply::new(text, json!({ "purged": 1, "id": note.id })))
    }
}

impl Call for PurgeBin {
    fn call(self, store: &mut Store, progress: &Progress) -> Result<Reply, ToolError> {
        let purged = store.write(|notes| purge(notes, Scope::Bin, progress))?;
        let text = format!("Purged {} from the bin.", count(purged, "note"));
        Ok(Reply::new(text, json!({ "purged": purged })))
    }
}

impl Call for PurgeAllNotes {
    fn call(self, store: &mut Store, progress: &Progress) -> Result<Reply, ToolError> {
        let purged = store.write(|notes| purge(notes, Scope::Everything, progress))?;
        let text = format!("Purged {}; the store is empty.", count(purged, "note"));
        Ok(Reply::new(text, json!({ "purged": purged })))
    }
}

impl Call for ImportNotes {
    fn call(self, store: &mut Store, progress: &Progress) -> Result<Reply, ToolError> {
        if self.notes.is_empty() {
            return Err(ToolError::NothingToImport);
        }
        let (purged, ids) = store.write(|notes| {
            // Only the import reports, because progress must not start over half way.
            let purged = match self.mode {
                ImportMode::Add => 0,
                ImportMode::Replace => {
                    let ids = notes.ids(Scope::Everything)?;
                    for id in &ids {
                        notes.purge(*id)?;
                    }
                    ids.len()
                }
            };
            let mut ids = Vec::with_capacity(self.notes.len());
            for (done, note) in (1..).zip(&self.notes) {
                ids.push(notes.import(note)?);
                progress.report(done, self.notes.len())?;
            }
            Ok::<_, ToolError>((purged, ids))
        })?;
        let imported = count(ids.len(), "note");
        let text = match self.mode {
            ImportMode::Add => format!("Imported {imported}."),
            ImportMode::Replace => {
                format!("Imported {imported} in place of {}.", count(purged, "note"))
            }
        };
        Ok(Reply::new(text, json!({ "ids": ids, "purged": purged })))
    }
}

fn purge(notes: &Notes<'_>, scope: Scope, progress: &Progress) -> Result<usize, ToolError> {
    let ids = notes.ids(scope)?;
    for (done, id) in (1..).zip(&ids) {
        notes.purge(*id)?;
        progress.report(done, ids.len())?;
    }
    Ok(ids.len())
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::tools::TABLE;

    #[test]
    fn a_cancelled_call_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(&folder.path().join("notes.db")).unwrap();
        let token = CancellationToken::new();
        token.cancel();
        let progress = Progress::new(None, token);
        for (name, arguments) in [
            ("purge_all_notes", json!({})),
            (
                "import_notes",
                json!({ "notes": [{ "title": "x" }], "mode": "replace" }),
            ),
        ] {
            let tool = TABLE.iter().find(|tool| tool.name == name).unwrap();
            let result = tool.run(arguments, &mut store, &progress);
            assert_eq!(result["isError"], true, "{result}");
        }
        let left = store.read(|notes| notes.ids(Scope::Everything)).unwrap();
        assert_eq!(left.len(), 3);
    }
}
