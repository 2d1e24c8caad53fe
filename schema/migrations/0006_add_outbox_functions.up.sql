-- semel: oldest-binary 1
--
-- The outbox for writers in other languages: what outbox.Write, outbox.Lock and
-- outbox.NewID are in Go. Functions only, so nothing that runs is locked.

-- Milliseconds in 48 bits, version 7 in 4 (28672 is 7 << 12), the microseconds
-- of the millisecond in 12. The variant comes with the random rest.
CREATE FUNCTION semel.outbox_new_id() RETURNS uuid
    LANGUAGE sql VOLATILE PARALLEL SAFE
    RETURN (
        SELECT encode(overlay(
            uuid_send(gen_random_uuid())
            PLACING int8send(((us / 1000) << 16) | 28672 | (us % 1000 * 4096 / 1000))
            FROM 1 FOR 8
        ), 'hex')::uuid
        FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS us) AS now
    );

COMMENT ON FUNCTION semel.outbox_new_id() IS 'An id for an event: a UUID of version 7, so that ids of later events are higher.';

-- The first 8 bytes of a hash over parts with their lengths before them, as in Go.
CREATE FUNCTION semel.outbox_lock(aggregate_type text, aggregate_id text) RETURNS void
    LANGUAGE sql VOLATILE PARALLEL UNSAFE
    RETURN pg_advisory_xact_lock(('x' || encode(substring(sha256(
        int4send(12) || convert_to('semel.outbox', 'UTF8')
        || int4send(octet_length(convert_to(coalesce(aggregate_type, ''), 'UTF8'))) || convert_to(coalesce(aggregate_type, ''), 'UTF8')
        || int4send(octet_length(convert_to(coalesce(aggregate_id, ''), 'UTF8'))) || convert_to(coalesce(aggregate_id, ''), 'UTF8')
    ) FOR 8), 'hex'))::bit(64)::bigint);

COMMENT ON FUNCTION semel.outbox_lock(text, text) IS 'Makes other writers of this aggregate wait until the transaction ends. Take it before what the event tells of is read.';

CREATE FUNCTION semel.outbox_write_bytes(
    aggregate_type text,
    aggregate_id   text,
    event_type     text,
    payload        bytea,
    headers        jsonb  DEFAULT '{}',
    id             uuid   DEFAULT NULL,
    version        bigint DEFAULT NULL
) RETURNS uuid
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
    SET search_path = pg_catalog
AS $$
DECLARE
    event   uuid := coalesce(id, semel.outbox_new_id());
    names   text[];
    bytes   bytea[];
    problem text;
    remedy  text;
