// Package campaign kills consumers and counts what became of their messages.
//
// A campaign is one group for each broker and crash point: a queue or topic, a
// schema, and one or two child processes that consume. A group goes through
// rounds. In each, the children are armed, messages are sent until one of them
// reports that a message is held at the point, and that child gets SIGKILL.
// Another one takes its place, more messages are sent behind those that were
// in flight, and the round ends when all are settled. So every kill is counted
// by itself, with a message in flight where it is said to be.
//
// At the end the group's tables are compared with what was sent: lost, doubled,
// reordered. The handler's effects have no unique key on the message, so that
// nothing hides a second one.
package campaign
