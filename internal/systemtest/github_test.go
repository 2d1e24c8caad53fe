package systemtest_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
)

// Real GitHub webhooks, each sent three times in shuffled order with one poison
// in twenty, to two processes: one effect each, and every poison in the dead
// letters with its bytes intact.
func TestGitHub_RealPayloads(t *testing.T) {
	payloads := githubMessages(t)
	poison := map[string]dlq.Reason{}
	var good []string
	for i, msg := range payloads {
		switch {
		case i%20 != 19:
			good = append(good, msg.ID)
		case i%40 == 19: // torn: not JSON any more
			msg.Payload = msg.Payload[:len(msg.Payload)/2]
			poison[msg.ID] = dlq.Undecodable
		default:
			msg.Headers = handler.Headers{{Name: refuseHeader, Value: []byte{0, 0xff}}}
			poison[msg.ID] = dlq.Permanent
		}
	}
	seed := rand.Uint64()
	t.Logf("the order of the copies comes from seed %d", seed)
	sent := slices.Concat(payloads, payloads, payloads)
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(sent), func(i, j int) { sent[i], sent[j] = sent[j], sent[i] }) //nolint:gosec // an order

	eachBroker(t, func(t *testing.T, kind string) {
		b := setup(t, kind, place{partitions: 6})
		half := len(sent) / 2
		send(t, b.broker, sent[:half]...)
		one := b.spawn(t, b.broker.recipe())
		two := b.spawn(t, b.broker.recipe())
		b.awaitEffects(t, len(good)/4)
		send(t, b.broker, sent[half:]...) // while both are at work

		b.awaitEffects(t, len(good))
		await(t, "all dead letters", func() bool { return len(b.allLetters(t)) >= len(poison) })
		one.finish(t)
		two.finish(t)
		b.exhaust(t)

		b.requireOneEffectEach(t, good)
		letters := b.letters(t)
		require.ElementsMatch(t, slices.Collect(maps.Keys(poison)), slices.Collect(maps.Keys(letters)))
		for _, msg := range payloads {
			if letter := letters[msg.ID]; letter != nil {
				require.Equal(t, poison[msg.ID], letter.Reason, msg.ID)
				require.Equal(t, string(msg.Payload), string(letter.Message.Payload), msg.ID)
				require.Equal(t, string(msg.Key), string(letter.Message.Key), msg.ID)
				refused, ok := letter.Message.Headers.First(refuseHeader)
				require.Equal(t, poison[msg.ID] == dlq.Permanent, ok, msg.ID)
				require.True(t, !ok || string(refused) == "\x00\xff", "%s: the bytes of its header", msg.ID)
			}
		}
		if kind == onKafka { // a queue with two consumers has no order
			b.requireOrder(t, slices.DeleteFunc(slices.Clone(sent), func(msg *handler.Message) bool { return poison[msg.ID] != "" }))
		}
	})
}

// githubMessages reads the payloads, which belong to a folder beside the
// project. Where that is absent the test proves nothing, in CI too: a fork does
// not have it.
func githubMessages(t *testing.T) []*handler.Message {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	path := filepath.Join(filepath.Dir(here), "..", "..", "..", "shared", "data", "github-webhooks.jsonl.gz")
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("SKIPPED, PROVES NOTHING: ../shared/data/github-webhooks.jsonl.gz is absent: put the GitHub payloads there")
	}
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)

	var msgs []*handler.Message
	lines := bufio.NewScanner(unzipped)
	lines.Buffer(nil, 1<<20) // a line is a whole payload
	for lines.Scan() {
		var line struct{ Event, File, Body string }
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
		var body struct {
			Repository struct {
				FullName string `json:"full_name"`
			}
		}
		require.NoError(t, json.Unmarshal([]byte(line.Body), &body))
		key := body.Repository.FullName
		if key == "" {
			key = line.Event
		}
		msgs = append(msgs, &handler.Message{
			ID: line.Event + "/" + line.File, Type: line.Event, Key: []byte(key), Source: "github", Payload: []byte(line.Body),
		})
	}
	require.NoError(t, lines.Err())
	require.Len(t, msgs, 271)
	return msgs
}
