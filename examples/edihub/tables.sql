-- The tables of the hub. Nothing in them is unique per message or per event but
-- whom we know: what took effect twice shows.

CREATE TABLE partners (
    as2_name text NOT NULL PRIMARY KEY
);

CREATE TABLE interchanges (
    id          text        NOT NULL, -- of the message: partner and Message-ID
    partner     text        NOT NULL,
    message_id  text        NOT NULL,
    unb_ref     text        NOT NULL,
    sender      text        NOT NULL,
    recipient   text        NOT NULL,
    raw         text        NOT NULL, -- where the claim check is redeemed
    received_at timestamptz NOT NULL,
    mdn         bytea       NOT NULL  -- as it goes out, however often it is asked for
);

CREATE INDEX interchanges_id_idx ON interchanges (id);

-- What the consumers made of the events.

CREATE TABLE documents (
    interchange text NOT NULL,
    event       text NOT NULL,
    document    json NOT NULL
);

CREATE TABLE archived (
    interchange  text        NOT NULL,
    event        text        NOT NULL,
    object       text        NOT NULL,
    sha256       text        NOT NULL,
    retain_until timestamptz NOT NULL
);

-- The MDNs that partners hold at the end, as they got them: a row for each
-- message that they were told is taken. For the count only.
CREATE TABLE partner_mdns (
    id  text  NOT NULL,
    mdn bytea NOT NULL
);
