"""Which token made a token: those that a token without the scope `write` made end with it."""

MADE_BY = "ALTER TABLE tokens ADD COLUMN made_by uuid REFERENCES tokens(id) ON DELETE SET NULL"
