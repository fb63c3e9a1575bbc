"""The statements of the first migration: tables, rights, and the functions that search.

Functions with SECURITY DEFINER are the only way around row-level security: they look up credentials
before the person is known, and search with indexes that row-level security would keep PostgreSQL
from using; each checks memberships itself.
"""

from claude_mem.team.server.schema import DIMENSION, PARTITIONS, ROLE, SCHEMA

TABLES = f"""
CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;

DO $$ BEGIN
  IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = '{ROLE}') THEN
    CREATE ROLE {ROLE} NOLOGIN;
  END IF;
  EXECUTE format('GRANT {ROLE} TO %I', current_user);
END $$;

CREATE TABLE people (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  name text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE tokens (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  person_id uuid NOT NULL REFERENCES people ON DELETE CASCADE,
  hash bytea NOT NULL UNIQUE,
  name text NOT NULL DEFAULT '',
  scopes text[] NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz,
  revoked_at timestamptz
);
CREATE INDEX ON tokens (person_id);

CREATE TABLE projects (
  id bigint PRIMARY KEY,
  key text NOT NULL,
  name text NOT NULL,
  shares_record boolean NOT NULL DEFAULT false,
  max_turns bigint,
  max_bytes bigint,
  turns bigint NOT NULL DEFAULT 0,
  bytes bigint NOT NULL DEFAULT 0,
  passages bigint NOT NULL DEFAULT 0,
  created_by uuid NOT NULL REFERENCES people,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE memberships (
  project_id bigint NOT NULL REFERENCES projects ON DELETE CASCADE,
  person_id uuid NOT NULL REFERENCES people ON DELETE CASCADE,
  role text NOT NULL CHECK (role IN ('reader', 'writer', 'admin')),
  PRIMARY KEY (project_id, person_id)
);
CREATE INDEX ON memberships (person_id);

CREATE TABLE invitations (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  hash bytea NOT NULL UNIQUE,
  person_name text NOT NULL,
  scopes text[] NOT NULL,
  project_ids bigint[] NOT NULL,
  role text NOT NULL CHECK (role IN ('reader', 'writer', 'admin')),
  invited_by uuid REFERENCES people,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  accepted_at timestamptz
);

CREATE TABLE sessions (
  project_id bigint NOT NULL REFERENCES projects ON DELETE CASCADE,
  id bigint NOT NULL,
  person_id uuid NOT NULL REFERENCES people,
  uid text NOT NULL,
  title text,
  content text NOT NULL,
  version bigint NOT NULL,
  PRIMARY KEY (project_id, id),
  UNIQUE (project_id, person_id, uid)
);

CREATE TABLE turns (
  project_id bigint NOT NULL,
  id bigint NOT NULL,
  person_id uuid NOT NULL,
  uid text NOT NULL,
  session_id bigint NOT NULL,
  number integer NOT NULL,
  created_at_epoch bigint NOT NULL,
  version bigint NOT NULL,
  sealed integer NOT NULL,
  hash text NOT NULL,
  type text NOT NULL,
  title text NOT NULL,
  title_stems text NOT NULL,
  words integer NOT NULL,
  size integer NOT NULL,
  bytes integer NOT NULL,
  passages integer NOT NULL,
  content text NOT NULL,
  PRIMARY KEY (project_id, id),
  UNIQUE (project_id, person_id, uid)
) PARTITION BY HASH (project_id);
CREATE INDEX turns_by_time ON turns (project_id, created_at_epoch, id);
CREATE INDEX turns_by_place ON turns (project_id, session_id, number);

CREATE TABLE passages (
  project_id bigint NOT NULL,
  turn_id bigint NOT NULL,
  number smallint NOT NULL,
  kind text NOT NULL,
  words integer NOT NULL,
  names_time boolean NOT NULL,
  text text NOT NULL,
  terms bytea NOT NULL,
  pieces bytea NOT NULL,
  lexemes tsvector NOT NULL,
  embedding halfvec({DIMENSION}) NOT NULL,
  PRIMARY KEY (project_id, turn_id, number),
  FOREIGN KEY (project_id, turn_id) REFERENCES turns ON DELETE CASCADE
) PARTITION BY HASH (project_id);
CREATE INDEX passages_by_word ON passages USING gin (lexemes);

CREATE TABLE tombstones (
  project_id bigint NOT NULL REFERENCES projects ON DELETE CASCADE,
  person_id uuid NOT NULL REFERENCES people,
  uid text NOT NULL,
  at_epoch bigint NOT NULL,
  received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (project_id, person_id, uid)
);
"""

