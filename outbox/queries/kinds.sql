-- What is still to be published, by aggregate type. At most $1 events that are
-- pending, and as many that are held back, are counted.
-- Locks: nothing. Index: outbox_ready_idx, outbox_blocked_idx.
SELECT
    o.aggregatetype,
    count(*) FILTER (WHERE o.state = 'pending'),
    count(*) FILTER (WHERE o.state = 'waiting'),
    count(*) FILTER (WHERE o.state = 'quarantined'),
    coalesce(least(greatest(extract(epoch FROM clock_timestamp() - min(o.created_at) FILTER (WHERE o.state <> 'quarantined' AND isfinite(o.created_at))), 0), 9e9), 0)::float8
FROM (
    (
        SELECT p.aggregatetype, p.created_at, 'pending' AS state
        FROM semel.outbox AS p
        WHERE p.published_at IS NULL
          AND p.next_attempt_at IS NULL
          AND p.quarantined_at IS NULL
          AND p.discarded_at IS NULL
        ORDER BY p.seq
        LIMIT $1
    )
    UNION ALL
    (
        SELECT h.aggregatetype, h.created_at, CASE WHEN h.quarantined_at IS NULL THEN 'waiting' ELSE 'quarantined' END AS state
        FROM semel.outbox AS h
        WHERE h.published_at IS NULL
          AND h.discarded_at IS NULL
          AND (h.next_attempt_at IS NOT NULL OR h.quarantined_at IS NOT NULL)
        ORDER BY h.shard, h.seq
        LIMIT $1
    )
) AS o
GROUP BY o.aggregatetype
ORDER BY o.aggregatetype
