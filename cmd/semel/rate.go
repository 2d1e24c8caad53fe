package main

import (
	"errors"
	"strconv"
	"strings"
)

// rate is a flag that says how many a second, or a minute: 50/s, 30/m.
type rate float64

// Set implements [flag.Value].
func (r *rate) Set(text string) error {
	number, unit, _ := strings.Cut(text, "/")
	n, err := strconv.ParseFloat(number, 64)
	switch unit {
	case "", "s":
	case "m":
		n /= 60
	default:
		err = strconv.ErrSyntax
	}
	if err != nil || !(n > 0 && n <= 1e6) {
		return errors.New("it must be like 50/s or 30/m")
	}
	*r = rate(n)
	return nil
}

// String implements [flag.Value].
func (r *rate) String() string {
	n := float64(*r)
	if n >= 1 || n == 0 {
		return strconv.FormatFloat(n, 'g', -1, 64) + "/s"
	}
	return strconv.FormatFloat(n*60, 'g', -1, 64) + "/m"
}
