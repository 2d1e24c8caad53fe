-- Lets the next statements of the transaction look events up by their ids, also where
-- they are planned while the outbox is empty, and wait but a moment for a row that
-- somebody has locked.
-- Locks: nothing.
SELECT set_config('enable_seqscan', 'off', true), set_config('lock_timeout', '1s', true)
