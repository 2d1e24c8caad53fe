-- semel: oldest-binary 1
--
-- The inbox: messages that are handled later, and the journal of those that may
-- have killed their process. New tables, columns without a default, and an index
-- on dead letters, which takes none while it is built: with a million of them
-- that is a second.

-- Wide and aligned columns first.
CREATE TABLE semel.inbox_messages (
    seq                bigint      NOT NULL GENERATED ALWAYS AS IDENTITY (CACHE 1),
    stored_at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    ready_at           timestamptz,
    parked_at          timestamptz,
    first_failed_at    timestamptz,
    last_failed_at     timestamptz,
    occurred_at        timestamptz,
    origin_time        timestamptz,
    key_hash           bigint,
    fingerprint        bigint,
    dead_letter_id     bigint,
    message_version    bigint,
    origin_offset      bigint,
    message_id         uuid        NOT NULL,
    lease_owner        uuid,
    consumer_id        int         NOT NULL,
    attempts           int         NOT NULL DEFAULT 0,
    place              bigint,
    origin_partition   int,
    origin_redelivered boolean     NOT NULL DEFAULT false,
    message_text       text,
    raw_id             bytea,
    message_type       text,
    key                bytea,
    correlation_id     text,
    causation_id       text,
    source             text,
    content_type       text,
    payload            bytea,
    header_names       text[],
    header_values      bytea[],
    header_tags        text,
    origin_transport   text,
    origin_topic       text,
    origin_position    text,
    origin_exchange    text,
    origin_routing_key text,
    altered            text,
    errors             text[],
    CONSTRAINT inbox_messages_pkey PRIMARY KEY (consumer_id, message_id)
) WITH (
    -- A queue: it is drained to empty, and what was handled is dead weight for the
    -- next look until it is vacuumed.
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0,
    autovacuum_vacuum_insert_threshold = 100000,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 0
);

COMMENT ON TABLE semel.inbox_messages IS 'Messages that are handled later: stored, waiting for their next attempt, waiting behind one of their key, parked. The view stored shows their state.';
COMMENT ON COLUMN semel.inbox_messages.seq IS 'Drawn while the writer holds the key''s lock: for each key the order of commits.';
COMMENT ON COLUMN semel.inbox_messages.ready_at IS 'From when on a worker may take it; while one has it, until when. NULL: parked, or behind one of its key.';
COMMENT ON COLUMN semel.inbox_messages.parked_at IS 'It is dead, and holds its key until a person has replayed or discarded it.';
COMMENT ON COLUMN semel.inbox_messages.first_failed_at IS 'The maximum age counts from here.';
COMMENT ON COLUMN semel.inbox_messages.key_hash IS 'Hash of the key: an index entry must not be as long as a key may be. Two keys that share one wait for each other, no more.';
COMMENT ON COLUMN semel.inbox_messages.fingerprint IS 'As in processed_messages.';
COMMENT ON COLUMN semel.inbox_messages.dead_letter_id IS 'The dead letter that holds the message. Then its columns here are empty, so that there is one copy of it.';
COMMENT ON COLUMN semel.inbox_messages.lease_owner IS 'The worker that took it. Where ready_at is over, that one died or froze.';
COMMENT ON COLUMN semel.inbox_messages.place IS 'Its number in its key, from the one that the key began with.';
COMMENT ON COLUMN semel.inbox_messages.raw_id IS 'The id as it came, where it is no text (NUL, not UTF-8).';
COMMENT ON COLUMN semel.inbox_messages.header_values IS 'Beside header_names. NULL is a header without a value.';
COMMENT ON COLUMN semel.inbox_messages.header_tags IS 'The AMQP type of each header, one character each, - where it has none. NULL: no header has one.';
COMMENT ON COLUMN semel.inbox_messages.altered IS 'What had to be changed so that it could be stored. NULL: all is as it came.';
COMMENT ON COLUMN semel.inbox_messages.errors IS 'The chain of errors of the last attempt, outermost first.';

-- What may be taken next.
CREATE INDEX inbox_messages_consumer_id_ready_at_idx
    ON semel.inbox_messages (consumer_id, ready_at)
    WHERE ready_at IS NOT NULL;

-- What waits of a key, in order.
CREATE INDEX inbox_messages_consumer_id_key_hash_seq_idx
    ON semel.inbox_messages (consumer_id, key_hash, seq)
    WHERE key_hash IS NOT NULL;

-- What a purge of dead letters must leave alone.
CREATE INDEX inbox_messages_dead_letter_id_idx
    ON semel.inbox_messages (dead_letter_id)
    WHERE dead_letter_id IS NOT NULL;

CREATE TABLE semel.attempt_journal (
    started_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    message_id  uuid        NOT NULL,
    consumer_id int         NOT NULL,
    attempts    int         NOT NULL DEFAULT 1,
    CONSTRAINT attempt_journal_pkey PRIMARY KEY (consumer_id, message_id)
);

COMMENT ON TABLE semel.attempt_journal IS 'Attempts that began and have not ended, of messages that may have been under way when a process died. Others leave no row here.';
COMMENT ON COLUMN semel.attempt_journal.attempts IS 'How many began. Whoever finds a row here sees that so many of them killed their process.';

ALTER TABLE semel.dead_letters
    ADD COLUMN redacted_at timestamptz,
    ADD COLUMN decided_by  text;

COMMENT ON COLUMN semel.dead_letters.redacted_at IS 'When payload and header values were deleted. The rest stays.';
COMMENT ON COLUMN semel.dead_letters.decided_by IS 'Who replayed or discarded it last.';

-- What a person is done with, oldest first.
CREATE INDEX dead_letters_resolved_at_idx
    ON semel.dead_letters (resolved_at)
    WHERE resolved_at IS NOT NULL;

ALTER TABLE semel.consumers
    ADD COLUMN settings    jsonb,
    ADD COLUMN settings_at timestamptz;

COMMENT ON COLUMN semel.consumers.settings IS 'How the consumer was configured when it last started: what semel doctor compares. Durations are seconds.';

CREATE VIEW semel.stored AS
SELECT
    i.seq,
    coalesce(c.name, 'consumer ' || i.consumer_id) AS consumer,
    coalesce(i.message_text, d.message_text, i.message_id::text) AS message,
    coalesce(i.message_type, d.message_type) AS message_type,
    CASE
        WHEN i.parked_at IS NOT NULL THEN 'parked'
        WHEN i.ready_at IS NULL THEN 'behind'
        WHEN i.ready_at <= clock_timestamp() THEN 'ready'
        WHEN i.lease_owner IS NOT NULL THEN 'taken'
        ELSE 'delayed'
    END AS state,
    semel.as_text(coalesce(i.key, d.key)) AS key,
    i.ready_at,
    i.attempts,
    i.stored_at,
    i.parked_at,
    i.first_failed_at,
    i.last_failed_at,
    i.errors,
    i.dead_letter_id,
    i.consumer_id,
    i.message_id,
    coalesce(i.correlation_id, d.correlation_id) AS correlation_id,
    octet_length(coalesce(i.payload, d.payload)) AS payload_bytes,
    semel.as_text(coalesce(i.payload, d.payload)) AS payload
FROM semel.inbox_messages AS i
LEFT JOIN semel.consumers AS c ON c.id = i.consumer_id
LEFT JOIN semel.dead_letters AS d ON d.id = i.dead_letter_id;

COMMENT ON VIEW semel.stored IS 'The messages of the inbox for people: names, their state, and the payload where it is text.';
