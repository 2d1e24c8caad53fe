package rabbitmq

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// Whatever type and text a header has, it becomes a value that the client
// library can send, and that value has a text form which makes it again.
func FuzzTextValue(f *testing.F) {
	for _, tag := range []byte("SxtbBsuIilfdDTFAV?\x00") {
		for _, text := range []string{"", "true", "-7", "1e999", "NaN", "-0.05", ".", "-", "2023-11-14T22:13:20Z", `{"a":[1,2.5,null,"x",{}]}`, `[[[]]]`, `{`, "\xff"} {
			f.Add(tag, []byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, tag byte, text []byte) {
		value := textValue(tag, text)
		require.NoError(t, amqp.Table{"n": value}.Validate())

		tag, text = valueText(value)

		require.Equal(t, value, textValue(tag, text))
	})
}
