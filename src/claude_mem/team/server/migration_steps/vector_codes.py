"""The statements of the second migration: what makes a search take milliseconds (`matching.py`
replaces one of them).

Functions in PL/pgSQL keep their plans for as long as a connection lives; planning a statement over
all partitions takes longer than running it. `codes` holds one bit for each number of a vector: a
scan of them selects the passages whose vectors are compared. Triggers fill it, and only functions
of the owner read it.
"""

from claude_mem.team.server.schema import DIMENSION, PARTITIONS, ROLE, SCHEMA

_PARTITIONS = ";\n".join(
    f"CREATE TABLE codes_{number} PARTITION OF codes"
    f" FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {number})"
    for number in range(PARTITIONS)
)
_DROPPED_INDEXES = ";\n".join(
    f"DROP INDEX IF EXISTS passages_{number}_by_vector" for number in range(PARTITIONS)
)

# Each search reads the list of what is not in the index yet: the default is 4 MB.
_PENDING_LISTS = ";\n".join(
    f"ALTER INDEX passages_{number}_lexemes_idx SET (gin_pending_list_limit = 256)"
    for number in range(PARTITIONS)
)

CODES = f"""
CREATE TABLE codes (
  project_id bigint NOT NULL,
  turn_id bigint NOT NULL,
  number smallint NOT NULL,
  code bit({DIMENSION}) NOT NULL,
  PRIMARY KEY (project_id, turn_id, number)
) PARTITION BY HASH (project_id);
{_PARTITIONS};
{_DROPPED_INDEXES};
{_PENDING_LISTS};

INSERT INTO codes SELECT project_id, turn_id, number, binary_quantize(embedding)::bit({DIMENSION})
  FROM passages;

CREATE FUNCTION add_codes() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = {SCHEMA}, public, pg_temp AS
$$
BEGIN
  INSERT INTO codes SELECT project_id, turn_id, number,
    binary_quantize(embedding)::bit({DIMENSION}) FROM added;
  RETURN NULL;
END
$$;
CREATE FUNCTION remove_codes() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = {SCHEMA}, public, pg_temp AS
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
"""

_PROJECTS = "SELECT project_id FROM memberships WHERE person_id = person()"
# In SQL, these would be planned again by every statement that has a policy.
RIGHTS = "".join(
    f"""
CREATE OR REPLACE FUNCTION {name}() RETURNS SETOF {type_} LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = {SCHEMA}, pg_temp AS
$$
BEGIN
  RETURN QUERY {query};
END
$$;
"""
    for name, type_, query in (
        ("readable", "bigint", f"{_PROJECTS} AND has_scope('read')"),
        ("writable", "bigint", f"{_PROJECTS} AND role <> 'reader' AND has_scope('write')"),
        ("administered", "bigint", f"{_PROJECTS} AND role = 'admin' AND has_scope('admin')"),
        ("colleagues", "uuid", "SELECT person() UNION SELECT person_id FROM memberships"
         " WHERE project_id IN (SELECT readable())"),
    )
)  # fmt: skip

SAMPLE = 1_000  # passages
ALLOWED = "ARRAY(SELECT unnest(within) INTERSECT SELECT readable())"
_GENERIC = "SET plan_cache_mode = force_generic_plan"
# Plans for few keys, whatever the statistics said when they were made.
BY_KEY = f"{_GENERIC} SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off"