PARTITION_STATEMENTS = ";\n".join(
    f"CREATE TABLE {table}_{number} PARTITION OF {table}"
    f" FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {number})"
    for table in ("turns", "passages")
    for number in range(PARTITIONS)
)

_OWN = "person_id = person() AND project_id IN (SELECT writable())"
_OWN_PASSAGE = (
    "project_id IN (SELECT writable()) AND EXISTS (SELECT 1 FROM turns t"
    " WHERE t.project_id = passages.project_id AND t.id = passages.turn_id"
    " AND t.person_id = person())"
)
_READERS = {"tombstones": "person_id = person() AND project_id IN (SELECT readable())"}
# Members read what a project shares; each changes only what is their own.
OWN_ROWS = "".join(
    f"CREATE POLICY seen ON {table} FOR SELECT"
    f" USING ({_READERS.get(table, 'project_id IN (SELECT readable())')});\n"
    f"CREATE POLICY added ON {table} FOR INSERT WITH CHECK ({own});\n"
    f"CREATE POLICY changed ON {table} FOR UPDATE USING ({own});\n"
    f"CREATE POLICY removed ON {table} FOR DELETE USING ({own});\n"
    for table, own in (
        ("sessions", _OWN), ("turns", _OWN), ("passages", _OWN_PASSAGE), ("tombstones", _OWN),
    )
)  # fmt: skip

# Sets of projects are computed once per statement, not once per row.
RIGHTS = f"""
CREATE FUNCTION person() RETURNS uuid LANGUAGE sql STABLE AS
  $$ SELECT nullif(current_setting('claude_mem.person', true), '')::uuid $$;
CREATE FUNCTION has_scope(scope text) RETURNS boolean LANGUAGE sql STABLE AS
  $$ SELECT scope = ANY (string_to_array(current_setting('claude_mem.scopes', true), ',')) $$;
CREATE FUNCTION readable() RETURNS SETOF bigint LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = {SCHEMA}, pg_temp AS
  $$ SELECT project_id FROM memberships WHERE person_id = person() AND has_scope('read') $$;
CREATE FUNCTION writable() RETURNS SETOF bigint LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = {SCHEMA}, pg_temp AS
  $$ SELECT project_id FROM memberships
     WHERE person_id = person() AND role <> 'reader' AND has_scope('write') $$;
CREATE FUNCTION administered() RETURNS SETOF bigint LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = {SCHEMA}, pg_temp AS
  $$ SELECT project_id FROM memberships
     WHERE person_id = person() AND role = 'admin' AND has_scope('admin') $$;
CREATE FUNCTION colleagues() RETURNS SETOF uuid LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = {SCHEMA}, pg_temp AS
  $$ SELECT person() UNION
     SELECT person_id FROM memberships WHERE project_id IN (SELECT readable()) $$;

ALTER TABLE people ENABLE ROW LEVEL SECURITY;
ALTER TABLE tokens ENABLE ROW LEVEL SECURITY;
ALTER TABLE projects ENABLE ROW LEVEL SECURITY;
ALTER TABLE memberships ENABLE ROW LEVEL SECURITY;
ALTER TABLE invitations ENABLE ROW LEVEL SECURITY;
ALTER TABLE sessions ENABLE ROW LEVEL SECURITY;
ALTER TABLE turns ENABLE ROW LEVEL SECURITY;
ALTER TABLE passages ENABLE ROW LEVEL SECURITY;
ALTER TABLE tombstones ENABLE ROW LEVEL SECURITY;

CREATE POLICY seen ON people FOR SELECT USING (id IN (SELECT colleagues()));
CREATE POLICY own ON tokens USING (person_id = person());
CREATE POLICY seen ON projects FOR SELECT USING (id IN (SELECT readable()));
CREATE POLICY counted ON projects FOR UPDATE USING (id IN (SELECT writable()));
CREATE POLICY seen ON memberships FOR SELECT USING (project_id IN (SELECT readable()));
CREATE POLICY added ON memberships FOR INSERT
  WITH CHECK (project_id IN (SELECT administered()));
CREATE POLICY removed ON memberships FOR DELETE
  USING (person_id = person() OR project_id IN (SELECT administered()));
CREATE POLICY invited ON invitations FOR INSERT
  WITH CHECK (invited_by = person() AND has_scope('admin')
    AND project_ids <@ ARRAY(SELECT administered()));

{OWN_ROWS}
GRANT USAGE ON SCHEMA {SCHEMA} TO {ROLE};
GRANT SELECT ON people, projects, memberships TO {ROLE};
GRANT SELECT, INSERT ON invitations TO {ROLE};
GRANT SELECT, INSERT, UPDATE ON tokens TO {ROLE};
GRANT INSERT, DELETE ON memberships TO {ROLE};
GRANT UPDATE (turns, bytes, passages) ON projects TO {ROLE};
GRANT SELECT, INSERT, UPDATE, DELETE ON sessions, turns, passages, tombstones TO {ROLE};
"""

