-- All invoices that messages made, as their handlers noted them.
SELECT message, number, invoice
FROM semel.receipts
