-- semel: oldest-binary 1
--
-- Forgets which events went to which object of the archive; the manifests there know.
-- A batch that is under way is forgotten too: what is left of it in the outbox goes to
-- the archive again some day, in another object.

DROP TABLE semel.archive_batches;