FUNCTIONS = f"""
CREATE FUNCTION authenticate(token_hash bytea)
  RETURNS TABLE (token_id uuid, person_id uuid, name text, scopes text[])
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = {SCHEMA}, pg_temp AS
$$
  SELECT t.id, p.id, p.name, t.scopes FROM tokens t JOIN people p ON p.id = t.person_id
  WHERE t.hash = token_hash AND t.revoked_at IS NULL
    AND (t.expires_at IS NULL OR t.expires_at > now())
$$;

CREATE FUNCTION accept_invitation(code_hash bytea, token_hash bytea, machine text)
  RETURNS TABLE (person_id uuid, name text, scopes text[])
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = {SCHEMA}, pg_temp AS
$$
DECLARE invitation invitations; someone uuid;
BEGIN
  UPDATE invitations i SET accepted_at = now() WHERE i.hash = code_hash
    AND i.accepted_at IS NULL AND i.expires_at > now() RETURNING * INTO invitation;
  IF NOT FOUND THEN RETURN; END IF;
  INSERT INTO people (name) VALUES (invitation.person_name) RETURNING id INTO someone;
  INSERT INTO tokens (person_id, hash, name, scopes)
    VALUES (someone, token_hash, machine, invitation.scopes);
  INSERT INTO memberships (project_id, person_id, role)
    SELECT p.id, someone, invitation.role FROM projects p
    WHERE p.id = ANY (invitation.project_ids);
  RETURN QUERY SELECT someone, invitation.person_name, invitation.scopes;
END
$$;

CREATE FUNCTION create_project(new_id bigint, new_key text, new_name text, with_record boolean)
  RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = {SCHEMA}, pg_temp AS
$$
BEGIN
  IF person() IS NULL OR NOT has_scope('write') THEN
    RAISE insufficient_privilege USING MESSAGE = 'no person with the scope write';
  END IF;
  INSERT INTO projects (id, key, name, shares_record, created_by)
    VALUES (new_id, new_key, new_name, with_record, person());
  INSERT INTO memberships VALUES (new_id, person(), 'admin');
END
$$;

CREATE FUNCTION term_counts(within bigint[], queries tsquery[], most integer)
  RETURNS TABLE (place bigint, passages bigint)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = {SCHEMA}, pg_temp AS
$$
  SELECT q.place, (SELECT count(*) FROM (SELECT 1 FROM passages p
    WHERE p.project_id = ANY (within) AND p.lexemes @@ q.query
      AND p.project_id IN (SELECT readable()) LIMIT most) m)
  FROM unnest(queries) WITH ORDINALITY q(query, place)
$$;

CREATE FUNCTION passages_by_words(
  within bigint[], expression tsquery, queries tsquery[], weights float8[], most integer)
  RETURNS TABLE (project_id bigint, turn_id bigint, number smallint)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = {SCHEMA}, pg_temp AS
$$
  SELECT p.project_id, p.turn_id, p.number FROM passages p
  WHERE p.project_id = ANY (within) AND p.lexemes @@ expression
    AND p.project_id IN (SELECT readable())
  ORDER BY (SELECT sum(q.weight) FROM unnest(queries, weights) q(query, weight)
    WHERE p.lexemes @@ q.query) DESC NULLS LAST, p.turn_id DESC, p.number LIMIT most
$$;

CREATE FUNCTION passages_by_vector(within bigint[], query halfvec, most integer)
  RETURNS TABLE (project_id bigint, turn_id bigint, number smallint)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = {SCHEMA}, public, pg_temp AS
$$
  SELECT p.project_id, p.turn_id, p.number FROM passages p
  WHERE p.project_id = ANY (within) AND p.project_id IN (SELECT readable())
  ORDER BY p.embedding <=> query LIMIT most
$$;

CREATE FUNCTION turns_by_words(within bigint[], expression tsquery)
  RETURNS TABLE (project_id bigint, turn_id bigint)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = {SCHEMA}, pg_temp AS
$$
  SELECT DISTINCT p.project_id, p.turn_id FROM passages p
  WHERE p.project_id = ANY (within) AND p.lexemes @@ expression
    AND p.project_id IN (SELECT readable())
$$;

REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA {SCHEMA} FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {SCHEMA} TO {ROLE};
"""
