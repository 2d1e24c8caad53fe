-- The tables of the ledger. Amounts are in cents.

CREATE TABLE accounts (
    id       text   NOT NULL PRIMARY KEY,
    opening  bigint NOT NULL, -- what was in it before the first entry
    balance  bigint NOT NULL,
    sequence bigint NOT NULL DEFAULT 0 -- of its entries; an event's version
) WITH (fillfactor = 50);

-- An amount that leaves one account and arrives in another, for an order.
CREATE TABLE postings (
    id       uuid   NOT NULL PRIMARY KEY,
    order_id text   NOT NULL,
    amount   bigint NOT NULL
);

-- The two legs of each posting, and the balance behind each. Nothing in here is
-- unique: an entry that was booked twice shows.
CREATE TABLE entries (
    posting  uuid   NOT NULL,
    account  text   NOT NULL,
    sequence bigint NOT NULL,
    amount   bigint NOT NULL,
    balance  bigint NOT NULL
);

CREATE TABLE orders (
    id       text   NOT NULL PRIMARY KEY,
    status   text   NOT NULL,
    sequence bigint NOT NULL -- of its changes; an event's version
) WITH (fillfactor = 80);

-- Who buys has money. Who sells has what was paid and is not theirs yet, and what is.
INSERT INTO accounts (id, opening, balance)
SELECT 'buyer-' || n, 100000000, 100000000
FROM generate_series(1, 10000) AS n;

INSERT INTO accounts (id, opening, balance)
SELECT 'seller-' || n || kind, 0, 0
FROM generate_series(1, 2000) AS n, unnest(ARRAY['/pending', '/available']) AS kind;

-- What was on the topic at the end: a row for each record, copies too. For the
-- count only.
CREATE TABLE topic_records (
    kind      text   NOT NULL,
    aggregate text   NOT NULL,
    version   bigint NOT NULL,
    message   text   NOT NULL,
    place     bigint NOT NULL -- in its partition, which all records of an aggregate share
);
