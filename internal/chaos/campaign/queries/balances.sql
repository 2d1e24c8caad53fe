-- What the effects sum up to.
SELECT key, balance
FROM semel.balances
