package engine_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/sqlite"
)

// found returns which of the ward's words are in a text, as they are or in hex, as a
// log shows them.
func found(text []byte) (words []string) {
	for _, word := range wardWords {
		if bytes.Contains(text, []byte(word)) || bytes.Contains(text, []byte(hex.EncodeToString([]byte(word)))) {
			words = append(words, word)
		}
	}
	return words
}

// inTree reads every file below a folder, of which some may go away meanwhile.
func inTree(t testing.TB, folder string) (all []byte) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			content, readErr := os.ReadFile(path)
			all, err = append(all, content...), readErr
		}
		if os.IsNotExist(err) {
			return nil
		}
		return err
	})
	require.NoError(t, err)
	return all
}

// withAndWithout runs the ward first as a program that has no codec, to see that
// each word is looked for where it would be, and then with one.
func withAndWithout(t *testing.T, on func(t *testing.T, run func(w *world, files func(when string) []byte))) {
	t.Run("without a codec", func(t *testing.T) {
		t.Parallel()
		on(t, func(w *world, files func(string) []byte) {
			n := w.coded(nil)
			new(ward).allOfIt(n)
			n.stop()
			require.ElementsMatch(w, wardWords, found(files("at the end")))
			require.Equal(w, []string{"zq-error-held", "zq-order-reason", "zq-order-actor"}, found([]byte(n.log.String())))
		})
	})
	t.Run("with a codec", func(t *testing.T) {
		t.Parallel()
		on(t, func(w *world, files func(string) []byte) {
			n := w.coded(w.aes("k1"))
			new(ward).allOfIt(n)
			require.Empty(w, found(files("at work")))
			n.stop()
			at := files("at the end")
			require.Empty(w, found(at))
			require.Contains(w, string(at), "aes-gcm", "the values are there, though")
			require.Empty(w, found([]byte(n.log.String())))
			require.NotZero(w, n.log.count("is HELD and needs a person", `"workflow":"bad"`))
			require.NotZero(w, n.log.count("verb carried out"))
		})
	})
}

// No word of a payload is in the file, its log of writes and their index.
func TestNoPlaintextInSQLite(t *testing.T) {
	t.Parallel()
	withAndWithout(t, func(t *testing.T, run func(*world, func(string) []byte)) {
		folder := t.TempDir()
		w := newWorld(t, "sqlite:"+filepath.Join(folder, "pawl.db"))
		w.knows("single")
		run(w, func(when string) []byte {
			all := inTree(w, folder)
			require.FileExists(w, filepath.Join(folder, "pawl.db-wal"))
			if when == "at the end" {
				_, err := w.st.(*sqlite.Store).DB().ExecContext(w.ctx(), "PRAGMA wal_checkpoint(TRUNCATE)")
				require.NoError(w, err)
				all = append(all, inTree(w, folder)...)
			}
			return all
		})
	})
}

// No word of a payload is in any file of the server's, its WAL included, or in its
// log, which shows every statement and its parameters.
func TestNoPlaintextInPostgres(t *testing.T) {
	t.Parallel()
	withAndWithout(t, func(t *testing.T, run func(*world, func(string) []byte)) {
		onOwnPostgres(t, func(w *world, _ *pgtest.Server) {
			w.knows("single")
			var folder string
			w.exec("ALTER ROLE CURRENT_USER SET log_statement = 'all'")
			w.inTx(func(ctx context.Context, tx store.Tx) bool {
				require.NoError(w, tx.QueryRow(ctx, "SHOW data_directory").Scan(&folder))
				return false
			})
			run(w, func(string) []byte {
				w.exec("CHECKPOINT")
				all := inTree(w, filepath.Dir(folder))
				require.Contains(w, string(all), "DETAIL:  parameters:", "its log shows parameters")
				return all
			})
		})
	})
}

