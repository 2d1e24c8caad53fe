-- What of the server and the session the promise and the pools depend on. Limits of
-- connections are -1 where there is none; reserved_connections is there from
-- PostgreSQL 16 on.
-- Locks: nothing. Reads the catalog only.
SELECT
    session_user,
    current_setting('synchronous_commit'),
    current_setting('fsync') = 'on',
    current_setting('full_page_writes') = 'on',
    current_setting('autovacuum') = 'on' AND current_setting('track_counts') = 'on',
    current_setting('max_connections')::int
        - current_setting('superuser_reserved_connections')::int
        - coalesce(current_setting('reserved_connections', true), '0')::int,
    r.rolconnlimit,
    d.datconnlimit
FROM pg_catalog.pg_roles AS r
JOIN pg_catalog.pg_database AS d ON d.datname = current_database()
WHERE r.rolname = session_user
