package handler_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
)

func TestHeaders(t *testing.T) {
	t.Parallel()

	h := handler.Headers{
		{Name: "hop", Value: []byte("b")}, {Name: "nil"}, {Name: "hop", Value: []byte("a")}, {Name: "empty", Value: []byte{}},
	}

	tests := []struct {
		name      string
		header    string
		wantFirst []byte
		wantOK    bool
		wantAll   [][]byte
	}{
		{name: "Repeated", header: "hop", wantFirst: []byte("b"), wantOK: true, wantAll: [][]byte{[]byte("b"), []byte("a")}},
		{name: "NilValueIsThere", header: "nil", wantFirst: nil, wantOK: true, wantAll: [][]byte{nil}},
		{name: "EmptyIsNotNil", header: "empty", wantFirst: []byte{}, wantOK: true, wantAll: [][]byte{{}}},
		{name: "Missing", header: "none"},
		{name: "NamesAreExact", header: "Hop"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			first, ok := h.First(tt.header)

			require.Equal(t, tt.wantOK, ok)
			require.Equal(t, tt.wantFirst, first)
			require.Equal(t, tt.wantAll, h.All(tt.header))
		})
	}
}
