package wire

// The points of a purge that archives, in the order in which a batch meets them.
const (
	BatchCommitted  Point = "batch-committed"  // what goes into the object is committed, and nothing written
	MidWrite        Point = "mid-write"        // half of the object is written
	ObjectWritten   Point = "object-written"   // the object is there, its manifest is not
	ManifestWritten Point = "manifest-written" // both are there, and were not read back
	Verified        Point = "verified"         // they were, and nothing is deleted
	MidDelete       Point = "mid-delete"       // some of its rows are deleted
)

// ArchivePoints returns all points of a purge that archives.
func ArchivePoints() []Point {
	return []Point{BatchCommitted, MidWrite, ObjectWritten, ManifestWritten, Verified, MidDelete}
}

// Archive takes the place of a broker where events were published long ago, and go to
// an archive before they are purged.
const Archive Broker = "archive"

// ArchiveBatch is how many events go into one object at most: so many that their rows
// are deleted in several steps.
const ArchiveBatch = 3000
