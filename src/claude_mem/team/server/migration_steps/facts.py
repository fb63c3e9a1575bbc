"""Facts that hold, of each person in a project: the third migration; their turns: the fourth."""

from claude_mem.team.server.schema import ROLE
from claude_mem.team.wire import FACT_KINDS

_KINDS = ", ".join(f"'{kind}'" for kind in FACT_KINDS)
_OWN = "person_id = person() AND project_id IN (SELECT writable())"

FACTS = f"""
CREATE TABLE facts (
  project_id bigint NOT NULL REFERENCES projects ON DELETE CASCADE,
  person_id uuid NOT NULL REFERENCES people,
  uid text NOT NULL,
  version bigint NOT NULL,
  kind text NOT NULL CHECK (kind IN ({_KINDS})),
  subject text NOT NULL,
  value text NOT NULL,
  scope text NOT NULL,
  origin text NOT NULL CHECK (origin IN ('person', 'agent', 'outside')),
  PRIMARY KEY (project_id, person_id, uid),
  CHECK (kind <> 'rule' OR origin = 'person')
);
ALTER TABLE facts ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON facts FOR SELECT USING (project_id IN (SELECT readable()));
CREATE POLICY added ON facts FOR INSERT WITH CHECK ({_OWN});
CREATE POLICY changed ON facts FOR UPDATE USING ({_OWN});
CREATE POLICY removed ON facts FOR DELETE USING ({_OWN});
GRANT SELECT, INSERT, UPDATE, DELETE ON facts TO {ROLE};
"""

SOURCES = "ALTER TABLE facts ADD COLUMN sources text NOT NULL DEFAULT '[]'"  # uids, as JSON
