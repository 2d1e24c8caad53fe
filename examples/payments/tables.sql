-- The tables of the service. Nothing in them is unique per message: a message
-- that took effect twice shows.

CREATE TABLE orders (
    id       text   NOT NULL PRIMARY KEY,
    account  text   NOT NULL,
    paid     bigint NOT NULL,
    refunded bigint NOT NULL,
    declined bigint NOT NULL,
    status   text   NOT NULL GENERATED ALWAYS AS (
        CASE
            WHEN paid = 0 AND refunded = 0 THEN 'open'
            WHEN paid < refunded THEN 'waits for its payment'
            WHEN paid = refunded THEN 'refunded'
            ELSE 'paid'
        END
    ) STORED
);

CREATE TABLE accounts (
    id      text   NOT NULL PRIMARY KEY,
    balance bigint NOT NULL
);

-- The journal: one row for each time a message took effect.
CREATE TABLE effects (
    seq      bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    message  text   NOT NULL,
    type     text   NOT NULL,
    order_id text,
    account  text,
    amount   bigint NOT NULL
);
