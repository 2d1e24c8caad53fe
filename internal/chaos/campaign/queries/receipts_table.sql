-- Which invoice a message made. No unique key knows the message: a second one must
-- show.
CREATE TABLE semel.receipts (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    message text NOT NULL,
    number  text NOT NULL,
    invoice text NOT NULL
);
