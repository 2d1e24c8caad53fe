package rabbitmq

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A broker's text is read only as far as it is understood.
func TestInspection_Read(t *testing.T) {
	t.Parallel()

	const question = "PRECONDITION_FAILED - inequivalent arg 'x-expires' for queue 'q' in vhost '/': "
	tests := []struct {
		name   string
		reason string
		want   any
		err    error
	}{
		{name: "None", reason: question + "received the value 'a' of type 'longstr' but current is none"},
		{name: "Number", reason: question + "received none but current is the value '60000' of type 'signedint'", want: int64(60_000)},
		{name: "NumberOfUnknownType", reason: question + "received 'a' but current is '60000'", want: int64(60_000)},
		{name: "NumberAsText", reason: question + "received none but current is the value '60000' of type 'longstr'", want: "60000"},
		{name: "Bool", reason: question + "received none but current is the value 'true' of type 'bool'", want: true},
		{name: "Text", reason: question + "received '1' but current is 'dead'", want: "dead"},
		{name: "Empty", reason: question + "received '1' but current is ''", want: ""},
		{name: "TextWithOurWords", reason: question + "received none but current is the value 'a' of type 'b' but current is none' of type 'longstr'", want: "a' of type 'b' but current is none"},

		{name: "WouldBeMade", reason: "PRECONDITION_FAILED - invalid arg 'x-expires' for queue 'q' in vhost '/': {value_zero,0}", err: errNoQueue},
		{name: "WouldBeMadeWithAnExchange", reason: "PRECONDITION_FAILED - invalid type 'signedint' for arg 'x-dead-letter-exchange' in queue 'q' in vhost '/'", err: errNoQueue},
		{name: "OtherQueue", reason: "PRECONDITION_FAILED - inequivalent arg 'x-expires' for queue 'p' in vhost '/': received '1' but current is none", err: errUnreadable},
		{name: "CutBeforeTheValue", reason: question + "received 'a very long val...", err: errUnreadable},
		{name: "CutInTheValue", reason: question + "received '1' but current is 'dea...", err: errUnreadable},
		{name: "CutInATypedValue", reason: question + "received none but current is the value 'dea...", err: errUnreadable},
		{name: "Float", reason: question + "received none but current is the value '1.5' of type 'double'", err: errUnreadable},
		{name: "OtherText", reason: "PRECONDITION_FAILED - no", err: errUnreadable},
		{name: "Nothing", err: errUnreadable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			argument, value, err := newInspection(nil, "q").read(tt.reason)

			require.ErrorIs(t, err, tt.err)
			require.Equal(t, tt.want, value)
			if tt.err == nil {
				require.Equal(t, "x-expires", argument)
			}
		})
	}
}

// What a broker older or newer than the one of the tests does at its limits.
func TestInspection_LimitsByVersion(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name    string
		version int
		found   map[string]any
		want    []string
	}{
		{name: "QuorumByDefault", version: 4, found: map[string]any{argDeliveryLimit: nil}, want: []string{"x-delivery-limit=20 by default"}},
		{name: "QuorumByDefaultWithDeadLetterExchange", version: 4, found: map[string]any{argDeliveryLimit: nil, argDeadLetterExchange: "dead"}},
		{name: "QuorumUnlimited", version: 4, found: map[string]any{argDeliveryLimit: int64(-1)}},
		{name: "QuorumLimited", version: 4, found: map[string]any{argDeliveryLimit: int64(3)}, want: []string{"x-delivery-limit=3"}},
		{name: "QuorumBeforeFour", version: 3, found: map[string]any{argDeliveryLimit: nil}},
		{name: "Classic", version: 4, found: map[string]any{argMessageTTL: nil, argMaxLengthBytes: nil}},
		{name: "Stream", version: 4, found: map[string]any{argQueueType: "stream", argMaxLengthBytes: int64(1)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			inspection := newInspection(nil, "q")
			inspection.found = tt.found

			require.Equal(t, tt.want, inspection.limits(tt.version))
		})
	}
}
