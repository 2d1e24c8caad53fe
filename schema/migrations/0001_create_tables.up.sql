-- semel: oldest-binary 1
--
-- The tables of the engine: who consumes, what was handled, what is dead. New
-- tables only, so nothing that runs is locked.

CREATE TABLE semel.schema_migrations (
    version       int         NOT NULL,
    name          text        NOT NULL,
    oldest_binary int         NOT NULL,
    applied_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT schema_migrations_pkey PRIMARY KEY (version)
);

COMMENT ON TABLE semel.schema_migrations IS 'Migrations that have been applied to this schema.';
COMMENT ON COLUMN semel.schema_migrations.oldest_binary IS 'The oldest schema version a program may have been built for and still run beside this migration.';

CREATE TABLE semel.consumers (
    id         int         NOT NULL,
    name       text        NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT consumers_pkey PRIMARY KEY (id),
    CONSTRAINT consumers_name_key UNIQUE (name)
);

COMMENT ON TABLE semel.consumers IS 'Names of the logical subscribers, for people and for the collision check.';
COMMENT ON COLUMN semel.consumers.id IS 'Hash of the name, see consumer_id(text); the same in every process.';

-- The column order saves 8 to 10 bytes a row over any other: wide and aligned
-- columns first. No foreign key: a claim must not lock a row all share.
CREATE TABLE semel.processed_messages (
    processed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    fingerprint  bigint,
    message_id   uuid        NOT NULL,
    consumer_id  int         NOT NULL,
    outcome      smallint    NOT NULL,
    message_text text,
    CONSTRAINT processed_messages_pkey PRIMARY KEY (consumer_id, message_id)
);

COMMENT ON TABLE semel.processed_messages IS 'One row per consumer and message with an outcome. Its primary key is what makes effects happen once. The view processed shows it with names.';
COMMENT ON COLUMN semel.processed_messages.processed_at IS 'The clock at the claim; retention counts from here.';
COMMENT ON COLUMN semel.processed_messages.fingerprint IS 'Hash of type and payload, see fingerprint(text, bytea). NULL is unknown and matches everything.';
COMMENT ON COLUMN semel.processed_messages.message_id IS 'The message''s id, or the hash of an id that is no UUID, see message_id(text).';
COMMENT ON COLUMN semel.processed_messages.outcome IS 'A number, see outcome_name(smallint).';
COMMENT ON COLUMN semel.processed_messages.message_text IS 'The id as the producer wrote it, where it is no UUID.';

CREATE TABLE semel.dead_letters (
    id                 bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    consumer_id        int         NOT NULL,
    message_id         uuid        NOT NULL,
    fingerprint        bigint,
    reason             text        NOT NULL,
    state              text        NOT NULL DEFAULT 'open',
    owner              text,
    count              bigint      NOT NULL DEFAULT 1,
    attempts           int         NOT NULL DEFAULT 0,
    first_failed_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_failed_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    errors             text[]      NOT NULL DEFAULT '{}',
    message_text       text,
    raw_id             bytea,
    message_type       text,
    key                bytea,
    message_version    bigint,
    correlation_id     text,
    causation_id       text,
    source             text,
    content_type       text,
    occurred_at        timestamptz,
    payload            bytea,
    header_names       text[],
    header_values      bytea[],
    header_tags        text,
    origin_transport   text,
    origin_topic       text,
    origin_partition   int,
    origin_offset      bigint,
    origin_position    text,
    origin_exchange    text,
    origin_routing_key text,
    origin_time        timestamptz,
    origin_redelivered boolean     NOT NULL DEFAULT false,
    altered            text,
    created_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    resolved_at        timestamptz,
    CONSTRAINT dead_letters_pkey PRIMARY KEY (id),
    CONSTRAINT dead_letters_state_check CHECK (state IN ('open', 'replaying', 'resolved', 'discarded')),
    CONSTRAINT dead_letters_mismatch_check CHECK (reason <> 'mismatch' OR fingerprint IS NOT NULL)
);

COMMENT ON TABLE semel.dead_letters IS 'Messages that wait for a person, as they came. The view dead shows them readably.';
COMMENT ON COLUMN semel.dead_letters.message_id IS 'The id its claim was made under: a surrogate where the message has no usable id.';
COMMENT ON COLUMN semel.dead_letters.reason IS 'bad_id, undecodable, unknown_type, too_large, permanent, exhausted, mismatch, too_old or crashed.';
COMMENT ON COLUMN semel.dead_letters.state IS 'open: waits for a person. replaying: being handled again. resolved: handled after all. discarded: a person decided against it.';
COMMENT ON COLUMN semel.dead_letters.owner IS 'Who looks after it.';
COMMENT ON COLUMN semel.dead_letters.count IS 'How many copies came.';
COMMENT ON COLUMN semel.dead_letters.errors IS 'The chain of errors of the last attempt, outermost first.';
COMMENT ON COLUMN semel.dead_letters.message_text IS 'The id as the producer wrote it, where it is text.';
COMMENT ON COLUMN semel.dead_letters.raw_id IS 'The id as it came, where it is no text (NUL, not UTF-8).';
COMMENT ON COLUMN semel.dead_letters.payload IS 'The body as it came. NULL is a tombstone, which differs from an empty body.';
COMMENT ON COLUMN semel.dead_letters.header_values IS 'Beside header_names. NULL is a header without a value.';
COMMENT ON COLUMN semel.dead_letters.header_tags IS 'The AMQP type of each header, one character each, - where it has none. NULL: no header has one.';
COMMENT ON COLUMN semel.dead_letters.origin_position IS 'The one place of the message in its source; partition and offset mean nothing without it.';
COMMENT ON COLUMN semel.dead_letters.altered IS 'What had to be changed so that it could be stored. NULL: all is as it came.';
COMMENT ON COLUMN semel.dead_letters.resolved_at IS 'When it was resolved or discarded.';

