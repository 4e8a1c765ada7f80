//! The table of tools, by tier.

use super::destructive::{ImportNotes, PurgeAllNotes, PurgeBin, PurgeNote};
use super::read::{
    ExportNotes, GetNote, ListBin, ListNoteVersions, ListNotes, ListTags, SearchNotes,
};
use super::soft_delete::{ArchiveNote, DeleteNote};
use super::tier::Tier::{Destructive, ReadOnly, SoftDelete, Write};
use super::write::{
    AppendToNote, CreateNote, PinNote, RestoreNote, RestoreNoteVersion, TagNote, UntagNote,
    UpdateNote,
};
use super::{Tier, Tool};

/// Creates something, or adds to it, each time it is called.
const WRITE: Tier = Write { idempotent: false };
/// Brings something into a state, in which a second call leaves it.
const WRITE_ONCE: Tier = Write { idempotent: true };

pub(crate) static TABLE: [Tool; 21] = [
    Tool::new::<ListNotes>(
        "list_notes",
        "List notes",
        ReadOnly,
        "List notes, pinned ones first and then the most recently changed, with their ids, titles \
         and tags. Can be narrowed to a tag, or to the archive.",
    ),
    Tool::new::<GetNote>(
        "get_note",
        "Get a note",
        ReadOnly,
        "Read one note in full: title, text, tags and state. Works for notes in the bin, too.",
    ),
    Tool::new::<SearchNotes>(
        "search_notes",
        "Search notes",
        ReadOnly,
        "Find notes by words in their title, tags or text, best match first. Notes in the bin are \
         not searched.",
    ),
    Tool::new::<ListTags>(
        "list_tags",
        "List tags",
        ReadOnly,
        "List all tags and how many notes carry each.",
    ),
    Tool::new::<ListNoteVersions>(
        "list_note_versions",
        "List versions of a note",
        ReadOnly,
        "List the earlier versions of a note's title and text, the latest first.",
    ),
    Tool::new::<ListBin>(
        "list_bin",
        "List the bin",
        ReadOnly,
        "List the deleted notes that can still be restored.",
    ),
    Tool::new::<ExportNotes>(
        "export_notes",
        "Export notes",
        ReadOnly,
        "Get all notes outside the bin at once, as JSON or Markdown. Reports progress.",
    ),
    Tool::new::<CreateNote>(
        "create_note",
        "Create a note",
        WRITE,
        "Write a new note and get its id.",
    ),
    Tool::new::<UpdateNote>(
        "update_note",
        "Update a note",
        WRITE_ONCE,
        "Change the title or the text of a note. The previous version is kept.",
    ),
    Tool::new::<AppendToNote>(
        "append_to_note",
        "Append to a note",
        WRITE,
        "Add a line or more at the end of a note's text. The previous version is kept.",
    ),
    Tool::new::<TagNote>(
        "tag_note",
        "Tag a note",
        WRITE_ONCE,
        "Put a tag on a note. The tag need not exist yet.",
    ),
    Tool::new::<UntagNote>(
        "untag_note",
        "Untag a note",
        WRITE_ONCE,
        "Take a tag off a note; tag_note puts it back.",
    ),
    Tool::new::<PinNote>(
        "pin_note",
        "Pin or unpin a note",
        WRITE_ONCE,
        "Keep a note at the top of lists, or stop doing so.",
    ),
    Tool::new::<RestoreNote>(
        "restore_note",
        "Restore a note",
        WRITE_ONCE,
        "Bring a note back from the bin or from the archive.",
    ),
    Tool::new::<RestoreNoteVersion>(
        "restore_note_version",
        "Restore a version of a note",
        WRITE_ONCE,
        "Give a note the title and text of one of its earlier versions. The present version is \
         kept, so this can be taken back.",
    ),
    Tool::new::<DeleteNote>(
        "delete_note",
        "Delete a note",
        SoftDelete,
        "Move a note to the bin. It can be restored with restore_note until it is purged.",
    ),
    Tool::new::<ArchiveNote>(
        "archive_note",
        "Archive a note",
        SoftDelete,
        "Put a note out of sight of list_notes. It stays searchable and can be restored with \
         restore_note.",
    ),
    Tool::new::<PurgeNote>(
        "purge_note",
        "Purge a note",
        Destructive,
        "Permanently delete one note with all its versions. This cannot be undone.",
    ),
    Tool::new::<PurgeBin>(
        "purge_bin",
        "Purge the bin",
        Destructive,
        "Permanently delete every note in the bin. This cannot be undone. Reports progress.",
    ),
    Tool::new::<PurgeAllNotes>(
        "purge_all_notes",
        "Purge all notes",
        Destructive,
        "Permanently delete every note, in the bin or not. This cannot be undone. Reports \
         progress.",
    ),
    Tool::new::<ImportNotes>(
        "import_notes",
        "Import notes",
        Destructive,
        "Bring in notes that export_notes gave, beside the present notes or, with mode replace, \
         permanently in place of them all. Replacing cannot be undone. Reports progress.",
    ),
];
