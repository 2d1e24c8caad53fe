-- The tables of the service.

CREATE TABLE merchants (
    id       text   NOT NULL PRIMARY KEY,
    name     text   NOT NULL,
    iban     text   NOT NULL,
    status   text   NOT NULL DEFAULT 'submitted',
    sequence bigint NOT NULL DEFAULT 1 -- of its changes; an event's version
);

-- No two merchants are paid to the same account.
CREATE TABLE payout_accounts (
    iban        text NOT NULL PRIMARY KEY,
    merchant_id text NOT NULL
);

-- The tables of the consumers. Nothing in them is unique per merchant or per
-- message: an event that took effect twice shows.

CREATE TABLE provisioned (
    merchant_id text NOT NULL,
    message     text NOT NULL
);

CREATE TABLE search_index (
    merchant_id text   NOT NULL,
    words       text   NOT NULL,
    version     bigint NOT NULL,
    message     text   NOT NULL
);

-- The tables of whoever offers the configuration API. In real life they are
-- elsewhere.

CREATE TABLE configurations (
    id          bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    merchant_id text   NOT NULL
);

CREATE TABLE idempotency_keys (
    key   text NOT NULL PRIMARY KEY,
    calls int  NOT NULL
);

-- What was on the topic at the end: a row for each record, copies too. For the
-- count only.
CREATE TABLE topic_records (
    message     text NOT NULL,
    merchant_id text NOT NULL
);