// A second start is told from a conflicting one, whatever key has written meanwhile,
// and though the first came before there was a codec. What is stored to tell them
// apart is no hash that can be computed of a guess.
func TestStartsWithACodec(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("single")
		bare, before, after := w.client(), w.coded(w.aes("k1")), w.coded(w.aes("k2", "k1"))
		start := func(n *node, id string, amount int) (engine.Started, error) {
			return n.flows["single"].Start(w.ctx(), id, trip{Amount: amount})
		}
		for id, n := range map[string]*node{"plain": bare, "w": before} {
			s, err := start(n, id, 7)
			require.NoError(w, err)
			require.True(w, s.Created)
		}
		for id, ns := range map[string][]*node{"plain": {bare, before, after}, "w": {before, after}} {
			for _, n := range ns {
				s, err := start(n, id, 7)
				require.NoError(w, err)
				require.False(w, s.Created)
				_, err = start(n, id, 8)
				require.ErrorIs(w, err, engine.ErrConflict)
			}
		}
		plain, err := w.st.Get(w.ctx(), "plain")
		require.NoError(w, err)
		coded, err := w.st.Get(w.ctx(), "w")
		require.NoError(w, err)
		require.NotEqual(w, plain.InputHash, coded.InputHash)
		after.run()
		after.ends("plain", store.Completed)
		after.ends("w", store.Completed)
	})
}

// Rows of all ages lie side by side: without a codec, of the key before, of the key
// now. A worker with both keys goes on with each where it stands.
func TestRotationOfKeys(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("vote")
		nodes := map[string]*node{"plain": w.client(), "first": w.coded(w.aes("k1")), "second": w.coded(w.aes("k2", "k1"))}
		for id, n := range nodes {
			_, err := n.flows["vote"].Start(w.ctx(), id, trip{Quorum: 2})
			require.NoError(w, err)
			n.run()
			n.becomes(id, "it waits", func(s engine.Snapshot[trip]) bool { return s.Awaits != "" })
			require.NoError(w, engine.Signal(w.ctx(), n.Engine, id, ballot, "aye-"+id))
			n.becomes(id, "it has a vote", func(s engine.Snapshot[trip]) bool { return len(s.Data.Votes) == 1 && s.Awaits != "" })
			n.stop()
		}
		last := w.coded(w.aes("k3", "k2", "k1"))
		last.run()
		for id := range nodes {
			require.NoError(w, engine.Signal(w.ctx(), last.Engine, id, ballot, "no"))
			s := last.ends(id, store.Completed)
			require.Equal(w, []string{"aye-" + id, "no"}, s.Data.Votes)
			require.Equal(w, []string{"open:DONE:1", "count:DONE:1"}, last.recorded(id))
		}
	})
}

// A worker without a key pauses what it cannot read, and whatever it was is there
// when one with the key resumes it: attempts, groups, the time of a wait, and the
// reason of the last failure.
func TestUnknownKeyPausesAWorkflow(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("rare", "vote", "vote-brief", "single")
		right := w.coded(w.aes("k1"))
		right.run()
		w.ledger.next("retries", "do-1", failsBefore)
		for id, flow := range map[string]string{"retries": "rare", "waits": "vote-brief"} {
			_, err := right.flows[flow].Start(w.ctx(), id, trip{Quorum: 1})
			require.NoError(w, err)
		}
		before := right.becomes("retries", "it pauses", func(s engine.Snapshot[trip]) bool { return s.Mark.Failures == 1 && s.Owner.IsZero() })
		right.stop()
		_, err := right.flows["single"].Start(w.ctx(), "fresh", trip{Amount: 3})
		require.NoError(w, err)

		for _, codec := range []engine.Codec{w.aes("k2"), nil} {
			wrong := w.coded(codec)
			wrong.run()
			w.due("retries")
			ids := []string{"retries"}
			if codec != nil {
				ids = []string{"retries", "waits", "fresh"}
			}
			for _, id := range ids {
				w.eventually(id+" is held", func() bool { s, err := wrong.Get(w.ctx(), id); return err == nil && s.Status == store.Held })
				info, err := wrong.Get(w.ctx(), id)
				require.NoError(w, err)
				by, key, ok := engine.Encoded(info.Raw)
				require.True(w, ok)
				require.Equal(w, []string{"aes-gcm", "k1"}, []string{by, key})
				require.Contains(w, info.Reason, "encoded by aes-gcm, key k1")
				require.Contains(w, info.Reason, id)
				require.Equal(w, 1, wrong.log.count("cannot be decoded, pausing", `"workflow":"`+id+`"`))
			}
			_, err := wrong.flows["rare"].Get(w.ctx(), "retries")
			var coded *engine.CodecError
			require.ErrorAs(w, err, &coded)
			require.ErrorIs(w, err, engine.ErrCodec)
			require.Equal(w, engine.CodecError{Of: `workflow "retries"`, Codec: "aes-gcm", Key: "k1"}, *coded)
			_, err = wrong.Operate(w.ctx(), "retries", engine.Order{Verb: engine.Resume})
			require.ErrorIs(w, err, engine.ErrCodec)
			wrong.stop()
			if codec != nil {
				require.Equal(w, 1, w.ledger.calls("retries", "do-1"), "nobody has run it")
				_, err = right.Operate(w.ctx(), "retries", engine.Order{Verb: engine.Resume})
				require.NoError(w, err)
				w.ledger.next("retries", "do-1", failsBefore)
				right.run()
				right.becomes("retries", "it pauses once more", func(s engine.Snapshot[trip]) bool { return s.Mark.Failures == 2 && s.Owner.IsZero() })
				right.stop()
			}
		}
		for _, id := range []string{"retries", "waits", "fresh"} {
			_, err := right.Operate(w.ctx(), id, engine.Order{Verb: engine.Resume})
			require.NoError(w, err)
		}
		require.Equal(w, before.Reason, right.get("retries").Reason)
		right.run()
		right.ends("retries", store.Completed)
		require.Equal(w, 3, w.ledger.calls("retries", "do-1"))
		waited := right.ends("waits", store.Completed)
		require.Equal(w, "late", string(waited.State), "its time has gone on")
		right.ends("fresh", store.Completed)
		require.Equal(w, []string{"work:DONE:1"}, right.recorded("fresh"))
	})
}

