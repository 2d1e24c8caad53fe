package inbox

import "time"

// timebox is how long the server may take over what is sent next. It is a
// deadline of the socket. Like the end of a context it breaks the connection,
// but it allocates nothing, and every round trip of a message needs one.
//
// A connection that broke is left alone: the driver has a deadline of its own
// on the socket while it says goodbye in the background.
func (tx *claimedTx) timebox(d time.Duration) {
	if !tx.conn.Conn().IsClosed() {
		_ = tx.socket.SetDeadline(time.Now().Add(d)) // fails when it is closed, as what is sent next will
	}
}

// untimed ends a timebox. Nobody else may get the connection before.
func (tx *claimedTx) untimed() {
	if !tx.conn.Conn().IsClosed() {
		_ = tx.socket.SetDeadline(time.Time{})
	}
}
