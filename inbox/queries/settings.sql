-- The settings of a session that the promise depends on.
-- Locks: nothing.
SELECT current_setting('synchronous_commit'),
       current_setting('server_encoding'),
       current_setting('transaction_read_only')
