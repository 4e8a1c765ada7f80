-- Records of the reserved share of the log, which retention removes last.
ALTER TABLE progress ADD COLUMN protected_records INTEGER NOT NULL DEFAULT 0;
ALTER TABLE progress ADD COLUMN protected_bytes INTEGER NOT NULL DEFAULT 0;

-- Whether the four numbers of records and bytes were counted by the rules of this version.
ALTER TABLE progress ADD COLUMN is_counted INTEGER NOT NULL DEFAULT 0;

-- The time that retention believes it is, in milliseconds, and for how many milliseconds of uptime
-- it has not believed a clock that is further ahead.
ALTER TABLE progress ADD COLUMN believed_ms INTEGER;
ALTER TABLE progress ADD COLUMN doubted_ms INTEGER NOT NULL DEFAULT 0;

-- CRC-32 of all terms of a block; a block without one is written again.
ALTER TABLE blocks ADD COLUMN checksum INTEGER;

-- Hours with so many names that their sums are kept without any.
CREATE TABLE folded_hours (hour INTEGER PRIMARY KEY) STRICT;
