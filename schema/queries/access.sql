-- Which rights the current role lacks in schema $1, as the GRANTs that give
-- them. No row: it may do all that a consumer does. Reads the catalog only.
WITH needed (relation, privilege) AS (
    VALUES
        (NULL, 'USAGE'),
        ('consumers', 'SELECT'),
        ('consumers', 'INSERT'),
        ('processed_messages', 'SELECT'),
        ('processed_messages', 'INSERT'),
        ('processed_messages', 'UPDATE'),
        ('dead_letters', 'SELECT'),
        ('dead_letters', 'INSERT'),
        ('dead_letters', 'UPDATE')
)
SELECT
    CASE
        WHEN needed.relation IS NULL THEN format('GRANT USAGE ON SCHEMA %I TO %I', n.nspname, current_user)
        WHEN c.oid IS NULL THEN format('table %I.%I is missing', n.nspname, needed.relation)
        ELSE format('GRANT %s ON %I.%I TO %I', needed.privilege, n.nspname, needed.relation, current_user)
    END
FROM needed
JOIN pg_catalog.pg_namespace AS n ON n.nspname = $1
LEFT JOIN pg_catalog.pg_class AS c ON c.relnamespace = n.oid AND c.relname = needed.relation
WHERE NOT CASE
    WHEN needed.relation IS NULL THEN has_schema_privilege(n.oid, 'USAGE')
    WHEN c.oid IS NULL THEN false
    ELSE has_table_privilege(c.oid, needed.privilege)
END
ORDER BY needed.relation NULLS FIRST, needed.privilege;
