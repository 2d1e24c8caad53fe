-- What a handler did. No unique key knows the message: a second effect must show.
CREATE TABLE semel.effects (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- per key, the order of the effects
    message text   NOT NULL,
    n       bigint NOT NULL -- the order in which the messages were sent
);
