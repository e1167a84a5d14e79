package daemon_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/engine/aescodec"
	"github.com/pawlhq/pawl/engine/daemon"
)

// secretly runs a command of a program whose payloads are encrypted with a key.
func (p *program) secretly(key string, args ...string) result {
	p.t.Helper()
	return p.secretlyUntil(p.t.Context(), key, args...)
}

func (p *program) secretlyUntil(ctx context.Context, key string, args ...string) result {
	codec, err := aescodec.New(aescodec.Keys{
		Write: key, ByID: map[string][]byte{key: bytes.Repeat([]byte(key[:1]), aescodec.KeyBytes)}, Fingerprint: bytes.Repeat([]byte("f"), aescodec.KeyBytes),
	})
	require.NoError(p.t, err)
	var out, errs buffer
	code := daemon.Run(ctx, args, strings.NewReader(""), &out, &errs, register,
		daemon.WithName("workerd"), daemon.WithEnv(p.env), daemon.WithConfig(engine.Config{Codec: codec}))
	return result{code, out.String(), errs.String()}
}

// Every command reads and writes through the codec of the program; one without the
// key says who wrote what it cannot show, and does not fail for that.
func TestCommandsWithACodec(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	start := []string{"workflow", "start", "parcel", "p-1", "--input", `{"to":"Rome","fail":"unpack"}`}
	require.Zero(t, p.secretly("a1", start...).code)
	require.Contains(t, p.secretly("a1", start...).out, "was there already")

	ctx, drain := context.WithCancel(t.Context())
	ended := make(chan result, 1)
	go func() { ended <- p.secretlyUntil(ctx, "a1", "run", "--poll", "20ms") }()
	require.Eventually(t, func() bool { return strings.Contains(p.secretly("a1", "workflow", "why", "p-1").out, "held: ") }, time.Minute, 20*time.Millisecond)
	drain()
	worker := <-ended
	require.Zero(t, worker.code, worker.err)
	require.Contains(t, worker.err, "is HELD")
	require.NotContains(t, worker.err, "glued")

	require.Equal(t, "held: undo unpack was refused: it is glued\n", p.secretly("a1", "workflow", "why", "p-1").out)
	show := p.secretly("a1", "workflow", "show", "p-1", "--payload").out
	require.Contains(t, show, `data        {"to":"Rome","fail":"unpack","label":"label of p-1/pack/1"}`)
	require.Regexp(t, `(?m)^pack  .*  \{"to":"Rome","fail":"unpack"\}  "label of p-1/pack/1"$`, show)

	for name, run := range map[string]func(...string) result{
		"no codec":    p.run,
		"another key": func(args ...string) result { return p.secretly("b1", args...) },
	} {
		require.Equal(t, "held: (encoded by aes-gcm, key a1)\n", run("workflow", "why", "p-1").out, name)
		r := run("workflow", "show", "p-1", "--payload")
		require.Zero(t, r.code, r.err)
		require.Contains(t, r.out, "data        (encoded by aes-gcm, key a1)")
		require.Regexp(t, `(?m)^pack  .*  \(encoded by aes-gcm, key a1\)  \(encoded by aes-gcm, key a1\)$`, r.out)
		r = run("workflow", "show", "p-1", "--payload", "-o", "json")
		require.Zero(t, r.code, r.err)
		require.Contains(t, r.out, `"data_base64": "AQcCYWVzLWdjbWEx`)
		r = run("workflow", "skip", "p-1")
		require.Equal(t, 1, r.code)
		require.Equal(t, `workerd: skip workflow "p-1": read it: workflow "p-1": value cannot be decoded here: it was encoded by aes-gcm, key a1; `+
			"run a program that is configured with that codec and key\n", r.err)
	}

	require.Zero(t, p.secretly("a1", "workflow", "skip", "p-1", "--reason", "glued for ever").code)
	require.Contains(t, p.secretly("a1", "workflow", "audit", "p-1").out, "glued for ever")
	audit := p.run("workflow", "audit", "p-1")
	require.Zero(t, audit.code, audit.err)
	require.Contains(t, audit.out, "(encoded by aes-gcm, key a1)")
	require.NotContains(t, audit.out, "glued")
	require.Zero(t, p.run("workflow", "delete", "p-1", "--force").code, "a tombstone needs no key")
}
