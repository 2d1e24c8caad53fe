package doctor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/doctor"
)

func TestSort(t *testing.T) {
	t.Parallel()

	findings := []doctor.Finding{
		{Check: "a", Level: doctor.OK},
		{Check: "b", Level: doctor.Problem},
		{Check: "c", Level: doctor.NotChecked},
		{Check: "d", Level: doctor.Warning},
		{Check: "e", Level: doctor.Problem},
	}
	doctor.Sort(findings)

	var order string
	for _, f := range findings {
		order += f.Check
	}
	require.Equal(t, "bedca", order)
	require.Equal(t, 2, doctor.Count(findings, doctor.Problem))
	require.Equal(t, 1, doctor.Count(findings, doctor.OK))
}

func TestLevel_String(t *testing.T) {
	t.Parallel()

	require.Equal(t, []string{"problem", "warning", "not checked", "ok", "level 9"},
		[]string{doctor.Problem.String(), doctor.Warning.String(), doctor.NotChecked.String(), doctor.OK.String(), doctor.Level(9).String()})
}
