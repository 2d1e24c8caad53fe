package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/edifact"
)

func TestMakePosts(t *testing.T) {
	t.Parallel()

	posts := makePosts(150)

	require.Equal(t, posts, makePosts(150), "the same for every run")
	good, ids := 0, map[string]bool{}
	bodies := map[string]string{}
	for _, p := range posts {
		if body, again := bodies[p.id]; again {
			require.Equal(t, body, p.body, "a resend is a resend")
		}
		bodies[p.id] = p.body
		if p.taken {
			ids[p.id] = true
			if _, err := edifact.Parse([]byte(p.body)); err == nil {
				good++
			}
		}
	}
	require.Len(t, ids, 153, "three are taken and not understood")
	require.Equal(t, 200+4, good, "of these one in two copies has a wrong count")
	require.Len(t, posts, 224)
	other := changed(posts)
	require.NotEqual(t, bodies[other.id], other.body)
	require.Contains(t, ids, other.id)
}

func TestParseOptions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		args []string
		says string
	}{
		{name: "Few", args: []string{"-n", "10"}, says: "-n is 10, it must be between 130 and 5000"},
		{name: "NoRate", args: []string{"-rate", "0"}, says: "-rate is 0, it must be between 1 and 500"},
		{name: "Argument", args: []string{"invoic.edi"}, says: `unknown argument "invoic.edi"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := parseOptions(tt.args, t.Output())
			require.ErrorContains(t, err, tt.says)
		})
	}
}
