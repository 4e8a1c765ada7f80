-- What a call was decided upon, packed into one number; none for what was never decided.
ALTER TABLE records ADD COLUMN facts INTEGER;
