//! Tier 3: tools that put notes away, from where `restore_note` brings them back.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Call, Reply, ToolError};
use crate::note::{NoteId, NoteState};
use crate::progress::Progress;
use crate::store::Store;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteNote {
    /// The id of the note.
    id: NoteId,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ArchiveNote {
    /// The id of the note.
    id: NoteId,
}

impl Call for DeleteNote {
    fn call(self, store: &mut Store, _: &Progress) -> Result<Reply, ToolError> {
        store.write(|notes| {
            let text = match notes.get(self.id)?.state {
                NoteState::Bin => format!("Note {} was in the bin already.", self.id),
                NoteState::Active | NoteState::Archived => format!(
                    "Moved note {} to the bin; restore_note brings it back.",
                    self.id
                ),
            };
            notes.set_state(self.id, NoteState::Bin)?;
            Ok(Reply::about(text, &notes.get(self.id)?))
        })
    }
}

impl Call for ArchiveNote {
    fn call(self, store: &mut Store, _: &Progress) -> Result<Reply, ToolError> {
        store.write(|notes| {
            notes.get_kept(self.id)?;
            notes.set_state(self.id, NoteState::Archived)?;
            let text = format!("Archived note {}; restore_note brings it back.", self.id);
            Ok(Reply::about(text, &notes.get(self.id)?))
        })
    }
}