BEGIN
    headers := coalesce(headers, '{}');
    IF jsonb_typeof(headers) <> 'object' THEN
        RAISE EXCEPTION 'unusable event: headers is no JSON object'
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Give each header as a member of one object: {"tenant": "7"}.';
    END IF;

    -- Sizes and blanks are those of the bytes, whatever the encoding and the
    -- collation of the database: the hex digits are those of all white space in UTF-8.
    SELECT
        f.field || CASE WHEN f.size > 255 THEN format(' has %s bytes, at most 255 are allowed', f.size) ELSE ' is empty' END,
        CASE WHEN f.size > 255 THEN 'Shorten it, or put it into the payload.' ELSE 'Say it: consumers need it.' END
    INTO problem, remedy
    FROM (
        SELECT t.field, t.required, octet_length(convert_to(t.value, 'UTF8')) AS size, encode(convert_to(t.value, 'UTF8'), 'hex') AS hex
        FROM (
            VALUES
                ('aggregate_type', aggregate_type, true),
                ('aggregate_id', aggregate_id, true),
                ('event_type', event_type, true),
                ('header content-type', headers ->> 'content-type', false),
                ('header correlation-id', headers ->> 'correlation-id', false),
                ('header causation-id', headers ->> 'causation-id', false),
                ('header source', headers ->> 'source', false)
            UNION ALL
            SELECT 'the name of a header', n.name, true
            FROM jsonb_object_keys(headers) AS n (name)
        ) AS t (field, value, required)
    ) AS f
    WHERE f.size > 255
       OR f.required AND (f.hex IS NULL OR f.hex ~ '^(09|0a|0b|0c|0d|20|c285|c2a0|e19a80|e2808[0-9a]|e280a[89f]|e2819f|e38080)*$')
    LIMIT 1;

    IF problem IS NULL THEN
        SELECT
            format('header %s ', quote_ident(left(h.name, 64))) || CASE
                WHEN jsonb_typeof(h.value) IN ('array', 'object') THEN 'is a JSON ' || jsonb_typeof(h.value)
                WHEN h.name = 'occurred-at' THEN 'is no time'
                WHEN h.name = o.name THEN 'is not for the writer to set'
                ELSE 'is one of ours in other letters'
            END,
            CASE
                WHEN jsonb_typeof(h.value) IN ('array', 'object') THEN 'A header is text: put this into the payload, or give its text as a string.'
                WHEN h.name = 'occurred-at' THEN 'Write it as RFC 3339 does: 2026-03-01T12:00:00Z.'
                WHEN h.name = o.name THEN o.remedy
                ELSE format('Write %s.', o.name)
            END
        INTO problem, remedy
        FROM jsonb_each(headers) AS h (name, value)
        LEFT JOIN (
            VALUES
                ('message-id', 'It is the parameter id.'),
                ('message-type', 'It is the parameter event_type.'),
                ('message-key', 'It is the parameter aggregate_id.'),
                ('message-version', 'It is the parameter version.'),
                ('publish-attempt', 'The relay counts.'),
                ('content-type', NULL),
                ('correlation-id', NULL),
                ('causation-id', NULL),
                ('source', NULL),
                ('occurred-at', NULL)
        ) AS o (name, remedy) ON o.name = lower(h.name COLLATE "C")
        WHERE jsonb_typeof(h.value) IN ('array', 'object')
           OR o.remedy IS NOT NULL
           OR o.name <> h.name
           OR h.name = 'occurred-at' AND (headers ->> 'occurred-at')
                !~ '^(?!0000)\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$'
        LIMIT 1;
    END IF;

    IF problem IS NULL AND octet_length(payload) > 16777216 THEN
        problem := format('the payload has %s bytes, at most 16777216 are allowed', octet_length(payload));
        remedy := 'Put it elsewhere and send where it is.';
    END IF;
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION 'unusable event: %', problem USING ERRCODE = 'invalid_parameter_value', HINT = remedy;
    END IF;

    SELECT array_agg(h.name), array_agg(convert_to(h.value, 'UTF8'))
    INTO names, bytes
    FROM jsonb_each_text(headers) AS h (name, value)
    WHERE h.name NOT IN ('content-type', 'correlation-id', 'causation-id', 'source', 'occurred-at');

    -- First the aggregate, then its number: seq is drawn by the next statement.
    PERFORM semel.outbox_lock(aggregate_type, aggregate_id);
    INSERT INTO semel.outbox (
        id, aggregatetype, aggregateid, type, version, payload, content_type, occurred_at,
        correlation_id, causation_id, source, header_names, header_values
    )
    VALUES (
        event, aggregate_type, aggregate_id, event_type, nullif(version, 0), payload,
        nullif(headers ->> 'content-type', ''), (headers ->> 'occurred-at')::timestamptz,
        nullif(headers ->> 'correlation-id', ''), nullif(headers ->> 'causation-id', ''), nullif(headers ->> 'source', ''),
        names, bytes
    );
    RETURN event;
END
$$;

COMMENT ON FUNCTION semel.outbox_write_bytes(text, text, text, bytea, jsonb, uuid, bigint) IS 'Writes an event in the transaction of its caller, with any bytes as its payload. NULL is a tombstone. Returns its id.';

CREATE FUNCTION semel.outbox_write(
    aggregate_type text,
    aggregate_id   text,
    event_type     text,
    payload        jsonb,
    headers        jsonb  DEFAULT '{}',
    id             uuid   DEFAULT NULL,
    version        bigint DEFAULT NULL
) RETURNS uuid
    LANGUAGE sql VOLATILE PARALLEL UNSAFE
    RETURN semel.outbox_write_bytes(
        aggregate_type, aggregate_id, event_type, convert_to(payload::text, 'UTF8'),
        CASE WHEN payload IS NULL THEN '{}' ELSE '{"content-type": "application/json"}' END::jsonb || coalesce(headers, '{}'),
        id, version
    );

COMMENT ON FUNCTION semel.outbox_write(text, text, text, jsonb, jsonb, uuid, bigint) IS 'Writes an event in the transaction of its caller. Headers: {"tenant": "7"}; content-type, correlation-id, causation-id, source and occurred-at are what they are on the wire. Returns its id.';
