// Package campaign kills consumers and counts what became of their messages.
//
// A campaign is one group for each broker and crash point: a queue or topic, a
// schema, and one or two child processes that consume. A group goes through
// rounds. In each, the children are armed, messages are sent until one of them
// reports that a message is held at the point, and that child gets SIGKILL.
// Another one takes its place, more messages are sent behind those that were
// in flight, and the round ends when all are settled. So every kill is counted
// by itself, with a message in flight where it is said to be. Settled means more
// than that the source is through with it: nothing is left in the inbox, and
// nothing in the journal of attempts. A message that is under way at three deaths
// goes to the dead letters, and it must not be the campaign that makes it one.
//
// At the points of the inbox (stored, behind, parked, mid-replay, mid-release,
// worker-500) consumers keep the order of a key past failures, some messages fail
// now and then, some until they are mended, and a person decides about what is
// dead, while consumers die. A point there says what is being done with the message
// that is held; at which moment, before or after its commit, is drawn.
//
// Where the broker is "calls", there is no broker: messages are stored, and each is an
// invoice to be made at a provider, which is a process too (package provider). It has
// every fault of its kind, and is killed by one of them. Its clients are killed at each
// point of the ledger of calls, or stopped there until their call is another's. What
// was made is counted in the provider's own file.
//
// Where it is "archive", events were published long ago, and processes that purge them
// are killed at each point between the commit of a batch and the deletion of its
// rows. At each kill, every event is still in the table or in an object
// of the archive that reads well, and at the end each is in exactly one.
//
// At the end the group's tables are compared with what was sent: lost, doubled,
// reordered. The handler's effects have no unique key on the message, so that
// nothing hides a second one.
package campaign
