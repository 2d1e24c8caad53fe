package transporttest_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/transporttest"
)

// plant is a transport with one fault.
type plant struct {
	name   string
	damage func(transporttest.Transport) transporttest.Transport
	breaks []string // subtests that must fail
}

func plants() []plant {
	return slices.Concat(publisherPlants(), messagePlants(), settlePlants(), orderPlants(), runPlants(), pausePlants(), memberPlants())
}

func publisherPlants() []plant {
	return []plant{
		{
			name: "confirms-what-it-loses",
			damage: publisher(func(ctx context.Context, inner handler.Publisher, msgs []*handler.Message) []error {
				return slices.Concat(
					inner.Publish(ctx, slices.DeleteFunc(slices.Clone(msgs), func(m *handler.Message) bool { return strings.HasSuffix(m.ID, "_7") })),
					make([]error, len(msgs)))[:len(msgs)]
			}),
			breaks: []string{"EveryMessageArrives", "PublishIsConcurrent"},
		},
		{
			name: "says-never-when-late",
			damage: publisher(func(ctx context.Context, inner handler.Publisher, msgs []*handler.Message) []error {
				results := inner.Publish(ctx, msgs)
				for i, err := range results {
					results[i] = handler.Permanent(err)
				}
				return results
			}),
			breaks: []string{"PublishAnswersForEach"},
		},
		{
			name: "answers-once",
			damage: publisher(func(ctx context.Context, inner handler.Publisher, msgs []*handler.Message) []error {
				return []error{errors.Join(inner.Publish(ctx, msgs)...)}
			}),
			breaks: []string{"PublishAnswersForEach", "BadIDs"},
		},
		{
			name: "makes-up-ids",
			damage: delivery(func(d *handler.Delivery) {
				if d.Message.ID == "" {
					d.Message.ID = "made-up"
				}
			}),
			breaks: []string{"BadIDs"},
		},
	}
}

func messagePlants() []plant {
	return []plant{
		{
			name:   "forgets-the-cause",
			damage: delivery(func(d *handler.Delivery) { d.Message.CausationID = "" }),
			breaks: []string{"FieldsArrive"},
		},
		{
			name: "ends-text-at-nul",
			damage: delivery(func(d *handler.Delivery) {
				d.Message.Payload, _, _ = bytes.Cut(d.Message.Payload, []byte{0})
			}),
			breaks: []string{"PayloadsArrive"},
		},
		{
			name:   "knows-no-nil",
			damage: delivery(noNil),
			breaks: []string{"TombstonesArrive", "NilHeaders"},
		},
		{
			name: "has-one-case",
			damage: header(func(h *handler.Header) {
				h.Name = strings.ToLower(h.Name)
			}),
			breaks: []string{"HeadersArrive"},
		},
		{
			name:   "reverses-headers",
			damage: delivery(func(d *handler.Delivery) { slices.Reverse(d.Message.Headers) }),
			breaks: []string{"HeaderOrder"},
		},
		{
			name: "keeps-one-header-a-name",
			damage: delivery(func(d *handler.Delivery) {
				d.Message.Headers = slices.CompactFunc(d.Message.Headers, func(a, b handler.Header) bool { return a.Name == b.Name })
			}),
			breaks: []string{"RepeatedHeaders"},
		},
		{
			name: "has-text-only",
			damage: header(func(h *handler.Header) {
				h.Value = bytes.ToValidUTF8(h.Value, []byte("?"))
			}),
			breaks: []string{"BinaryHeaders"},
		},
		{
			name:   "names-no-origin",
			damage: delivery(func(d *handler.Delivery) { d.Message.Origin = handler.Origin{} }),
			breaks: []string{"OriginIsNamed", "Positions", "BrokerTime", "Redelivered"},
		},
		{
			name:   "position-is-the-id",
			damage: delivery(func(d *handler.Delivery) { d.Message.Origin.Position = d.Message.ID }),
			breaks: []string{"Positions"},
		},
		{
			name: "position-counts-deliveries",
			damage: counted(func(n int64, d *handler.Delivery) {
				d.Message.Origin.Position = strconv.FormatInt(n, 10)
			}),
			breaks: []string{"Positions"},
		},
		{
			name:   "time-is-the-producers",
			damage: delivery(func(d *handler.Delivery) { d.Message.Origin.Time = d.Message.OccurredAt }),
			breaks: []string{"BrokerTime"},
		},
	}
}

