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
	o, unsent := &t.opts, t.call.SentFirst.IsZero()
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

// remembered reports whether the provider will still know the key when the call
// reaches it, however slow that is.
func (t *try) remembered(grace time.Duration) bool {
	return t.opts.KeyTTL > 0 && !t.now.Add(t.opts.Timeout+grace).After(t.call.SentFirst.Add(t.opts.KeyTTL))
}