// A signal that cannot be read is not taken for one that fits nothing: it stays, and
// is taken up where it can be read.
func TestUnreadableSignalIsKept(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("vote")
		right, wrong := w.coded(w.aes("k1", "k2")), w.coded(w.aes("k2"))
		_, err := wrong.flows["vote"].Start(w.ctx(), "w", trip{Quorum: 1})
		require.NoError(w, err)
		wrong.run()
		wrong.becomes("w", "it waits", func(s engine.Snapshot[trip]) bool { return s.Awaits != "" })
		require.NoError(w, engine.Signal(w.ctx(), right.Engine, "w", ballot, "aye"))
		held := wrong.becomes("w", "it is held", isHeld)
		require.Contains(w, held.Reason, `message ballot of workflow "w": value cannot be decoded here: it was encoded by aes-gcm, key k1`)
		wrong.stop()
		right.run()
		_, err = right.Operate(w.ctx(), "w", engine.Order{Verb: engine.Resume})
		require.NoError(w, err)
		require.Equal(w, []string{"aye"}, right.ends("w", store.Completed).Data.Votes)
	})
}

// One that comes while steps are under way waits until they have ended: their results
// are not given up for it.
func TestUnreadableSignalWaitsForTheSteps(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("single")
		def := w.site.chain("two-and-a-vote", 3, quick, w.site.call)
		def.States["s3"] = statemachine.Await(ballot, (*trip).voted).Then("good")
		var mail *mailCounter
		wrong := w.client(nodeOptions{
			wrap: func(st store.Store) store.Store { mail = &mailCounter{Store: st}; return mail },
			tune: func(c *engine.Config) { c.Codec = w.aes("k2") },
		})
		right := w.coded(w.aes("k1", "k2"))
		flow, err := engine.Register(wrong.Engine, def)
		require.NoError(w, err)
		_, err = engine.Register(right.Engine, def)
		require.NoError(w, err)
		wrong.run()
		gate := w.ledger.holds("w", "do-1")
		_, err = flow.Start(w.ctx(), "w", trip{})
		require.NoError(w, err)
		gate.arrived(w)
		require.NoError(w, engine.Signal(w.ctx(), right.Engine, "w", ballot, "aye"))
		sent := mail.n.Load()
		w.eventually("the worker has read its mail", func() bool { return mail.n.Load() >= sent+3 })
		gate.release()
		held := wrong.becomes("w", "it is held", isHeld)
		require.Equal(w, "s3", string(held.State))
		wrong.stop()
		right.run()
		_, err = right.Operate(w.ctx(), "w", engine.Order{Verb: engine.Resume})
		require.NoError(w, err)
		require.Equal(w, []string{"aye"}, right.ends("w", store.Completed).Data.Votes)
		require.Equal(w, []string{"do-1:DONE:1", "do-2:DONE:1"}, right.recorded("w"))
	})
}

