-- The tables of the services. Nothing in them is unique per invoice, payment or
-- message: what took effect twice shows.

-- The ERP's.
CREATE TABLE orders (
    id         text   NOT NULL PRIMARY KEY,
    customer   text   NOT NULL,
    tax_number text   NOT NULL,
    amount     bigint NOT NULL,
    card       text   NOT NULL,
    status     text   NOT NULL DEFAULT 'CONFIRMED' -- or CANCELLED
);

-- The payment service's.
CREATE TABLE payments (
    order_id text NOT NULL,
    status   text NOT NULL -- PAID or FAILED
);

-- The adapter's: what the provider is asked for, and what it said.
CREATE TABLE invoice_requests (
    order_id    text  NOT NULL,
    number      text  NOT NULL, -- our own number of the document
    payload     jsonb NOT NULL,
    status      text  NOT NULL DEFAULT 'PENDING', -- or SENT
    provider_id text
);

-- For the report only: when a sender found its provider away, and back.
CREATE TABLE gates (
    seq      bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    sender   text        NOT NULL,
    provider text        NOT NULL,
    away     boolean     NOT NULL
);

-- For the count only: the effects in the providers' ledger files, a row each.
CREATE TABLE provider_effects (
    number text NOT NULL,
    id     text NOT NULL
);
