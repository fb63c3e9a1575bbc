"""The statements of the seventh migration: passages by words, in large projects too.

Lexemes of the sample are unpacked once, not for each word. Where only words match that are in very
many passages, those of the latest turns are compared: an index would have to collect all of them
first, and the latest are the most likely to be asked for.
"""

from claude_mem.team.server.migration_steps.vector_codes import ALLOWED, BY_KEY, SAMPLE
from claude_mem.team.server.schema import SCHEMA

LATEST = 2_000  # turns of a project

MATCHING = f"""
CREATE OR REPLACE FUNCTION matching_passages(within bigint[], words integer, queries tsquery[],
  required tsquery, most integer, best integer)
  RETURNS TABLE (total bigint, counts bigint[], project_ids bigint[], turn_ids bigint[],
    numbers smallint[])
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = {SCHEMA}, pg_temp {BY_KEY} AS
$$
DECLARE
  allowed bigint[] := {ALLOWED};
  estimates bigint[] := array_fill(0::bigint, ARRAY[words]);
  looked_up integer[];
  scanned bigint[] := '{{}}';  -- projects, if no word that is looked up matches
  project record;
  word record;
BEGIN
  total := 0;
  FOR project IN SELECT p.id, p.passages FROM projects p WHERE p.id = ANY (allowed) LOOP
    total := total + project.passages;
    IF project.passages > 4 * most THEN
      FOR word IN
        SELECT q.place, count(*) AS hits FROM (SELECT strip(p.lexemes) AS lexemes FROM passages p
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
      ORDER BY t.created_at_epoch DESC LIMIT {LATEST}) t
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
"""
