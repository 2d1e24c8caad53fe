-- The last seq that was drawn, and the highest of an event that is to be published.
-- Locks: nothing. Index: outbox_ready_idx.
SELECT
    CASE WHEN s.is_called THEN s.last_value ELSE s.last_value - 1 END,
    coalesce((
        SELECT max(o.seq)
        FROM semel.outbox AS o
        WHERE o.published_at IS NULL
          AND o.next_attempt_at IS NULL
          AND o.quarantined_at IS NULL
          AND o.discarded_at IS NULL
    ), 0)
FROM semel.outbox_seq_seq AS s
