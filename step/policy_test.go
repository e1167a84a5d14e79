package step

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestExhausted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		attempts, failures int
		want               bool
	}{
		{0, DefaultAttempts - 1, false},
		{0, DefaultAttempts, true},
		{1, 0, false},
		{1, 1, true},
		{3, 2, false},
		{3, 3, true},
		{3, 4, true},
		{Forever, math.MaxInt, false},
	} {
		require.Equal(t, tt.want, Policy{Attempts: tt.attempts}.Exhausted(tt.failures), "%+v", tt)
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	plain := Backoff{First: time.Second, Max: 10 * time.Second, Jitter: -1}
	jittery := Backoff{First: 10 * time.Second, Jitter: 0.5}
	endless := Backoff{First: time.Second, Max: math.MaxInt64, Jitter: -1}
	for _, tt := range []struct {
		b        Backoff
		failures int
		chance   float64
		want     time.Duration
	}{
		{Backoff{}, 1, 0, DefaultFirst},
		{Backoff{}, 2, 0, 2 * DefaultFirst},
		{Backoff{}, 99, 0, DefaultMax},
		{Backoff{}, 1, 0.5, 900 * time.Millisecond},
		{plain, 1, 0.9, time.Second},
		{plain, 4, 0.9, 8 * time.Second},
		{plain, 5, 0.9, 10 * time.Second},
		{plain, 0, 0, time.Second},
		{plain, -7, 0, time.Second},
		{jittery, 1, 0, 10 * time.Second},
		{jittery, 1, 0.5, 7500 * time.Millisecond},
		{Backoff{First: time.Second, Factor: 3, Jitter: -1}, 3, 0, 9 * time.Second},
		{Backoff{First: time.Second, Factor: 1, Jitter: -1}, 99, 0, time.Second},
		{endless, math.MaxInt, 0, math.MaxInt64},
		{Backoff{Max: math.MaxInt64, Jitter: 1}, 5000, 0.5, math.MaxInt64 / 2},
		{Constant(time.Minute), 99, 0.9, time.Minute},
		{Constant(time.Hour), 1, 0.9, time.Hour},
		{Exponential(time.Minute, time.Hour), 2, 0, 2 * time.Minute},
		{Exponential(time.Minute, time.Hour), 99, 0, time.Hour},
	} {
		got := Policy{Backoff: tt.b}.Pause(tt.failures, tt.chance)
		require.InDelta(t, float64(tt.want), float64(got), 1000, "%+v", tt)
	}
}

// TestPauseStaysInBounds for every policy that Check lets pass.
func TestPauseStaysInBounds(t *testing.T) {
	t.Parallel()
	for _, b := range []Backoff{{}, {Jitter: 1}, {Factor: math.Inf(1)}, {First: 1, Max: 1}, {Max: math.MaxInt64}, {First: math.MaxInt64, Max: math.MaxInt64, Jitter: 1}} {
		require.NoError(t, Policy{Backoff: b}.Check())
		for _, failures := range []int{1, 2, 10, 63, 64, 2000, math.MaxInt} {
			for _, chance := range []float64{0, 0.5, 0.999999} {
				got := Policy{Backoff: b}.Pause(failures, chance)
				require.GreaterOrEqual(t, got, time.Duration(0), "%+v", b)
				require.LessOrEqual(t, got, or(b.Max, DefaultMax), "%+v", b)
			}
		}
	}
}

func TestAttemptTimeout(t *testing.T) {
	t.Parallel()
	require.Equal(t, DefaultTimeout, Policy{}.AttemptTimeout())
	require.Equal(t, time.Second, Policy{Timeout: time.Second}.AttemptTimeout())
	require.Zero(t, Policy{Timeout: -1}.AttemptTimeout())
}

func TestPolicyCheck(t *testing.T) {
	t.Parallel()
	for _, p := range []Policy{
		{}, {Attempts: 1}, {Attempts: Forever}, {Timeout: -1}, {Backoff: Constant(time.Hour)}, {Backoff: Constant(time.Nanosecond)},
		{Backoff: Exponential(time.Second, time.Second)}, {Backoff: Backoff{Factor: 1, Jitter: 1}}, {Backoff: Backoff{Jitter: -5}},
	} {
		require.NoError(t, p.Check(), "%+v", p)
	}
	for want, p := range map[string]Policy{
		"attempts -2: use step.Forever for no limit":          {Attempts: -2},
		"backoff of -1s up to 0s: a pause cannot be negative": {Backoff: Backoff{First: -time.Second}},
		"backoff of 0s up to -1s: a pause cannot be negative": {Backoff: Backoff{Max: -time.Second}},
		"backoff begins at 2s, beyond its limit of 1s":        {Backoff: Exponential(2*time.Second, time.Second)},
		"backoff begins at 1h0m0s, beyond its limit of 5m0s":  {Backoff: Backoff{First: time.Hour}},
		"backoff begins at 1s, beyond its limit of 1ms":       {Backoff: Backoff{Max: time.Millisecond}},
		"backoff factor 0.5: at least 1":                      {Backoff: Backoff{Factor: 0.5}},
		"backoff factor -1: at least 1":                       {Backoff: Backoff{Factor: -1}},
		"backoff factor NaN: at least 1":                      {Backoff: Backoff{Factor: math.NaN()}},
		"jitter 1.5: at most 1":                               {Backoff: Backoff{Jitter: 1.5}},
		"jitter NaN: at most 1":                               {Backoff: Backoff{Jitter: math.NaN()}},
	} {
		require.EqualError(t, p.Check(), want)
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	cause := errors.New("no")
	for name, tt := range map[string]struct {
		err      error
		rejected bool
		pause    time.Duration
		asked    bool
	}{
		"nothing":             {nil, false, 0, false},
		"plain":               {cause, false, 0, false},
		"rejected":            {Reject(cause), true, 0, false},
		"wrapped":             {errors.Join(errors.New("x"), Reject(cause)), true, 0, false},
		"asked":               {RetryAfter(cause, time.Minute), false, time.Minute, true},
		"asked for the past":  {RetryAfter(cause, -time.Minute), false, 0, true},
		"asked and rejected":  {RetryAfter(Reject(cause), time.Minute), true, time.Minute, true},
		"rejected nothing":    {Reject(nil), false, 0, false},
		"asked about nothing": {RetryAfter(nil, time.Minute), false, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pause, asked := AskedPause(tt.err)
			require.Equal(t, tt.rejected, IsRejected(tt.err))
			require.Equal(t, tt.asked, asked)
			require.Equal(t, tt.pause, pause)
			if tt.rejected || tt.asked {
				require.ErrorIs(t, tt.err, cause)
				require.ErrorContains(t, tt.err, "no")
			}
		})
	}
	require.NoError(t, Reject(nil))
	require.NoError(t, RetryAfter(nil, time.Second))
}
