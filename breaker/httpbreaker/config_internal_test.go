package httpbreaker

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestConfig_Defaults(t *testing.T) {
	t.Parallel()

	cfg := Config{}.withDefaults()
	require.Equal(t, 3*time.Second, cfg.ConnectTimeout)
	require.Equal(t, 10*time.Second, cfg.RequestTimeout)
	require.Equal(t, 1000, cfg.MaxBreakers)
	require.NotNil(t, cfg.Logger)
	base, ok := cfg.Base.(*http.Transport)
	require.True(t, ok)
	require.Equal(t, 3*time.Second, base.TLSHandshakeTimeout)
	require.NotSame(t, http.DefaultTransport, base)
	require.NotNil(t, base.Proxy)
	require.Zero(t, Config{ConnectTimeout: -1}.withDefaults().Base.(*http.Transport).TLSHandshakeTimeout)
}
