-- The tables of the services. Nothing in them is unique per order or message: what
-- took effect twice shows.

-- The intake's: whom it takes orders from, what it took, and the orders.
CREATE TABLE partners (
    id   text NOT NULL PRIMARY KEY,
    name text NOT NULL
);
INSERT INTO partners (id, name)
VALUES ('4012345000009', 'Fahrradhandel Pedal'),
       ('4098765000008', 'Müller & Söhne'),
       ('5400110000009', 'Widget Imports'),
       ('7300010000003', 'Cykel AB');

CREATE TABLE interchanges (
    id       text    NOT NULL, -- of the message: partner and control reference
    partner  text    NOT NULL,
    orders   integer NOT NULL,
    warnings text[]  NOT NULL  -- what a strict reader would not have accepted
);

CREATE TABLE orders (
    id             text    NOT NULL,
    partner        text    NOT NULL,
    number         text    NOT NULL, -- the partner's own
    currency       text    NOT NULL,
    total          numeric NOT NULL,
    status         text    NOT NULL DEFAULT 'RECEIVED',
    raw            text    NOT NULL,
    interchange_id text    NOT NULL
);
CREATE INDEX orders_id_idx ON orders (id);

-- The consumers': each its own, in real life in databases of their own.
CREATE TABLE erp_orders (
    event    text    NOT NULL,
    order_id text    NOT NULL,
    total    numeric NOT NULL
);
CREATE TABLE pick_lists (
    event    text    NOT NULL,
    order_id text    NOT NULL,
    lines    integer NOT NULL
);
CREATE TABLE notifications (
    event    text NOT NULL,
    order_id text NOT NULL,
    text     text NOT NULL
);
