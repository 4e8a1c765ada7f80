-- Version 1. Never edited once released; changes are further files.

CREATE TABLE notes (
    -- AUTOINCREMENT, so that the id of a purged note is never another note's.
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    title      TEXT    NOT NULL,
    body       TEXT    NOT NULL,
    -- A JSON array, sorted.
    tags       TEXT    NOT NULL,
    pinned     INTEGER NOT NULL DEFAULT 0,
    state      TEXT    NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'archived', 'bin')),
    version    INTEGER NOT NULL DEFAULT 1,
    -- Milliseconds since 1970.
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE note_versions (
    note_id  INTEGER NOT NULL REFERENCES notes (id) ON DELETE CASCADE,
    version  INTEGER NOT NULL,
    title    TEXT    NOT NULL,
    body     TEXT    NOT NULL,
    saved_at INTEGER NOT NULL,
    PRIMARY KEY (note_id, version)
) STRICT, WITHOUT ROWID;

CREATE VIRTUAL TABLE notes_index USING fts5 (
    title, tags, body,
    content = 'notes', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2'
);
-- The words of a purged note must leave the index too, not wait for it to be merged.
INSERT INTO notes_index (notes_index, rank) VALUES ('secure-delete', 1);

CREATE TRIGGER notes_inserted AFTER INSERT ON notes BEGIN
    INSERT INTO notes_index (rowid, title, tags, body)
    VALUES (new.id, new.title, new.tags, new.body);
END;

CREATE TRIGGER notes_deleted AFTER DELETE ON notes BEGIN
    INSERT INTO notes_index (notes_index, rowid, title, tags, body)
    VALUES ('delete', old.id, old.title, old.tags, old.body);
END;

CREATE TRIGGER notes_updated AFTER UPDATE OF title, tags, body ON notes BEGIN
    INSERT INTO notes_index (notes_index, rowid, title, tags, body)
    VALUES ('delete', old.id, old.title, old.tags, old.body);
    INSERT INTO notes_index (rowid, title, tags, body)
    VALUES (new.id, new.title, new.tags, new.body);
END;
