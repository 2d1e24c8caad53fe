package main

import (
	"testing"

	"github.com/semel-go/semel/examples/internal/programtest"
)

var program programtest.Package

func TestMain(m *testing.M) { program.Main(m) }
