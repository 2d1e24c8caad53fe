-- What a handler did. No unique key knows the message: a second effect must show.
CREATE TABLE semel.effects (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- per key, the order of the effects
    message text   NOT NULL,
    key     text   NOT NULL,
    n       bigint NOT NULL -- the order in which the messages were sent
);

-- The same effects, counted in another way.
CREATE TABLE semel.balances (
    key     text   PRIMARY KEY,
    balance bigint NOT NULL DEFAULT 0
);

-- Messages whose handler failed until somebody mended what was wrong.
CREATE TABLE semel.mended (
    message text PRIMARY KEY
);
