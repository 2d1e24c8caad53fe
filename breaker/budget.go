package breaker

import (
	"sync"
	"time"
)

// Budget bounds retries by what is tried for the first time, so that retries do
// not multiply the load on a dependency that fails at some of it: a bucket of
// tokens, filled by first attempts and a little by time, emptied by retries. It
// is safe for concurrent use.
type Budget struct {
	cfg BudgetConfig

	mu     sync.Mutex // guards what follows
	tokens float64
	filled time.Time // until when
}

// BudgetConfig configures a [Budget]. The zero value is ready to use.
type BudgetConfig struct {
	// Ratio is how many retries each first attempt allows. Defaults to 0.1;
	// negative: none.
	Ratio float64

	// PerSecond is how many retries are allowed besides. Defaults to 10;
	// negative: none.
	PerSecond float64

	// Burst is how many tokens are kept at most. Defaults to 100, at least 1.
	Burst float64
}

// NewBudget returns a budget with the tokens of one second.
func NewBudget(cfg BudgetConfig) *Budget {
	if cfg.Ratio == 0 {
		cfg.Ratio = 0.1
	}
	if cfg.PerSecond == 0 {
		cfg.PerSecond = 10
	}
	if cfg.Burst == 0 {
		cfg.Burst = 100
	}
	cfg.Ratio, cfg.PerSecond, cfg.Burst = max(cfg.Ratio, 0), max(cfg.PerSecond, 0), max(cfg.Burst, 1)
	return &Budget{cfg: cfg, tokens: min(cfg.PerSecond, cfg.Burst), filled: time.Now()}
}

// First notes a first attempt: it needs no token, and pays for retries.
func (b *Budget) First() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill()
	b.tokens = min(b.tokens+b.cfg.Ratio, b.cfg.Burst)
}

// Take takes the token of a retry. False: there is none, do not retry now.
func (b *Budget) Take() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill()
	if b.tokens < enough {
		return false
	}
	b.tokens--
	return true
}

// enough is a token, but for what adding tenths loses.
const enough = 1 - 1e-9

// RetryIn is how long it takes until time alone has brought a token.
func (b *Budget) RetryIn() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill()
	switch {
	case b.tokens >= enough:
		return 0
	case b.cfg.PerSecond == 0:
		return time.Second // a first attempt may have come by then
	default:
		return min(time.Duration((1-b.tokens)/b.cfg.PerSecond*float64(time.Second))+1, time.Minute)
	}
}

// fill adds what time has brought. It is called with mu held.
func (b *Budget) fill() {
	now := time.Now()
	b.tokens = min(b.tokens+now.Sub(b.filled).Seconds()*b.cfg.PerSecond, b.cfg.Burst)
	b.filled = now
}
