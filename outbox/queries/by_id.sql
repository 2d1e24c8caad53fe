-- Lets the next statement of the transaction look events up by their ids, also where
-- it is planned while the outbox is empty.
-- Locks: nothing.
SELECT set_config('enable_seqscan', 'off', true)