FUNCTIONS = f"""
-- The first `words` queries are for a word each, the others for phrases. A word in very many
-- passages is not looked up, unless there are no others. How many these are in a large project is
-- estimated from some of its passages: ids are random, so that the first ones are a sample.
CREATE FUNCTION matching_passages(within bigint[], words integer, queries tsquery[],
  required tsquery, most integer, best integer)
  RETURNS TABLE (total bigint, counts bigint[], project_ids bigint[], turn_ids bigint[],
    numbers smallint[])
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = {SCHEMA}, pg_temp {BY_KEY} AS
$$
DECLARE
  allowed bigint[] := {ALLOWED};
  estimates bigint[] := array_fill(0::bigint, ARRAY[words]);
  looked_up integer[];
  project record;
  word record;
BEGIN
  total := 0;
  FOR project IN SELECT p.id, p.passages FROM projects p WHERE p.id = ANY (allowed) LOOP
    total := total + project.passages;
    IF project.passages > 4 * most THEN
      FOR word IN
        SELECT q.place, count(*) AS hits FROM (SELECT p.lexemes FROM passages p
          WHERE p.project_id = project.id ORDER BY p.turn_id, p.number LIMIT {SAMPLE}) s
        JOIN unnest(queries[1:words]) WITH ORDINALITY q(query, place) ON s.lexemes @@ q.query
        GROUP BY q.place
      LOOP
        estimates[word.place] := estimates[word.place] + word.hits * project.passages / {SAMPLE};
      END LOOP;
    END IF;
  END LOOP;
  looked_up := ARRAY(SELECT n FROM generate_subscripts(queries, 1) n
    WHERE coalesce(estimates[n], 0) < most);
  IF cardinality(looked_up) = 0 THEN
    looked_up := ARRAY(SELECT n FROM generate_subscripts(estimates, 1) n ORDER BY estimates[n]
      LIMIT 1);
  END IF;
  RETURN QUERY
  WITH hits AS MATERIALIZED (
    SELECT n, p.project_id, p.turn_id, p.number, p.words
    FROM unnest(looked_up) n CROSS JOIN unnest(allowed) a(project_id) CROSS JOIN LATERAL (
      SELECT p.project_id, p.turn_id, p.number, p.words FROM passages p
      WHERE p.project_id = a.project_id AND p.lexemes @@ queries[n]
        AND (required IS NULL OR p.lexemes @@ required) LIMIT most) p
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
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = {SCHEMA}, public, pg_temp {_GENERIC} AS
$$
DECLARE allowed bigint[] := {ALLOWED};
BEGIN
  RETURN QUERY SELECT p.project_id, p.turn_id, p.number, 1 - (p.embedding <=> query)
    FROM nearest_codes(allowed, binary_quantize(query)::bit({DIMENSION}), compared) c
    CROSS JOIN LATERAL (SELECT * FROM passages p WHERE p.project_id = c.project_id
      AND p.turn_id = c.turn_id AND p.number = c.number OFFSET 0) p
    ORDER BY p.embedding <=> query LIMIT best;
END
$$;

CREATE FUNCTION nearest_codes(allowed bigint[], query bit, compared integer)
  RETURNS TABLE (project_id bigint, turn_id bigint, number smallint)
  LANGUAGE plpgsql STABLE SET search_path = {SCHEMA}, public, pg_temp {_GENERIC} AS
$$
DECLARE project bigint;
BEGIN
  FOREACH project IN ARRAY allowed LOOP
    RETURN QUERY SELECT c.project_id, c.turn_id, c.number FROM codes c
      WHERE c.project_id = project ORDER BY c.code <~> query LIMIT compared;
  END LOOP;
END
$$;

CREATE FUNCTION read_passages(project_ids bigint[], turn_ids bigint[], numbers smallint[],
  query halfvec)
  RETURNS TABLE (project_id bigint, turn_id bigint, number smallint, kind text, words integer,
    names_time boolean, terms bytea, pieces bytea, body text, lexemes text, cosine float8)
  LANGUAGE plpgsql STABLE SET search_path = {SCHEMA}, public, pg_temp {BY_KEY} AS
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
  LANGUAGE plpgsql STABLE SET search_path = {SCHEMA}, pg_temp {BY_KEY} AS
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
  LANGUAGE plpgsql STABLE SET search_path = {SCHEMA}, pg_temp {BY_KEY} AS
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

REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA {SCHEMA} FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {SCHEMA} TO {ROLE};
"""
