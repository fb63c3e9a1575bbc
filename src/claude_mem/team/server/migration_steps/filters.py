"""The statements of the sixth migration: candidates among the turns that pass a filter.

The best passages of a project may all be outside of the time that is asked for. So the latest turns
within it are compared one by one. Row-level security applies: rows are read by their keys.
"""

from claude_mem.team.server.migration_steps.vector_codes import BY_KEY
from claude_mem.team.server.schema import ROLE, SCHEMA

FILTERED = f"""
CREATE FUNCTION passages_in_range(within bigint[], queries tsquery[], required tsquery,
  query halfvec, since bigint, until bigint, of_types text[], latest integer, best integer,
  nearest integer)
  RETURNS TABLE (project_id bigint, turn_id bigint, number smallint)
  LANGUAGE plpgsql STABLE SET search_path = {SCHEMA}, public, pg_temp {BY_KEY} AS
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
REVOKE EXECUTE ON FUNCTION passages_in_range FROM PUBLIC;
GRANT EXECUTE ON FUNCTION passages_in_range TO {ROLE};
"""
