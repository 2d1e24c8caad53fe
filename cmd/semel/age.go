package main

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// age is a flag that says how long ago: a duration, or days as in 14d.
type age time.Duration

// Set implements [flag.Value].
func (a *age) Set(text string) error {
	var d time.Duration
	var err error
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n uint64
		if n, err = strconv.ParseUint(days, 10, 16); err == nil {
			d = time.Duration(n) * 24 * time.Hour //nolint:gosec // 16 bits
		}
	} else {
		d, err = time.ParseDuration(text)
	}
	if err != nil || d < 0 {
		return errors.New("it must be like 10m, 36h or 14d")
	}
	*a = age(d)
	return nil
}

// String implements [flag.Value].
func (a *age) String() string { return ageText(time.Duration(*a)) }

// ageText is a duration for a person.
func ageText(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= 2*day {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	if d < time.Second {
		return d.Truncate(time.Millisecond).String()
	}
	return d.Truncate(time.Second).String()
}
