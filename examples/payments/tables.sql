-- The tables of the service. Nothing in them is unique per message: a message
-- that took effect twice shows.

CREATE TABLE orders (
    id       text   NOT NULL PRIMARY KEY,
    account  text   NOT NULL,
    paid     bigint NOT NULL,
    refunded bigint NOT NULL,
    declined bigint NOT NULL,
    sequence bigint NOT NULL DEFAULT 1,
    status   text   NOT NULL GENERATED ALWAYS AS (
        CASE
            WHEN paid = 0 AND refunded = 0 THEN 'open'
            WHEN paid = refunded THEN 'refunded'
            ELSE 'paid'
        END
    ) STORED
);

-- What is known of each payment, and what was before the last event.
CREATE TABLE payments (
    id           text   NOT NULL PRIMARY KEY,
    paid         bigint NOT NULL,
    refunded     bigint NOT NULL,
    was_paid     bigint NOT NULL DEFAULT 0,
    was_refunded bigint NOT NULL DEFAULT 0
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

-- What the two do who hear of paid orders.
CREATE TABLE shipments (
    event    text NOT NULL,
    order_id text NOT NULL
);

CREATE TABLE invoices (
    event    text NOT NULL,
    order_id text NOT NULL
);
