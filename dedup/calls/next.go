package calls

import "time"

// move is what is done next with a call that was taken.
type move int

const (
	sendIntended move = iota + 1 // its intent is committed
	sendAgain                    // under the same key
	sendAnew                     // in a new generation
	ask                          // the provider
	wait                         // until its last attempt has ended
	giveUp                       // a person has to look
)

// next decides. The order of the cases is that of the questions: is it known that
// nothing is sent or done? Does the provider recognise the key? Can it be asked?
func (t *try) next(grace time.Duration) move {
	o, unsent := &t.opts, t.unsent()
	switch {
	case o.AskFirst && unsent, o.AskFirst && t.before.state == Failed:
		return ask
	case t.fresh:
		return sendIntended
	case t.before.state == Failed:
		return sendAnew
	case !o.AskFirst && (unsent || t.before.state == Ready || t.remembered(grace)):
		return sendAgain
	case o.WasItDone == nil:
		return giveUp
	case underWay(t.now, t.call):
		return wait
	default:
		return ask
	}
}

// unsent reports whether it is known that the provider has not seen this generation.
// NULL in a row that says otherwise says nothing: somebody has written that.
func (t *try) unsent() bool {
	return t.call.SentFirst.IsZero() && (t.before.state == Ready || t.before.state == Failed)
}

// remembered reports whether the provider will still know the key when the call
// reaches it, however slow that is. A time ahead of the clock, by more than clocks
// differ, is none at which it saw the key, and an empty key is none.
func (t *try) remembered(grace time.Duration) bool {
	return t.opts.KeyTTL > 0 && t.call.Key != "" && !t.call.SentFirst.After(t.now.Add(grace)) && !t.now.Add(t.opts.Timeout+grace).After(t.call.SentFirst.Add(t.opts.KeyTTL))
}