CREATE UNIQUE INDEX dead_letters_consumer_id_message_id_idx
    ON semel.dead_letters (consumer_id, message_id)
    WHERE reason <> 'mismatch';

CREATE UNIQUE INDEX dead_letters_consumer_id_message_id_fingerprint_idx
    ON semel.dead_letters (consumer_id, message_id, fingerprint)
    WHERE reason = 'mismatch';

-- The list people look at: what is open, newest first.
CREATE INDEX dead_letters_id_idx
    ON semel.dead_letters (id DESC)
    WHERE state = 'open';

-- Every hash is SHA-256 over parts with a 4-byte big-endian length before each.
-- The bodies are expressions bound to their objects here and now, so nobody's
-- search_path can change what they mean.

CREATE FUNCTION semel.consumer_id(name text) RETURNS int
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN ('x' || encode(substring(sha256(int4send(octet_length(convert_to(name, 'UTF8'))) || convert_to(name, 'UTF8')) FOR 4), 'hex'))::bit(32)::int;

COMMENT ON FUNCTION semel.consumer_id(text) IS 'The id of the consumer of this name.';

-- A canonical UUID is its own id. Version 8 is left out: that is what the hashes of other ids look like.
CREATE FUNCTION semel.message_id(id text) RETURNS uuid
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE
        WHEN id ~ '^[0-9a-f]{8}-[0-9a-f]{4}-[0-79a-f][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$' THEN id::uuid
        ELSE (
            SELECT encode(set_byte(set_byte(h, 6, (get_byte(h, 6) & 15) | 128), 8, (get_byte(h, 8) & 63) | 128), 'hex')::uuid
            FROM substring(sha256(int4send(octet_length(convert_to(id, 'UTF8'))) || convert_to(id, 'UTF8')) FOR 16) AS h
        )
    END;

COMMENT ON FUNCTION semel.message_id(text) IS 'The uuid under which a message of this id is claimed.';

CREATE FUNCTION semel.fingerprint(type text, payload bytea) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ('x' || encode(substring(sha256(
        int4send(octet_length(convert_to(coalesce(type, ''), 'UTF8'))) || convert_to(coalesce(type, ''), 'UTF8')
        || int4send(octet_length(coalesce(payload, ''::bytea))) || coalesce(payload, ''::bytea)
    ) FOR 8), 'hex'))::bit(64)::bigint;

COMMENT ON FUNCTION semel.fingerprint(text, bytea) IS 'The hash that tells two payloads of one id apart. NULL counts as empty.';

CREATE FUNCTION semel.outcome_name(outcome smallint) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE outcome
        WHEN 1 THEN 'processed'
        WHEN 2 THEN 'superseded'
        WHEN 3 THEN 'skipped'
        WHEN 4 THEN 'stored'
        WHEN 5 THEN 'dead'
        ELSE 'outcome ' || outcome
    END;

COMMENT ON FUNCTION semel.outcome_name(smallint) IS 'What the number of an outcome means.';

CREATE FUNCTION semel.as_text(bytes bytea) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog
AS $$
BEGIN
    RETURN convert_from(bytes, 'UTF8');
EXCEPTION
    WHEN character_not_in_repertoire OR untranslatable_character THEN
        RETURN NULL;
END
$$;

COMMENT ON FUNCTION semel.as_text(bytea) IS 'The bytes as text, NULL where they are none.';

CREATE VIEW semel.processed AS
SELECT
    coalesce(c.name, 'consumer ' || p.consumer_id) AS consumer,
    coalesce(p.message_text, p.message_id::text) AS message,
    semel.outcome_name(p.outcome) AS outcome,
    p.processed_at,
    p.consumer_id,
    p.message_id,
    p.fingerprint
FROM semel.processed_messages AS p
LEFT JOIN semel.consumers AS c ON c.id = p.consumer_id;

COMMENT ON VIEW semel.processed IS 'What was handled, with the names of consumers, ids and outcomes.';

CREATE VIEW semel.dead AS
SELECT
    d.id,
    coalesce(c.name, 'consumer ' || d.consumer_id) AS consumer,
    coalesce(d.message_text, d.raw_id::text) AS message,
    d.message_type,
    d.reason,
    d.state,
    d.owner,
    d.count,
    d.attempts,
    d.first_failed_at,
    d.last_failed_at,
    d.errors,
    semel.as_text(d.key) AS key,
    d.correlation_id,
    d.origin_transport,
    d.origin_topic,
    d.origin_position,
    d.altered,
    octet_length(d.payload) AS payload_bytes,
    semel.as_text(d.payload) AS payload
FROM semel.dead_letters AS d
LEFT JOIN semel.consumers AS c ON c.id = d.consumer_id;

COMMENT ON VIEW semel.dead IS 'The dead letters for people: names, and the payload where it is text.';
