-- Aggregates that have a row: its writers hold it.
CREATE TABLE semel.accounts (
    id      text   PRIMARY KEY,
    version bigint NOT NULL DEFAULT 0
);
