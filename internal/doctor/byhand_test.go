package doctor_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/internal/doctor"
)

// Settings of one consumer that cannot be read are told of that one, and those of
// the others are looked at.
func TestSettings_ByHand(t *testing.T) {
	t.Parallel()

	errText := errors.New("read the settings of consumer \"billing\": no number")
	consumers := doctor.Consumers([]dedup.ConsumerSettings{
		{Consumer: "billing", NotedAt: time.Now(), Err: errText},
		{Consumer: "mails", Settings: dedup.Settings{Workers: 8}}, // noted at infinity
		{Consumer: "shipping", NotedAt: time.Now(), Settings: shipping().Settings},
	}, "", 0)

	findings := doctor.Settings(consumers)

	require.Len(t, findings, 1)
	require.Equal(t, "billing", findings[0].Consumer)
	require.Equal(t, doctor.NotChecked, findings[0].Level)
	require.Equal(t, errText.Error(), findings[0].Found)
	require.True(t, findings[0].Failed)
	require.Len(t, doctor.Retries(consumers), 1)
}
