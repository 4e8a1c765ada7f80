//! Tier 1: tools that change nothing.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::reply::{count, entry, line, page};
use super::{Call, Reply, ToolError};
use crate::note::{Limit, Note, NoteId, NoteState, PortableNote, Query, Tag};
use crate::progress::Progress;
use crate::store::{Match, Page, Scope, Store, TagCount};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListNotes {
    /// Only notes that carry this tag.
    tag: Option<Tag>,
    /// List the archived notes instead of the active ones.
    #[serde(default)]
    archived: bool,
    /// How many notes to list at most.
    #[serde(default)]
    limit: Limit,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GetNote {
    /// The id of the note, as list_notes and search_notes show it.
    id: NoteId,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchNotes {
    /// Words that must all occur in the title, the tags or the text; the last may be unfinished.
    query: Query,
    /// How many notes to find at most.
    #[serde(default)]
    limit: Limit,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListTags {}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListNoteVersions {
    /// The id of the note.
    id: NoteId,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListBin {
    /// How many notes to list at most.
    #[serde(default)]
    limit: Limit,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExportNotes {
    /// How the text of the answer is written; the structured content is always the same.
    #[serde(default)]
    format: ExportFormat,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ExportFormat {
    #[default]
    Json,
    Markdown,
}

impl Call for ListNotes {
    fn call(self, store: &mut Store, _: &Progress) -> Result<Reply, ToolError> {
        let (state, what) = if self.archived {
            (NoteState::Archived, "archived note")
        } else {
            (NoteState::Active, "note")
        };
        let found = store.read(|notes| notes.list(state, self.tag.as_ref(), self.limit))?;
        Ok(listing(&count(found.total, what), &found))
    }
}

impl Call for GetNote {
    fn call(self, store: &mut Store, _: &Progress) -> Result<Reply, ToolError> {
        let note = store.read(|notes| notes.get(self.id))?;
        Ok(Reply::about(page(&note), &note))
    }
}

impl Call for SearchNotes {
    fn call(self, store: &mut Store, _: &Progress) -> Result<Reply, ToolError> {
        let found = store.read(|notes| notes.search(&self.query, self.limit))?;
        let mut lines = vec![format!("Found {}.", count(found.total, "note"))];
        let mut matches = Vec::with_capacity(found.items.len());
        for Match { note, excerpt } in &found.items {
            lines.push(line(note));
            lines.push(format!("    {}", excerpt.replace('\n', " ")));
            let mut entry = entry(note);
            entry["excerpt"] = excerpt.as_str().into();
            matches.push(entry);
        }
        let structured = json!({ "notes": matches, "total": found.total });
        Ok(Reply::new(lines.join("\n"), structured))
    }
}

impl Call for ListTags {
    fn call(self, store: &mut Store, _: &Progress) -> Result<Reply, ToolError> {
        let tags = store.read(|notes| Ok::<_, ToolError>(notes.tags()?))?;
        let mut lines = vec![format!("{}.", count(tags.len(), "tag"))];
        lines.extend(
            tags.iter()
                .map(|TagCount { tag, notes }| format!("{tag}: {}", count(*notes, "note"))),
        );
        Ok(Reply::new(lines.join("\n"), json!({ "tags": tags })))
    }
}

impl Call for ListNoteVersions {
    fn call(self, store: &mut Store, _: &Progress) -> Result<Reply, ToolError> {
        let (note, versions) = store
            .read(|notes| Ok::<_, ToolError>((notes.get(self.id)?, notes.versions(self.id)?)))?;
        let mut lines = vec![format!(
            "Note {} is at version {}; {} kept.",
            note.id,
            note.version,
            count(versions.len(), "earlier version")
        )];
        lines.extend(versions.iter().map(|earlier| {
            format!(
                "version {}, {}: {}",
                earlier.version, earlier.saved_at, earlier.title
            )
        }));
        let structured = json!({ "id": note.id, "current": note.version, "versions": versions });
        Ok(Reply::new(lines.join("\n"), structured))
    }
}

impl Call for ListBin {
    fn call(self, store: &mut Store, _: &Progress) -> Result<Reply, ToolError> {
        let found = store.read(|notes| notes.list(NoteState::Bin, None, self.limit))?;
        let heading = format!("{} in the bin", count(found.total, "note"));
        Ok(listing(&heading, &found))
    }
}

impl Call for ExportNotes {
    fn call(self, store: &mut Store, progress: &Progress) -> Result<Reply, ToolError> {
        let exported = store.read(|notes| {
            let ids = notes.ids(Scope::Kept)?;
            let mut exported = Vec::with_capacity(ids.len());
            for (done, id) in (1..).zip(&ids) {
                exported.push(PortableNote::from(notes.get(*id)?));
                progress.report(done, ids.len())?;
            }
            Ok::<_, ToolError>(exported)
        })?;
        let structured = json!({ "notes": exported });
        let text = match self.format {
            ExportFormat::Json => format!("{:#}", structured["notes"]),
            ExportFormat::Markdown => markdown(&exported),
        };
        Ok(Reply::new(text, structured))
    }
}

fn listing(heading: &str, found: &Page<Note>) -> Reply {
    let shown = found.items.len();
    let extent = if shown < found.total {
        format!(", the first {shown} of them")
    } else {
        String::new()
    };
    let mut lines = vec![format!("{heading}{extent}.")];
    lines.extend(found.items.iter().map(line));
    let entries: Vec<_> = found.items.iter().map(entry).collect();
    Reply::new(
        lines.join("\n"),
        json!({ "notes": entries, "total": found.total }),
    )
}

fn markdown(notes: &[PortableNote]) -> String {
    let sections: Vec<_> = notes
        .iter()
        .map(|note| format!("# {}\n\n{}\n", note.title, note.body))
        .collect();
    sections.join("\n")
}
