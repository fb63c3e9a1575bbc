-- The schema of the team database. Frozen: a change is a migration (migrations.py).
--
-- Row-level security decides what a person reads and changes. Functions with SECURITY DEFINER are
-- the only way around it: they look up credentials before the person is known, and search with
-- indexes that row-level security would keep PostgreSQL from using; each checks memberships itself.
-- Functions in PL/pgSQL keep their plans for as long as a connection lives: planning a statement
-- over all partitions takes longer than running it. Some have plans for few keys, whatever the
-- statistics said when these were made.

CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;

DO $$ BEGIN
  IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'claude_mem_server') THEN
    CREATE ROLE claude_mem_server NOLOGIN;
  END IF;
  EXECUTE format('GRANT claude_mem_server TO %I', current_user);
END $$;

CREATE TABLE people (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  name text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- made_by: those that a token without the scope `write` made end with it
CREATE TABLE tokens (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  person_id uuid NOT NULL REFERENCES people ON DELETE CASCADE,
  hash bytea NOT NULL UNIQUE,
  name text NOT NULL DEFAULT '',
  scopes text[] NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  made_by uuid REFERENCES tokens(id) ON DELETE SET NULL
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
  embedding halfvec(256) NOT NULL,
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

-- Facts that hold, of each person in a project; sources: the uids of their turns, as JSON
CREATE TABLE facts (
  project_id bigint NOT NULL REFERENCES projects ON DELETE CASCADE,
  person_id uuid NOT NULL REFERENCES people,
  uid text NOT NULL,
  version bigint NOT NULL,
  kind text NOT NULL CHECK (kind IN ('rule', 'decision', 'command', 'fault', 'place')),
  subject text NOT NULL,
  value text NOT NULL,
  scope text NOT NULL,
  origin text NOT NULL CHECK (origin IN ('person', 'agent', 'outside')),
  sources text NOT NULL DEFAULT '[]',
  PRIMARY KEY (project_id, person_id, uid),
  CHECK (kind <> 'rule' OR origin = 'person')
);

-- One bit for each number of a vector: a scan of them selects the passages whose vectors are
-- compared. Triggers fill it, and only functions of the owner read it.
CREATE TABLE codes (
  project_id bigint NOT NULL,
  turn_id bigint NOT NULL,
  number smallint NOT NULL,
  code bit(256) NOT NULL,
  PRIMARY KEY (project_id, turn_id, number)
) PARTITION BY HASH (project_id);

CREATE TABLE turns_0 PARTITION OF turns FOR VALUES WITH (MODULUS 8, REMAINDER 0);
CREATE TABLE turns_1 PARTITION OF turns FOR VALUES WITH (MODULUS 8, REMAINDER 1);
CREATE TABLE turns_2 PARTITION OF turns FOR VALUES WITH (MODULUS 8, REMAINDER 2);
CREATE TABLE turns_3 PARTITION OF turns FOR VALUES WITH (MODULUS 8, REMAINDER 3);
CREATE TABLE turns_4 PARTITION OF turns FOR VALUES WITH (MODULUS 8, REMAINDER 4);
CREATE TABLE turns_5 PARTITION OF turns FOR VALUES WITH (MODULUS 8, REMAINDER 5);
CREATE TABLE turns_6 PARTITION OF turns FOR VALUES WITH (MODULUS 8, REMAINDER 6);
CREATE TABLE turns_7 PARTITION OF turns FOR VALUES WITH (MODULUS 8, REMAINDER 7);
CREATE TABLE passages_0 PARTITION OF passages FOR VALUES WITH (MODULUS 8, REMAINDER 0);
CREATE TABLE passages_1 PARTITION OF passages FOR VALUES WITH (MODULUS 8, REMAINDER 1);
CREATE TABLE passages_2 PARTITION OF passages FOR VALUES WITH (MODULUS 8, REMAINDER 2);
CREATE TABLE passages_3 PARTITION OF passages FOR VALUES WITH (MODULUS 8, REMAINDER 3);
CREATE TABLE passages_4 PARTITION OF passages FOR VALUES WITH (MODULUS 8, REMAINDER 4);
CREATE TABLE passages_5 PARTITION OF passages FOR VALUES WITH (MODULUS 8, REMAINDER 5);
CREATE TABLE passages_6 PARTITION OF passages FOR VALUES WITH (MODULUS 8, REMAINDER 6);
CREATE TABLE passages_7 PARTITION OF passages FOR VALUES WITH (MODULUS 8, REMAINDER 7);
CREATE TABLE codes_0 PARTITION OF codes FOR VALUES WITH (MODULUS 8, REMAINDER 0);
CREATE TABLE codes_1 PARTITION OF codes FOR VALUES WITH (MODULUS 8, REMAINDER 1);
CREATE TABLE codes_2 PARTITION OF codes FOR VALUES WITH (MODULUS 8, REMAINDER 2);
CREATE TABLE codes_3 PARTITION OF codes FOR VALUES WITH (MODULUS 8, REMAINDER 3);
CREATE TABLE codes_4 PARTITION OF codes FOR VALUES WITH (MODULUS 8, REMAINDER 4);
CREATE TABLE codes_5 PARTITION OF codes FOR VALUES WITH (MODULUS 8, REMAINDER 5);
CREATE TABLE codes_6 PARTITION OF codes FOR VALUES WITH (MODULUS 8, REMAINDER 6);
CREATE TABLE codes_7 PARTITION OF codes FOR VALUES WITH (MODULUS 8, REMAINDER 7);

-- Each search reads the list of what is not in the index yet: the default is 4 MB.
ALTER INDEX passages_0_lexemes_idx SET (gin_pending_list_limit = 256);
ALTER INDEX passages_1_lexemes_idx SET (gin_pending_list_limit = 256);
ALTER INDEX passages_2_lexemes_idx SET (gin_pending_list_limit = 256);
ALTER INDEX passages_3_lexemes_idx SET (gin_pending_list_limit = 256);
ALTER INDEX passages_4_lexemes_idx SET (gin_pending_list_limit = 256);
ALTER INDEX passages_5_lexemes_idx SET (gin_pending_list_limit = 256);
ALTER INDEX passages_6_lexemes_idx SET (gin_pending_list_limit = 256);
ALTER INDEX passages_7_lexemes_idx SET (gin_pending_list_limit = 256);

CREATE FUNCTION add_codes() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = claude_mem, public, pg_temp AS
$$
BEGIN
  INSERT INTO codes SELECT project_id, turn_id, number,
    binary_quantize(embedding)::bit(256) FROM added;
  RETURN NULL;
END
$$;
CREATE FUNCTION remove_codes() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = claude_mem, public, pg_temp AS
$$
BEGIN
  DELETE FROM codes c USING (SELECT DISTINCT project_id, turn_id FROM removed) r
    WHERE c.project_id = r.project_id AND c.turn_id = r.turn_id;
  RETURN NULL;
END
$$;
CREATE TRIGGER coded AFTER INSERT ON passages REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION add_codes();
CREATE TRIGGER uncoded AFTER DELETE ON passages REFERENCING OLD TABLE AS removed
  FOR EACH STATEMENT EXECUTE FUNCTION remove_codes();

-- Rights. Sets of projects are computed once per statement, not once per row; in SQL, these
-- functions would be planned again by every statement that has a policy.

CREATE FUNCTION person() RETURNS uuid LANGUAGE sql STABLE AS
  $$ SELECT nullif(current_setting('claude_mem.person', true), '')::uuid $$;
CREATE FUNCTION has_scope(scope text) RETURNS boolean LANGUAGE sql STABLE AS
  $$ SELECT scope = ANY (string_to_array(current_setting('claude_mem.scopes', true), ',')) $$;
CREATE FUNCTION readable() RETURNS SETOF bigint LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = claude_mem, pg_temp AS
$$
BEGIN
  RETURN QUERY SELECT project_id FROM memberships WHERE person_id = person() AND has_scope('read');
END
$$;
CREATE FUNCTION writable() RETURNS SETOF bigint LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = claude_mem, pg_temp AS
$$
BEGIN
  RETURN QUERY SELECT project_id FROM memberships WHERE person_id = person()
    AND role <> 'reader' AND has_scope('write');
END
$$;
CREATE FUNCTION administered() RETURNS SETOF bigint LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = claude_mem, pg_temp AS
$$
BEGIN
  RETURN QUERY SELECT project_id FROM memberships WHERE person_id = person()
    AND role = 'admin' AND has_scope('admin');
END
$$;
CREATE FUNCTION colleagues() RETURNS SETOF uuid LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = claude_mem, pg_temp AS
$$
BEGIN
  RETURN QUERY SELECT person() UNION SELECT person_id FROM memberships
    WHERE project_id IN (SELECT readable());
END
$$;

ALTER TABLE people ENABLE ROW LEVEL SECURITY;
ALTER TABLE tokens ENABLE ROW LEVEL SECURITY;
ALTER TABLE projects ENABLE ROW LEVEL SECURITY;
ALTER TABLE memberships ENABLE ROW LEVEL SECURITY;
ALTER TABLE invitations ENABLE ROW LEVEL SECURITY;
ALTER TABLE sessions ENABLE ROW LEVEL SECURITY;
ALTER TABLE turns ENABLE ROW LEVEL SECURITY;
ALTER TABLE passages ENABLE ROW LEVEL SECURITY;
ALTER TABLE tombstones ENABLE ROW LEVEL SECURITY;
ALTER TABLE facts ENABLE ROW LEVEL SECURITY;

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
CREATE POLICY seen ON sessions FOR SELECT USING (project_id IN (SELECT readable()));
CREATE POLICY added ON sessions FOR INSERT
  WITH CHECK (person_id = person() AND project_id IN (SELECT writable()));
CREATE POLICY changed ON sessions FOR UPDATE
  USING (person_id = person() AND project_id IN (SELECT writable()));
CREATE POLICY removed ON sessions FOR DELETE
  USING (person_id = person() AND project_id IN (SELECT writable()));
CREATE POLICY seen ON turns FOR SELECT USING (project_id IN (SELECT readable()));
CREATE POLICY added ON turns FOR INSERT
  WITH CHECK (person_id = person() AND project_id IN (SELECT writable()));
CREATE POLICY changed ON turns FOR UPDATE
  USING (person_id = person() AND project_id IN (SELECT writable()));
CREATE POLICY removed ON turns FOR DELETE
  USING (person_id = person() AND project_id IN (SELECT writable()));
CREATE POLICY seen ON passages FOR SELECT USING (project_id IN (SELECT readable()));
CREATE POLICY added ON passages FOR INSERT
  WITH CHECK (project_id IN (SELECT writable()) AND EXISTS (SELECT 1 FROM turns t
    WHERE t.project_id = passages.project_id AND t.id = passages.turn_id
      AND t.person_id = person()));
CREATE POLICY changed ON passages FOR UPDATE
  USING (project_id IN (SELECT writable()) AND EXISTS (SELECT 1 FROM turns t
    WHERE t.project_id = passages.project_id AND t.id = passages.turn_id
      AND t.person_id = person()));
CREATE POLICY removed ON passages FOR DELETE
  USING (project_id IN (SELECT writable()) AND EXISTS (SELECT 1 FROM turns t
    WHERE t.project_id = passages.project_id AND t.id = passages.turn_id
      AND t.person_id = person()));
CREATE POLICY seen ON tombstones FOR SELECT
  USING (person_id = person() AND project_id IN (SELECT readable()));
CREATE POLICY added ON tombstones FOR INSERT
  WITH CHECK (person_id = person() AND project_id IN (SELECT writable()));
CREATE POLICY changed ON tombstones FOR UPDATE
  USING (person_id = person() AND project_id IN (SELECT writable()));
CREATE POLICY removed ON tombstones FOR DELETE
  USING (person_id = person() AND project_id IN (SELECT writable()));
CREATE POLICY seen ON facts FOR SELECT USING (project_id IN (SELECT readable()));
CREATE POLICY added ON facts FOR INSERT
  WITH CHECK (person_id = person() AND project_id IN (SELECT writable()));
CREATE POLICY changed ON facts FOR UPDATE
  USING (person_id = person() AND project_id IN (SELECT writable()));
CREATE POLICY removed ON facts FOR DELETE
  USING (person_id = person() AND project_id IN (SELECT writable()));

GRANT USAGE ON SCHEMA claude_mem TO claude_mem_server;
GRANT SELECT ON people, projects, memberships TO claude_mem_server;
GRANT SELECT, INSERT ON invitations TO claude_mem_server;
GRANT SELECT, INSERT, UPDATE ON tokens TO claude_mem_server;
GRANT INSERT, DELETE ON memberships TO claude_mem_server;
GRANT UPDATE (turns, bytes, passages) ON projects TO claude_mem_server;
GRANT SELECT, INSERT, UPDATE, DELETE ON sessions, turns, passages, tombstones, facts
  TO claude_mem_server;

-- Joining

CREATE FUNCTION authenticate(token_hash bytea)
  RETURNS TABLE (token_id uuid, person_id uuid, name text, scopes text[])
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = claude_mem, pg_temp AS
$$
  SELECT t.id, p.id, p.name, t.scopes FROM tokens t JOIN people p ON p.id = t.person_id
  WHERE t.hash = token_hash AND t.revoked_at IS NULL
    AND (t.expires_at IS NULL OR t.expires_at > now())
$$;

CREATE FUNCTION accept_invitation(code_hash bytea, token_hash bytea, machine text)
  RETURNS TABLE (person_id uuid, name text, scopes text[])
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = claude_mem, pg_temp AS
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

-- A person accepts an invitation to more projects. A role is never lowered by an invitation that
-- came later. Returns the scopes of the invitation, NULL if it is not valid.
CREATE FUNCTION join_projects(code_hash bytea) RETURNS text[]
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = claude_mem, pg_temp AS
$$
DECLARE
  invitation invitations;
  roles text[] := ARRAY['reader', 'writer', 'admin'];
BEGIN
  IF person() IS NULL THEN
    RAISE insufficient_privilege USING MESSAGE = 'no person';
  END IF;
  UPDATE invitations i SET accepted_at = now() WHERE i.hash = code_hash
    AND i.accepted_at IS NULL AND i.expires_at > now() AND cardinality(i.project_ids) > 0
    RETURNING * INTO invitation;
  IF NOT FOUND THEN RETURN NULL; END IF;
  INSERT INTO memberships (project_id, person_id, role)
    SELECT p.id, person(), invitation.role FROM projects p
    WHERE p.id = ANY (invitation.project_ids)
    ON CONFLICT (project_id, person_id) DO UPDATE SET role = excluded.role
    WHERE array_position(roles, excluded.role) > array_position(roles, memberships.role);
  RETURN invitation.scopes;
END
$$;

CREATE FUNCTION create_project(new_id bigint, new_key text, new_name text, with_record boolean)
  RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = claude_mem, pg_temp AS
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

-- Searching

-- Passages by words. The first `words` queries are for a word each, the others for phrases. A word
-- in very many passages is not looked up, unless there are no others: how many these are in a large
-- project is estimated from some of its passages, as ids are random, so that the first ones are a
-- sample. Where only such words match, the passages of the latest turns are compared: an index
-- would have to collect all of them first, and the latest are the most likely to be asked for.
CREATE FUNCTION matching_passages(within bigint[], words integer, queries tsquery[],
  required tsquery, most integer, best integer)
  RETURNS TABLE (total bigint, counts bigint[], project_ids bigint[], turn_ids bigint[],
    numbers smallint[])
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = claude_mem, pg_temp
  SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off
  SET enable_seqscan = off AS
$$
DECLARE
  allowed bigint[] := ARRAY(SELECT unnest(within) INTERSECT SELECT readable());
  estimates bigint[] := array_fill(0::bigint, ARRAY[words]);
  looked_up integer[];
  scanned bigint[] := '{}';  -- projects, if no word that is looked up matches
  project record;
  word record;
BEGIN
  total := 0;
  FOR project IN SELECT p.id, p.passages FROM projects p WHERE p.id = ANY (allowed) LOOP
    total := total + project.passages;
    IF project.passages > 4 * most THEN
      FOR word IN
        SELECT q.place, count(*) AS hits FROM (SELECT strip(p.lexemes) AS lexemes FROM passages p
          WHERE p.project_id = project.id ORDER BY p.turn_id, p.number LIMIT 1000) s
        JOIN unnest(queries[1:words]) WITH ORDINALITY q(query, place) ON s.lexemes @@ q.query
        GROUP BY q.place
      LOOP
        estimates[word.place] := estimates[word.place] + word.hits * project.passages / 1000;
      END LOOP;
    END IF;
  END LOOP;
  looked_up := ARRAY(SELECT n FROM generate_subscripts(queries, 1) n
    WHERE coalesce(estimates[n], 0) < most);
  IF cardinality(looked_up) < cardinality(queries) AND required IS NULL THEN
    scanned := allowed;
  END IF;
  RETURN QUERY
  WITH looked AS MATERIALIZED (
    SELECT n, p.project_id, p.turn_id, p.number, p.words
    FROM unnest(looked_up) n CROSS JOIN unnest(allowed) a(project_id) CROSS JOIN LATERAL (
      SELECT p.project_id, p.turn_id, p.number, p.words FROM passages p
      WHERE p.project_id = a.project_id AND p.lexemes @@ queries[n]
        AND (required IS NULL OR p.lexemes @@ required) LIMIT most) p
  ), hits AS MATERIALIZED (
    SELECT * FROM looked
    UNION ALL
    SELECT q.n, p.project_id, p.turn_id, p.number, p.words
    FROM unnest(scanned) a(project_id) CROSS JOIN LATERAL (
      SELECT t.id FROM turns t WHERE t.project_id = a.project_id
      ORDER BY t.created_at_epoch DESC LIMIT 2000) t
    CROSS JOIN LATERAL (
      SELECT p.project_id, p.turn_id, p.number, p.words, strip(p.lexemes) AS lexemes
      FROM passages p WHERE p.project_id = a.project_id AND p.turn_id = t.id OFFSET 0) p
    JOIN LATERAL (SELECT s.n FROM generate_subscripts(estimates, 1) s(n)
      WHERE p.lexemes @@ queries[s.n]) q ON true
    WHERE NOT EXISTS (SELECT 1 FROM looked)
  ), counted AS MATERIALIZED (
    SELECT n, count(*) AS hits, ln(1 + greatest(0, total - count(*) + 0.5) / (count(*) + 0.5))
      AS weight FROM hits GROUP BY n
  ), lengths AS (SELECT greatest(1, avg(h.words)) AS average FROM hits h
  ), ranked AS (
    SELECT h.project_id, h.turn_id, h.number
    FROM hits h JOIN counted c USING (n) CROSS JOIN lengths
    WHERE c.hits < most OR NOT EXISTS (SELECT 1 FROM counted WHERE counted.hits < most)
    GROUP BY h.project_id, h.turn_id, h.number
    ORDER BY sum(c.weight / (1.3 + 0.9 * h.words / lengths.average)) DESC, h.turn_id DESC,
      h.number LIMIT best
  )
  SELECT total,
    ARRAY(SELECT greatest(estimates[w], coalesce(c.hits, 0))
      FROM generate_series(1, words) w LEFT JOIN counted c ON c.n = w ORDER BY w),
    array_agg(r.project_id), array_agg(r.turn_id), array_agg(r.number) FROM ranked r;
END
$$;

CREATE FUNCTION nearest_passages(within bigint[], query halfvec, compared integer, best integer)
  RETURNS TABLE (project_id bigint, turn_id bigint, number smallint, cosine float8)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = claude_mem, public, pg_temp
  SET plan_cache_mode = force_generic_plan AS
$$
DECLARE allowed bigint[] := ARRAY(SELECT unnest(within) INTERSECT SELECT readable());
BEGIN
  RETURN QUERY SELECT p.project_id, p.turn_id, p.number, 1 - (p.embedding <=> query)
    FROM nearest_codes(allowed, binary_quantize(query)::bit(256), compared) c
    CROSS JOIN LATERAL (SELECT * FROM passages p WHERE p.project_id = c.project_id
      AND p.turn_id = c.turn_id AND p.number = c.number OFFSET 0) p
    ORDER BY p.embedding <=> query LIMIT best;
END
$$;

CREATE FUNCTION nearest_codes(allowed bigint[], query bit, compared integer)
  RETURNS TABLE (project_id bigint, turn_id bigint, number smallint)
  LANGUAGE plpgsql STABLE SET search_path = claude_mem, public, pg_temp
  SET plan_cache_mode = force_generic_plan AS
$$
DECLARE project bigint;
BEGIN
  FOREACH project IN ARRAY allowed LOOP
    RETURN QUERY SELECT c.project_id, c.turn_id, c.number FROM codes c
      WHERE c.project_id = project ORDER BY c.code <~> query LIMIT compared;
  END LOOP;
END
$$;

-- Candidates among the turns that pass a filter. The best passages of a project may all be outside
-- of the time that is asked for. So the latest turns within it are compared one by one. Row-level
-- security applies: rows are read by their keys.
CREATE FUNCTION passages_in_range(within bigint[], queries tsquery[], required tsquery,
  query halfvec, since bigint, until bigint, of_types text[], latest integer, best integer,
  nearest integer)
  RETURNS TABLE (project_id bigint, turn_id bigint, number smallint)
  LANGUAGE plpgsql STABLE SET search_path = claude_mem, public, pg_temp
  SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off
  SET enable_seqscan = off AS
$$
BEGIN
  RETURN QUERY
  WITH turns_in_range AS MATERIALIZED (
    SELECT t.project_id, t.id FROM unnest(within) a(project_id) CROSS JOIN LATERAL (
      SELECT t.project_id, t.id, t.type FROM turns t WHERE t.project_id = a.project_id
        AND t.created_at_epoch >= since AND t.created_at_epoch < until
      ORDER BY t.created_at_epoch DESC LIMIT latest) t
    WHERE cardinality(of_types) = 0 OR t.type = ANY (of_types)
  ), compared AS MATERIALIZED (
    SELECT p.project_id, p.turn_id, p.number, p.embedding <=> query AS distance,
      (SELECT count(*) FROM unnest(queries) q WHERE p.lexemes @@ q) AS hits
    FROM turns_in_range t JOIN passages p ON p.project_id = t.project_id AND p.turn_id = t.id
    WHERE required IS NULL OR p.lexemes @@ required
  )
  (SELECT c.project_id, c.turn_id, c.number FROM compared c WHERE c.hits > 0
    ORDER BY c.hits DESC, c.distance, c.turn_id, c.number LIMIT best)
  UNION
  (SELECT c.project_id, c.turn_id, c.number FROM compared c WHERE c.distance IS NOT NULL
    ORDER BY c.distance, c.turn_id, c.number LIMIT nearest);
END
$$;

CREATE FUNCTION turns_by_words(within bigint[], expression tsquery)
  RETURNS TABLE (project_id bigint, turn_id bigint)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = claude_mem, pg_temp AS
$$
  SELECT DISTINCT p.project_id, p.turn_id FROM passages p
  WHERE p.project_id = ANY (within) AND p.lexemes @@ expression
    AND p.project_id IN (SELECT readable())
$$;

CREATE FUNCTION read_passages(project_ids bigint[], turn_ids bigint[], numbers smallint[],
  query halfvec)
  RETURNS TABLE (project_id bigint, turn_id bigint, number smallint, kind text, words integer,
    names_time boolean, terms bytea, pieces bytea, body text, lexemes text, cosine float8)
  LANGUAGE plpgsql STABLE SET search_path = claude_mem, public, pg_temp
  SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off
  SET enable_seqscan = off AS
$$
BEGIN
  RETURN QUERY SELECT p.project_id, p.turn_id, p.number, p.kind, p.words, p.names_time, p.terms,
      p.pieces, p.text, p.lexemes::text, coalesce(1 - (p.embedding <=> query), 0)
    FROM unnest(project_ids, turn_ids, numbers) k(project_id, turn_id, number)
    JOIN passages p ON p.project_id = k.project_id AND p.turn_id = k.turn_id
      AND p.number = k.number;
END
$$;

CREATE FUNCTION read_turns(project_ids bigint[], ids bigint[])
  RETURNS TABLE (project_id bigint, id bigint, session_id bigint, number integer,
    created_at_epoch bigint, type text, title text, title_stems text, words integer, size integer,
    uid text, project text, project_key text, owner text, is_own boolean)
  LANGUAGE plpgsql STABLE SET search_path = claude_mem, pg_temp
  SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off
  SET enable_seqscan = off AS
$$
BEGIN
  RETURN QUERY SELECT t.project_id, t.id, t.session_id, t.number, t.created_at_epoch, t.type,
      t.title, t.title_stems, t.words, t.size, t.uid, pr.name, pr.key, pe.name,
      t.person_id = person()
    FROM unnest(project_ids, ids) k(project_id, id)
    JOIN turns t ON t.project_id = k.project_id AND t.id = k.id
    JOIN projects pr ON pr.id = t.project_id JOIN people pe ON pe.id = t.person_id;
END
$$;

CREATE FUNCTION neighbouring_turns(project_ids bigint[], turn_ids bigint[], session_ids bigint[],
  numbers integer[], after integer, before integer)
  RETURNS TABLE (of_turn bigint, distance bigint, id bigint)
  LANGUAGE plpgsql STABLE SET search_path = claude_mem, pg_temp
  SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off
  SET enable_seqscan = off AS
$$
BEGIN
  RETURN QUERY SELECT k.turn_id, n.distance, n.id
    FROM unnest(project_ids, turn_ids, session_ids, numbers)
      k(project_id, turn_id, session_id, number)
    CROSS JOIN LATERAL (
      (SELECT t.id, row_number() OVER (ORDER BY t.number) AS distance FROM turns t
        WHERE t.project_id = k.project_id AND t.session_id = k.session_id AND t.number > k.number
        ORDER BY t.number LIMIT after)
      UNION ALL
      (SELECT t.id, -row_number() OVER (ORDER BY t.number DESC) FROM turns t
        WHERE t.project_id = k.project_id AND t.session_id = k.session_id AND t.number < k.number
        ORDER BY t.number DESC LIMIT before)) n;
END
$$;

REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA claude_mem FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA claude_mem TO claude_mem_server;