func settlePlants() []plant {
	return []plant{
		{
			name:   "swaps-neighbours",
			damage: sink(func(inner handler.Sink) handler.Sink { return &swapper{inner: inner} }),
			breaks: []string{"OrderWithinKey"},
		},
		{
			name: "never-acknowledges",
			damage: delivery(func(d *handler.Delivery) {
				returned := d.Returned
				d.Settled = func() { returned(errors.New("planted")) }
			}),
			breaks: []string{"SettledIsOver", "SettledFromAnyGoroutine", "RunAgain"},
		},
		{
			name: "locks-around-deliver",
			damage: sink(func(inner handler.Sink) handler.Sink {
				var mu sync.Mutex
				return sinkFunc(func(ctx context.Context, d *handler.Delivery) error {
					settled := d.Settled
					d.Settled = func() {
						if mu.TryLock() { // a real one would hang here
							defer mu.Unlock()
							settled()
						}
					}
					mu.Lock()
					defer mu.Unlock()
					return inner.Deliver(ctx, d)
				})
			}),
			breaks: []string{"SettledBeforeDeliverReturns"},
		},
		{
			name: "acknowledges-before-settled",
			damage: delivery(func(d *handler.Delivery) {
				d.Settled()
				d.Settled, d.Returned = func() {}, func(error) {}
			}),
			breaks: []string{"ReturnedComesAgain", "UnsettledComesAgain", "LaterSettledKeepsEarlier", "StopWaitsForWhatIsOut"},
		},
		{
			name: "loses-returned",
			damage: delivery(func(d *handler.Delivery) {
				settled := d.Settled
				d.Returned = func(error) { settled() }
			}),
			breaks: []string{"ReturnedComesAgain", "ReturnedWhileStopping", "SettledFromAnyGoroutine"},
		},
		{
			name: "loses-refused",
			damage: sink(func(inner handler.Sink) handler.Sink {
				return sinkFunc(func(ctx context.Context, d *handler.Delivery) error {
					if err := inner.Deliver(ctx, d); err != nil {
						d.Settled()
					}
					return nil
				})
			}),
			breaks: []string{"RefusedComesAgain", "StopWhileTheSinkIsFull"},
		},
		{
			name:   "acknowledges-multiple",
			damage: sink(func(inner handler.Sink) handler.Sink { return &multiple{inner: inner} }),
			breaks: []string{"LaterSettledKeepsEarlier", "ReturnedWhileStopping"},
		},
	}
}

func orderPlants() []plant {
	return []plant{
		{
			name: "requeues-at-the-end",
			damage: func(tr transporttest.Transport) transporttest.Transport {
				publisher := tr.Publisher
				return delivery(func(d *handler.Delivery) {
					settled, msg := d.Settled, d.Message
					d.Returned = func(error) {
						publisher.Publish(context.Background(), []*handler.Message{msg})
						settled()
					}
				})(tr)
			},
			breaks: []string{"ReturnedKeepsOrder", "PauseKeepsOrder", "StopKeepsOrder"},
		},
		{
			name:   "leaves-its-heir-a-heap",
			damage: heap,
			breaks: []string{"DeathKeepsOrder"},
		},
		{
			name: "shares-what-is-for-one", // the queue knows no keys, so the sources compete
			damage: publisher(func(ctx context.Context, inner handler.Publisher, msgs []*handler.Message) []error {
				keyless := make([]*handler.Message, len(msgs))
				for i, msg := range msgs {
					keyless[i] = &handler.Message{ID: msg.ID}
				}
				return inner.Publish(ctx, keyless)
			}),
			breaks: []string{"TakeoverKeepsOrder"},
		},
		{
			name: "cannot-keep-order",
			damage: source(func(s handler.Source) handler.Source {
				return &pausing{Source: s, pause: s.(handler.Pauser).Pause, resume: s.(handler.Pauser).Resume}
			}),
			breaks: []string{"OrderIsDeclared"},
		},
	}
}

