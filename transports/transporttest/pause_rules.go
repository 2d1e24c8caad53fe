package transporttest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
)

func pauseRules() []rule {
	return []rule{
		{
			name:     "PauseStops",
			sentence: "A source that is paused takes no messages, and goes on after Resume.",
			needs:    "Pause",
			check:    checkPauseStops,
		},
		{
			name:     "PausedBeforeRun",
			sentence: "A source that is paused before Run starts paused.",
			needs:    "Pause",
			check:    checkPausedBeforeRun,
		},
		{
			name:     "PauseAtAnyTime",
			sentence: "Pause and Resume may be called in any state, repeatedly, from any goroutine.",
			needs:    "Pause",
			check:    checkPauseAtAnyTime,
		},
		{
			name:     "StopWhilePaused",
			sentence: "A source that is paused still takes acknowledgements, and stops cleanly.",
			needs:    "Pause",
			check:    checkStopWhilePaused,
		},
		{
			name:     "PauseIsDeclared",
			sentence: "A source that can pause declares Features.Pause, and one that declares it can.",
			check: func(t *testing.T, b *bundle) {
				_, can := b.NewMember(t).Source.(handler.Pauser)
				require.Equal(t, b.features.Pause, can)
			},
		},
	}
}

func checkPauseStops(t *testing.T, b *bundle) {
	m := b.join(t, SinkConfig{})
	b.publish(t, &handler.Message{ID: "evt_1"})
	m.collect(t, 1) // it is at work
	pauser(t, m).Pause()
	b.publish(t, &handler.Message{ID: "evt_2"})
	m.sink.RequireQuiet(t)
	pauser(t, m).Resume()

	require.Equal(t, []string{"evt_2"}, ids(m.collect(t, 1)))
}

func checkPausedBeforeRun(t *testing.T, b *bundle) {
	b.publish(t, &handler.Message{ID: "evt_1"})
	idle := &member{Member: b.NewMember(t)}
	pauser(t, idle).Pause()
	m := b.run(t, idle.Member, SinkConfig{})
	m.sink.RequireQuiet(t)
	pauser(t, m).Resume()

	require.Equal(t, []string{"evt_1"}, ids(m.collect(t, 1)))
	m.stop(t)
}

func checkPauseAtAnyTime(t *testing.T, b *bundle) {
	idle := &member{Member: b.NewMember(t)}
	p := pauser(t, idle)
	p.Resume()
	for range 3 {
		p.Pause()
	}
	p.Resume()
	m := b.run(t, idle.Member, SinkConfig{Settle: true})
	toggled := make(chan struct{})
	go func() {
		defer close(toggled)
		for range 50 {
			p.Pause()
			p.Resume()
		}
	}()
	msgs := numbered(50)
	b.publish(t, msgs...)
	<-toggled
	awaitIDs(t, b, ids(msgs), m.sink)
	m.stop(t)
	p.Pause()
	p.Resume()
}

func checkStopWhilePaused(t *testing.T, b *bundle) {
	b.publish(t, numbered(1)...)
	m := b.join(t, SinkConfig{})
	d := m.next(t)
	pauser(t, m).Pause()
	d.Settled()
	m.stop(t)

	b.requireNothingLeft(t)
}

func pauser(t *testing.T, m *member) handler.Pauser {
	t.Helper()
	p, ok := m.Source.(handler.Pauser)
	require.True(t, ok, "Features.Pause is declared and %T is no handler.Pauser", m.Source)
	return p
}
