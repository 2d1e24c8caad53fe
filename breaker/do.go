package breaker

import "context"

// Do calls fn if the breaker lets it, and learns from how that ends. Its error is
//
//   - an [OpenError] when fn was not called: wait, it costs no attempt;
//   - a [FailureError] around fn's when that counted as the dependency's failure;
//   - fn's own in all other cases.
//
// The context of fn ends with ctx; a trial's also after TrialTimeout. When fn
// panics or ends its goroutine, that goes on after the breaker was told.
func (b *Breaker) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	call, err := b.Start()
	if err != nil {
		return err
	}
	defer call.Abort()
	callCtx := ctx
	if call.Trial() {
		var cancel context.CancelFunc
		callCtx, cancel = context.WithTimeoutCause(ctx, b.cfg.TrialTimeout, errHung)
		defer cancel()
	}
	return call.Done(ctx, fn(callCtx))
}
