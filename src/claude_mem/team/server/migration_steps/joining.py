"""The statements of the fifth migration: a person accepts an invitation to more projects."""

from claude_mem.team.server.schema import ROLE, SCHEMA

# A role is never lowered by an invitation that came later. Returns the scopes of the invitation,
# NULL if it is not valid.
JOINING = f"""
CREATE FUNCTION join_projects(code_hash bytea) RETURNS text[]
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = {SCHEMA}, pg_temp AS
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
REVOKE EXECUTE ON FUNCTION join_projects FROM PUBLIC;
GRANT EXECUTE ON FUNCTION join_projects TO {ROLE};
"""