// A rollback comes to a step that cannot be read: it is HELD before any undo runs,
// and goes on where it can be read.
func TestUnreadableStepIsNotUndone(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("vote")
		first, both, young := w.coded(w.aes("k1")), w.coded(w.aes("k2", "k1")), w.coded(w.aes("k2"))
		_, err := first.flows["vote"].Start(w.ctx(), "w", trip{Quorum: 2})
		require.NoError(w, err)
		first.run()
		first.becomes("w", "it waits", func(s engine.Snapshot[trip]) bool { return s.Awaits != "" })
		first.stop()
		require.NoError(w, engine.Signal(w.ctx(), both.Engine, "w", ballot, "aye"))
		both.run()
		both.becomes("w", "it has a vote", func(s engine.Snapshot[trip]) bool { return len(s.Data.Votes) == 1 && s.Awaits != "" })
		both.stop()

		require.NoError(w, young.Cancel(w.ctx(), "w", "enough"))
		young.run()
		held := young.becomes("w", "it is held", isHeld)
		require.Equal(w, `step open of workflow "w": value cannot be decoded here: it was encoded by aes-gcm, key k1`, held.Reason)
		young.stop()
		require.Zero(w, w.ledger.calls("w", "close"))
		_, err = both.Operate(w.ctx(), "w", engine.Order{Verb: engine.Retry})
		require.NoError(w, err)
		both.run()
		both.ends("w", store.Compensated)
		require.True(w, w.ledger.known("w", "close"))
	})
}

// Whoever has lost the key can still end a workflow, and make a tombstone of it.
func TestTerminateAndDeleteWithoutTheKey(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("vote")
		right, wrong := w.coded(w.aes("k1")), w.coded(w.aes("k2"))
		_, err := right.flows["vote"].Start(w.ctx(), "w", trip{Quorum: 1})
		require.NoError(w, err)
		done, err := wrong.Operate(w.ctx(), "w", engine.Order{Verb: engine.Terminate, Reason: "the key is lost"})
		require.NoError(w, err)
		require.Contains(w, done.Note, "its values cannot be decoded here")
		info, err := wrong.Get(w.ctx(), "w")
		require.NoError(w, err)
		require.Equal(w, "terminated by somebody: the key is lost", info.Reason)
		_, err = wrong.Operate(w.ctx(), "w", engine.Order{Verb: engine.Delete})
		require.NoError(w, err)
		require.Equal(w, store.Expired, wrong.get("w").Status)
	})
}

// A schedule whose data cannot be read says so and is put off; none of its slots is
// lost.
func TestUnreadableSchedule(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("single")
		right, wrong := w.coded(w.aes("k1")), w.coded(w.aes("k2"))
		right.schedule("single", "rounds", engine.ScheduleSpec{Every: slotEvery}, trip{Amount: 5})
		wrong.run()
		var info engine.ScheduleInfo
		w.eventually("it is put off", func() (ok bool) {
			var err error
			info, err = wrong.GetSchedule(w.ctx(), "rounds")
			return err == nil && info.Error != ""
		})
		require.Contains(w, info.Error, `schedule "rounds": value cannot be decoded here`)
		require.Empty(w, wrong.slots("rounds"))
		_, err := wrong.flows["single"].Schedule(w.ctx(), "rounds", engine.ScheduleSpec{Every: slotEvery}, trip{Amount: 5})
		require.ErrorIs(w, err, engine.ErrCodec)
		_, err = wrong.TriggerSchedule(w.ctx(), "rounds")
		require.ErrorIs(w, err, engine.ErrCodec)
		wrong.stop()
		id, err := right.TriggerSchedule(w.ctx(), "rounds")
		require.NoError(w, err)
		require.NoError(w, right.DeleteSchedule(w.ctx(), "rounds"))
		right.run()
		require.Equal(w, 5, right.ends(id, store.Completed).Data.Amount)
	})
}

func TestBadCodecName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "Caps", "a b", strings.Repeat("x", 33)} {
		_, err := engine.New(noStore{}, engine.Config{Codec: named(name)})
		require.ErrorContains(t, err, "config: Codec: its name")
	}
}

type noStore struct{ store.Store }

type named string

func (n named) Name() string                      { return string(n) }
func (named) Encode(plain []byte) ([]byte, error) { return plain, nil }
func (named) Decode(coded []byte) ([]byte, error) { return coded, nil }
