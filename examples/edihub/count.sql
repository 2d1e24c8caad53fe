-- What became of the messages, told by the tables and by the MDNs that partners
-- hold.
--
-- A message is one row of interchanges, with one event, one document or dead
-- letter of the transform, and one copy in the archive.
--
-- lost:    messages for which one of these is missing, and MDNs that partners hold
--          whose message is not journaled, or with another MDN.
-- doubled: rows, events, documents, dead letters of the transform and copies
--          beyond one for each message, all of those without a message, and MDNs
--          beyond one that a partner holds for a message.
WITH journal AS (
    SELECT id, count(*) AS n
    FROM interchanges
    GROUP BY id
), event AS (
    SELECT aggregateid AS id, count(*) AS n
    FROM semel.outbox
    WHERE aggregatetype = 'interchange' AND published_at IS NOT NULL
    GROUP BY aggregateid
), document AS (
    SELECT id, count(*) AS n
    FROM (SELECT interchange AS id FROM documents
          UNION ALL
          SELECT correlation_id FROM semel.dead_letters JOIN semel.consumers ON consumers.id = consumer_id WHERE name = 'transform') AS made
    GROUP BY id
), copy AS (
    SELECT interchange AS id, count(*) AS n
    FROM archived
    GROUP BY interchange
), message AS (
    SELECT id,
           coalesce(journal.n, 0)  AS journaled,
           coalesce(event.n, 0)    AS events,
           coalesce(document.n, 0) AS documents,
           coalesce(copy.n, 0)     AS copies
    FROM journal
    FULL JOIN event USING (id)
    FULL JOIN document USING (id)
    FULL JOIN copy USING (id)
)
SELECT count(*) FILTER (WHERE journaled > 0)                                          AS messages,
       (SELECT count(DISTINCT id) FROM partner_mdns)                                  AS mdns,
       coalesce(sum(events), 0)::bigint                                               AS events,
       (SELECT count(*) FROM documents)                                               AS transformed,
       coalesce(sum(copies), 0)::bigint                                               AS archived,
       count(*) FILTER (WHERE journaled > 0 AND least(events, documents, copies) = 0)
           + (SELECT count(*)
              FROM partner_mdns AS held
              WHERE NOT EXISTS (SELECT FROM interchanges AS i WHERE i.id = held.id AND i.mdn = held.mdn))
                                                                                      AS lost,
       coalesce(sum(greatest(journaled - 1, 0)
                    + greatest(events - least(journaled, 1), 0)
                    + greatest(documents - least(journaled, 1), 0)
                    + greatest(copies - least(journaled, 1), 0)), 0)::bigint
           + (SELECT count(*) - count(DISTINCT id) FROM partner_mdns)                 AS doubled,
       (SELECT count(*) FROM semel.dead_letters WHERE reason = 'mismatch')            AS mismatches,
       (SELECT count(*) FROM semel.dead_letters WHERE reason <> 'mismatch')           AS dead
FROM message
