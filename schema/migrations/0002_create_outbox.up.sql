-- semel: oldest-binary 1
--
-- The outbox: events that wait for a relay, and the relays that share them. New
-- tables only, and a column without a default in a tiny one, so nothing that runs
-- is locked for more than a moment.

-- The shard of an aggregate. Only the database computes it, so all writers agree.
CREATE FUNCTION semel.shard(aggregatetype text, aggregateid text) RETURNS smallint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN get_byte(sha256(
        int4send(octet_length(convert_to(aggregatetype, 'UTF8'))) || convert_to(aggregatetype, 'UTF8')
        || int4send(octet_length(convert_to(aggregateid, 'UTF8'))) || convert_to(aggregateid, 'UTF8')
    ), 0)::smallint;

COMMENT ON FUNCTION semel.shard(text, text) IS 'The shard of an aggregate, 0 to 255.';

-- Wide and aligned columns first. Debezium's event router finds the names it
-- looks for by default: id, aggregatetype, aggregateid, type, payload.
CREATE TABLE semel.outbox (
    seq             bigint      NOT NULL GENERATED ALWAYS AS IDENTITY (CACHE 1),
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    published_at    timestamptz,
    next_attempt_at timestamptz,
    quarantined_at  timestamptz,
    discarded_at    timestamptz,
    first_failed_at timestamptz,
    occurred_at     timestamptz,
    version         bigint,
    lease_epoch     bigint,
    id              uuid        NOT NULL,
    attempts        int         NOT NULL DEFAULT 0,
    lease_attempts  int         NOT NULL DEFAULT 0,
    shard           smallint    NOT NULL GENERATED ALWAYS AS (semel.shard(aggregatetype, aggregateid)) STORED,
    aggregatetype   text        NOT NULL,
    aggregateid     text        NOT NULL,
    type            text        NOT NULL,
    payload         bytea,
    content_type    text,
    correlation_id  text,
    causation_id    text,
    source          text,
    header_names    text[],
    header_values   bytea[],
    header_tags     text,
    last_error      text,
    CONSTRAINT outbox_pkey PRIMARY KEY (id)
) WITH (
    -- A queue: what is published is dead weight for the scans until it is vacuumed.
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_insert_scale_factor = 0,
    autovacuum_vacuum_insert_threshold = 100000,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 0
);

COMMENT ON TABLE semel.outbox IS 'Events that are written with the change they tell of, and published by a relay. The view events shows their state.';
COMMENT ON COLUMN semel.outbox.seq IS 'Drawn while the writer holds the aggregate: the order of its events. It is no order of commits.';
COMMENT ON COLUMN semel.outbox.published_at IS 'When a relay noted that the broker had confirmed it.';
COMMENT ON COLUMN semel.outbox.next_attempt_at IS 'Set after a failed attempt: it, and what follows of its aggregate, waits until then.';
COMMENT ON COLUMN semel.outbox.quarantined_at IS 'The relay gave up on it. It holds its aggregate until a person retries or discards it.';
COMMENT ON COLUMN semel.outbox.discarded_at IS 'A person decided that it is never published.';
COMMENT ON COLUMN semel.outbox.first_failed_at IS 'The maximum age counts from here.';
COMMENT ON COLUMN semel.outbox.version IS 'The sequence number of the aggregate, as its writer gave it.';
COMMENT ON COLUMN semel.outbox.attempts IS 'Failed attempts in the whole life of the event.';
COMMENT ON COLUMN semel.outbox.lease_attempts IS 'Failed attempts under the lease of lease_epoch. The pause before the next one grows with them.';
COMMENT ON COLUMN semel.outbox.header_values IS 'Beside header_names. NULL is a header without a value.';
COMMENT ON COLUMN semel.outbox.header_tags IS 'The AMQP type of each header, one character each, - where it has none. NULL: no header has one.';

-- What may be published now. By seq first: a relay reads on from where it was,
-- and passes over the shards of others.
CREATE INDEX outbox_ready_idx
    ON semel.outbox (seq, shard)
    WHERE published_at IS NULL AND next_attempt_at IS NULL AND quarantined_at IS NULL AND discarded_at IS NULL;

-- What holds its aggregate.
CREATE INDEX outbox_blocked_idx
    ON semel.outbox (shard, seq)
    WHERE published_at IS NULL AND discarded_at IS NULL AND (next_attempt_at IS NOT NULL OR quarantined_at IS NOT NULL);

CREATE TABLE semel.relays (
    alive_until timestamptz NOT NULL,
    started_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    id          uuid        NOT NULL,
    name        text        NOT NULL,
    CONSTRAINT relays_pkey PRIMARY KEY (id)
);

COMMENT ON TABLE semel.relays IS 'The relays that run, one row for each start of one.';
COMMENT ON COLUMN semel.relays.name IS 'Host and process, for people.';

CREATE TABLE semel.relay_leases (
    expires_at timestamptz NOT NULL DEFAULT '-infinity',
    epoch      bigint      NOT NULL DEFAULT 0,
    owner      uuid,
    lo         smallint    NOT NULL,
    hi         smallint    NOT NULL,
    CONSTRAINT relay_leases_pkey PRIMARY KEY (lo)
) WITH (fillfactor = 50);

COMMENT ON TABLE semel.relay_leases IS 'Which relay owns which shards, until when.';
COMMENT ON COLUMN semel.relay_leases.epoch IS 'Rises when the owner changes, and so rejects what the one before still wanted to note.';
COMMENT ON COLUMN semel.relay_leases.lo IS 'The first shard of the range; the shards of an aggregate are in the range whose lo is shard & 252.';

INSERT INTO semel.relay_leases (lo, hi)
SELECT lo, lo + 3
FROM generate_series(0, 252, 4) AS lo;

CREATE VIEW semel.events AS
SELECT
    o.seq,
    o.id,
    CASE
        WHEN o.published_at IS NOT NULL THEN 'published'
        WHEN o.discarded_at IS NOT NULL THEN 'discarded'
        WHEN o.quarantined_at IS NOT NULL THEN 'quarantined'
        WHEN o.next_attempt_at IS NOT NULL THEN 'waiting'
        ELSE 'pending'
    END AS state,
    o.aggregatetype,
    o.aggregateid,
    o.type,
    o.version,
    o.created_at,
    o.published_at,
    o.next_attempt_at,
    o.quarantined_at,
    o.attempts,
    o.last_error,
    o.correlation_id,
    o.causation_id,
    o.shard,
    octet_length(o.payload) AS payload_bytes,
    semel.as_text(o.payload) AS payload
FROM semel.outbox AS o;

COMMENT ON VIEW semel.events IS 'The events for people: their state by name, and the payload where it is text.';

-- How far the purge of what was handled has come.
ALTER TABLE semel.consumers
    ADD COLUMN purged_before timestamptz;

COMMENT ON COLUMN semel.consumers.purged_before IS 'The latest processed_at that a purge has deleted. An older message may have been handled: nobody knows any more.';
