package crew

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

// drainTimeout is more than any process needs to finish.
const drainTimeout = 15 * time.Second

// Play is a process of a crew: it reads into config what it is told, and works
// until standard input ends, that is until its parent is done with it, or dead.
func Play(stdin io.Reader, config any, work func(context.Context) error) error {
	signal.Ignore(os.Interrupt) // Ctrl-C is for the parent
	if err := json.NewDecoder(stdin).Decode(config); err != nil {
		return fmt.Errorf("read what to do: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		stop()
		time.Sleep(drainTimeout)
		os.Exit(1)
	}()
	err := work(ctx)
	if errors.Is(err, context.Canceled) { // told to stop before it had begun
		return nil
	}
	return err
}
