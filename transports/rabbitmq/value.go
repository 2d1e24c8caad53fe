package rabbitmq

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// AMQP 0.9.1 field types, as RabbitMQ writes them.
const (
	tagText    = 'S'
	tagBytes   = 'x'
	tagBool    = 't'
	tagInt8    = 'b'
	tagUint8   = 'B'
	tagInt16   = 's'
	tagUint16  = 'u'
	tagInt32   = 'I'
	tagUint32  = 'i'
	tagInt64   = 'l'
	tagFloat   = 'f'
	tagDouble  = 'd'
	tagDecimal = 'D'
	tagTime    = 'T'
	tagTable   = 'F'
	tagArray   = 'A'
	tagNil     = 'V'
)

// valueText returns the type and the text form of a header's value. It knows a
// form for every value, also for one that a client made up.
func valueText(value any) (tag byte, text []byte) {
	switch v := value.(type) {
	case nil:
		return tagNil, nil
	case string:
		return tagText, []byte(v)
	case []byte:
		return tagBytes, append([]byte{}, v...) // never nil: that would be tagNil
	case bool:
		return tagBool, strconv.AppendBool(nil, v)
	case int8:
		return tagInt8, strconv.AppendInt(nil, int64(v), 10)
	case uint8:
		return tagUint8, strconv.AppendUint(nil, uint64(v), 10)
	case int16:
		return tagInt16, strconv.AppendInt(nil, int64(v), 10)
	case uint16:
		return tagUint16, strconv.AppendUint(nil, uint64(v), 10)
	case int32:
		return tagInt32, strconv.AppendInt(nil, int64(v), 10)
	case uint32:
		return tagUint32, strconv.AppendUint(nil, uint64(v), 10)
	case int64:
		return tagInt64, strconv.AppendInt(nil, v, 10)
	case float32:
		return tagFloat, strconv.AppendFloat(nil, float64(v), 'g', -1, 32)
	case float64:
		return tagDouble, strconv.AppendFloat(nil, v, 'g', -1, 64)
	case amqp.Decimal:
		return tagDecimal, []byte(decimalText(v))
	case time.Time:
		return tagTime, []byte(secondsText(v))
	case amqp.Table:
		return tagTable, jsonText(v)
	case []any:
		return tagArray, jsonText(v)
	default:
		return tagText, fmt.Append(nil, v)
	}
}

// textValue makes the value again that [valueText] wrote down. A text that is
// not of its type is sent as text: a header never fails a message.
func textValue(tag byte, text []byte) any {
	if text == nil {
		return nil
	}
	s := string(text)
	var value any
	var err error
	switch tag {
	case tagText:
		return s
	case tagBytes:
		return text
	case tagBool:
		value, err = strconv.ParseBool(s)
	case tagInt8:
		value, err = parseInt[int8](s, 8)
	case tagUint8:
		value, err = parseUint[uint8](s, 8)
	case tagInt16:
		value, err = parseInt[int16](s, 16)
	case tagUint16:
		value, err = parseUint[uint16](s, 16)
	case tagInt32:
		value, err = parseInt[int32](s, 32)
	case tagUint32:
		value, err = parseUint[uint32](s, 32)
	case tagInt64:
		value, err = parseInt[int64](s, 64)
	case tagFloat:
		var f float64
		f, err = parseFinite(s, 32)
		value = float32(f)
	case tagDouble:
		value, err = parseFinite(s, 64)
	case tagDecimal:
		value, err = parseDecimal(s)
	case tagTime:
		value, err = parseSeconds(s)
	case tagTable, tagArray:
		value, err = parseJSON(text, tag)
	default:
		return untypedValue(text)
	}
	if err != nil {
		return untypedValue(text)
	}
	return value
}

func parseInt[T int8 | int16 | int32 | int64](s string, bits int) (T, error) {
	n, err := strconv.ParseInt(s, 10, bits)
	return T(n), err
}

func parseUint[T uint8 | uint16 | uint32](s string, bits int) (T, error) {
	n, err := strconv.ParseUint(s, 10, bits)
	return T(n), err
}

// parseFinite refuses what RabbitMQ has no floating point numbers for: an
// infinity, or none, closes the connection.
func parseFinite(s string, bits int) (float64, error) {
	f, err := strconv.ParseFloat(s, bits)
	if err == nil && (math.IsNaN(f) || math.IsInf(f, 0)) {
		err = strconv.ErrRange
	}
	return f, err
}

// decimalText writes a decimal with all its places: 12345 with scale 2 is
// "123.45", and 500 with scale 2 is "5.00".
func decimalText(d amqp.Decimal) string {
	unscaled := big.NewInt(int64(d.Value))
	digits := new(big.Int).Abs(unscaled).String()
	if missing := int(d.Scale) + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	if d.Scale > 0 {
		point := len(digits) - int(d.Scale)
		digits = digits[:point] + "." + digits[point:]
	}
	if unscaled.Sign() < 0 {
		return "-" + digits
	}
	return digits
}

func parseDecimal(s string) (amqp.Decimal, error) {
	whole, places, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt(whole+places, 10, 32)
	if err != nil || len(places) > math.MaxUint8 {
		return amqp.Decimal{}, fmt.Errorf("not a decimal of 32 bits and at most %d places", math.MaxUint8)
	}
	return amqp.Decimal{Scale: uint8(len(places)), Value: int32(n)}, nil
}

// secondsText writes an AMQP timestamp, which has whole seconds and no zone, as
// RFC 3339 text, or as its number where that has no form for the year.
func secondsText(t time.Time) string {
	if t = t.UTC(); t.Year() < 0 || t.Year() > 9999 {
		return strconv.FormatInt(t.Unix(), 10)
	}
	return t.Format(time.RFC3339)
}

func parseSeconds(s string) (time.Time, error) {
	seconds, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		var t time.Time
		t, err = time.Parse(time.RFC3339, s)
		seconds = t.Unix()
	}
	return time.Unix(seconds, 0).UTC(), err
}
