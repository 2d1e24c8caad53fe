package inbox

import (
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
)

// task is one message on its way through the engine. Except where noted, its
// fields belong to the goroutine that holds it.
type task struct {
	msg    *handler.Message
	key    uint64      // its lane; 0: in none
	stored *stored     // set: the message is in the inbox, and this process holds it
	replay *dlq.Letter // set: it is a dead letter that is handled again; it is stored too

	// A delivery of a run. Nil for Process and Replay.
	run      *run
	delivery *handler.Delivery
	size     int // of its payload when it was taken, whatever a handler made of it

	// granted receives once for every slot that lanes hand to the goroutine
	// that holds the task. Nil while no goroutine does. Set before the task
	// waits.
	granted chan struct{}
	state   taskState // guarded by lanes.mu
	probe   *probe    // set: it was let go to try one; guarded by lanes.mu
	yields  bool      // it rests until the inbox has room; guarded by lanes.mu
	behind  *task     // the next of its lane; guarded by lanes.mu
	number  uint64    // in the order of entering; guarded by lanes.mu

	// firstTx is the transaction of the first claim. A later claim makes its own:
	// a handler that was given up still holds the one before.
	firstTx claimedTx

	identity  identity
	forgotten time.Time     // set: the message's row may be purged, as those up to then are
	buried    *burial       // set: the message is to be dead-lettered, not handled
	later     *postponement // set: it is to be stored, or put off
	waits     bool          // the look behind the claim found one of its key before it
	row       rowState      // that was inserted for it
	gone      bool          // it is not in the inbox any more as it was taken from it
	freed     bool          // the next of its key is ready once this one's transaction is committed
	suspect   bool          // what runs of the user's code for it is noted in the journal
	noted     bool          // it stands there, and has not ended
	letOthers func()        // ends that it runs alone; nil: it does not
	journal   dedup.ID      // under what
	letterID  int64         // of its dead letter, once that is written
	inDoubt   bool          // a COMMIT of it got no answer
	attempts  int           // that failed
	kept      any           // what Prepare kept for the handler of this attempt
	toldFull  bool          // that the inbox has no room for it
	reruns    int           // in a row, that cost no attempt
	outages   int           // that it met
	failures  failures

	failedCalls []failedCall // of the attempts that failed, those that may be given back

	quick    *backoff.ExponentialBackOff // between quick attempts
	patience *backoff.ExponentialBackOff // between looks at a copy in flight elsewhere
	collided *backoff.ExponentialBackOff // between reruns
	outage   *backoff.ExponentialBackOff // between looks at a statement of ours that fails

	// followers waits for this task, the first of its id in the process. Both
	// are guarded by flights.mu; outcome is written before followers is closed.
	followers chan struct{}
	outcome   handler.Outcome
}

// identity is under what a message is claimed.
type identity struct {
	id          dedup.ID
	text        pgtype.Text
	fingerprint pgtype.Int8
	surrogate   bool // the message has no usable id: only its dead letter is claimed
}

// neverStarted reports whether a delivery waits for its first slot. It is
// called with lanes.mu held.
func (t *task) neverStarted() bool {
	_, queued := t.run.queued[t]
	return queued
}

func (t *task) entry(consumerID int32, outcome handler.Outcome) dedup.Entry {
	return dedup.Entry{
		ConsumerID:  consumerID,
		MessageID:   t.identity.id,
		Fingerprint: t.identity.fingerprint,
		Text:        t.identity.text,
		Outcome:     outcome,
	}
}

// flights makes copies of one message in this process wait for the first
// without holding a worker or a connection (single-flight).
type flights struct {
	mu   sync.Mutex
	byID map[dedup.ID]*task
}

// join makes t the leader of its id, or returns the task that is, and a
// channel that is closed when that one is done.
func (f *flights) join(t *task) (leader *task, done <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	leader = f.byID[t.identity.id]
	if leader == nil {
		f.byID[t.identity.id] = t
		return nil, nil
	}
	if leader.followers == nil {
		leader.followers = make(chan struct{})
	}
	return leader, leader.followers
}

// leave ends the lead of t; outcome is 0 when it was not settled.
func (f *flights) leave(t *task, outcome handler.Outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byID, t.identity.id)
	t.outcome = outcome
	if t.followers != nil {
		close(t.followers)
	}
}

// crew is what runs the task's handler; nil outside of a run.
func (t *task) crew() *crew {
	if t.run == nil {
		return nil
	}
	return t.run.crew
}