func runPlants() []plant {
	return []plant{
		{
			name: "waits-for-nothing",
			damage: source(func(s handler.Source) handler.Source {
				return sourceFunc(func(ctx context.Context, to handler.Sink) error {
					go s.Run(ctx, to) //nolint:errcheck // the fault
					<-ctx.Done()
					return nil
				})
			}),
			breaks: []string{"StopWaitsForWhatIsOut"},
		},
		{
			name: "delivers-after-run",
			damage: source(func(s handler.Source) handler.Source {
				return sourceFunc(func(ctx context.Context, to handler.Sink) error {
					err := s.Run(ctx, to)
					go s.Run(context.WithoutCancel(ctx), to) //nolint:errcheck // the fault
					return err
				})
			}),
			breaks: []string{"NothingAfterRun"},
		},
		{
			name: "returns-the-cancel",
			damage: source(func(s handler.Source) handler.Source {
				return sourceFunc(func(ctx context.Context, to handler.Sink) error {
					return errors.Join(s.Run(ctx, to), ctx.Err())
				})
			}),
			breaks: []string{"StopAtRest", "RunAgain", "StopWaitsForWhatIsOut"},
		},
	}
}

func pausePlants() []plant {
	return []plant{
		{
			name:   "ignores-pause",
			damage: source(func(s handler.Source) handler.Source { return &pausing{Source: s, pause: func() {}, resume: func() {}} }),
			breaks: []string{"PauseStops", "PausedBeforeRun"},
		},
		{
			name: "counts-pauses",
			damage: source(func(s handler.Source) handler.Source {
				var pauses atomic.Int64
				return &pausing{
					Source: s,
					pause:  func() { pauses.Add(1); s.(handler.Pauser).Pause() },
					resume: func() {
						if pauses.Add(-1) <= 0 {
							s.(handler.Pauser).Resume()
						}
					},
				}
			}),
			breaks: []string{"PauseAtAnyTime"},
		},
		{
			name: "is-deaf-while-paused",
			damage: source(func(s handler.Source) handler.Source {
				var paused atomic.Bool
				run := sourceFunc(func(ctx context.Context, to handler.Sink) error {
					return s.Run(ctx, sinkFunc(func(ctx context.Context, d *handler.Delivery) error {
						settled := d.Settled
						d.Settled = func() {
							if !paused.Load() {
								settled()
							}
						}
						return to.Deliver(ctx, d)
					}))
				})
				return &pausing{
					Source: run,
					pause:  func() { paused.Store(true); s.(handler.Pauser).Pause() },
					resume: func() { paused.Store(false); s.(handler.Pauser).Resume() },
				}
			}),
			breaks: []string{"StopWhilePaused"},
		},
		{
			name:   "cannot-pause",
			damage: source(func(s handler.Source) handler.Source { return sourceFunc(s.Run) }),
			breaks: []string{"PauseIsDeclared", "PauseStops"},
		},
	}
}

func memberPlants() []plant {
	return []plant{
		{
			name: "shares-nothing",
			damage: func(tr transporttest.Transport) transporttest.Transport {
				newMember, members := tr.NewMember, 0
				tr.NewMember = func(t testing.TB) transporttest.Member {
					m := newMember(t)
					if members++; members > 1 {
						m.Source = sourceFunc(func(ctx context.Context, _ handler.Sink) error { <-ctx.Done(); return nil })
					}
					return m
				}
				return tr
			},
			breaks: []string{"MembersShare", "MemberDies"},
		},
		{
			name: "dies-with-its-messages",
			damage: func(tr transporttest.Transport) transporttest.Transport {
				newMember := tr.NewMember
				tr.NewMember = func(t testing.TB) transporttest.Member {
					m := newMember(t)
					m.Abort = func() {} // it lives on and keeps what it has
					return m
				}
				return tr
			},
			breaks: []string{"MemberDies", "UnsettledComesAgain"},
		},
		{
			name:   "never-revokes",
			damage: delivery(func(d *handler.Delivery) { d.Revoked = make(chan struct{}) }),
			breaks: []string{"RevokedIsTold"},
		},
		{
			name: "loses-what-is-revoked",
			damage: delivery(func(d *handler.Delivery) {
				d.Settled() // long before
				d.Settled, d.Returned = func() {}, func(error) {}
			}),
			breaks: []string{"RevokedIsTold"},
		},
	}
}
