-- As many folders right above a file were made for it: an undo removes them again.
ALTER TABLE file_changes ADD COLUMN made_folders INTEGER NOT NULL DEFAULT 0;
