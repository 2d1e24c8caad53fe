-- Where synchronous_commit is off for roles that may write down in schema $1 what
-- was handled, or for all roles. Superusers may do everything: of them only the one
-- that asks is meant.
-- Locks: nothing. Reads the catalog only.
SELECT
    CASE WHEN s.setrole = 0 THEN 'ALTER DATABASE ' || quote_ident(d.datname)
         ELSE 'ALTER ROLE ' || quote_ident(r.rolname) || coalesce(' IN DATABASE ' || quote_ident(d.datname), '')
    END
FROM pg_catalog.pg_db_role_setting AS s
CROSS JOIN LATERAL unnest(s.setconfig) AS setting
LEFT JOIN pg_catalog.pg_roles AS r ON r.oid = s.setrole
LEFT JOIN pg_catalog.pg_database AS d ON d.oid = s.setdatabase
WHERE lower(setting) IN ('synchronous_commit=off', 'synchronous_commit=false', 'synchronous_commit=no', 'synchronous_commit=0')
  AND (s.setdatabase = 0 OR d.datname = current_database())
  AND (
      s.setrole = 0
      OR r.rolname = session_user
      OR NOT r.rolsuper AND EXISTS (
          SELECT
          FROM pg_catalog.pg_class AS c
          JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
          WHERE n.nspname = $1
            AND c.relname = 'processed_messages'
            AND has_table_privilege(s.setrole, c.oid, 'INSERT')
      )
  )
ORDER BY 1
