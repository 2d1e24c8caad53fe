-- Which rights the current role lacks in schema $1, as the GRANTs that give
-- them: relations $2, privileges $3. No row: it lacks none. Reads the catalog only.
WITH needed (relation, privilege) AS (
    SELECT NULL, 'USAGE'
    UNION ALL
    SELECT * FROM unnest($2::text[], $3::text[])
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
