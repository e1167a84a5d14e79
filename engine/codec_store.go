package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlhq/pawl/store"
)

// codedStore is a store whose payloads go through a codec. Whatever is written is
// encoded; whatever is read is decoded, or left encoded where that fails: one value
// must not keep others of the same call from being read. The rest of the engine
// knows such a value by its first byte.
type codedStore struct {
	store.Store
	codec Codec
}

// withCodec returns st itself if there is no codec.
func withCodec(st store.Store, c Codec) store.Store {
	if c == nil {
		return st
	}
	return &codedStore{st, c}
}

// encoding and decoding return a visitor for one call.
func (s *codedStore) encoding() *visitor { return &visitor{turn: s.encode} }
func (s *codedStore) decoding() *visitor { return &visitor{turn: s.decode, reads: true} }

func (s *codedStore) encode(plain []byte) ([]byte, error) {
	if len(plain) == 0 || isCoded(plain) { // of a value that could not be read: as it was
		return plain, nil
	}
	body, err := s.codec.Encode(plain)
	if err != nil {
		return nil, fmt.Errorf("encode by %s: %w", s.codec.Name(), err)
	}
	v := codedValue{codec: s.codec.Name(), body: body}
	if k, ok := s.codec.(Keyed); ok {
		v.key = cutText(k.KeyOf(body), maxKeyBytes)
	}
	return v.bytes(), nil
}

// maxKeyBytes is the longest that a key's id may be.
const maxKeyBytes = 64

func (s *codedStore) decode(stored []byte) ([]byte, error) {
	v, ok := parseCoded(stored)
	if !ok || v.codec != s.codec.Name() {
		return stored, nil
	}
	plain, err := s.codec.Decode(v.body)
	switch {
	case errors.Is(err, store.ErrRetry):
		return nil, fmt.Errorf("decode by %s: %w", v.codec, err)
	case err != nil:
		return stored, nil
	}
	return plain, nil
}

// passingError makes an error of encoding one that a worker tries again: what it is about
// to write cannot be had a second time.
func passingError(err error) error {
	if err == nil || errors.Is(err, store.ErrRetry) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrRetry, err)
}

// Start implements store.Hot.
func (s *codedStore) Start(ctx context.Context, news []store.New) ([]store.StartResult, error) {
	v := s.encoding()
	news = v.news(news)
	if v.err != nil {
		return nil, v.err
	}
	return s.Store.Start(ctx, news)
}

// Commit implements store.Hot.
func (s *codedStore) Commit(ctx context.Context, w store.WorkerID, ts []store.Transition) ([]store.Verdict, error) {
	v := s.encoding()
	ts = slices.Clone(ts)
	for i := range ts {
		v.transition(&ts[i])
	}
	if v.err != nil {
		return nil, passingError(v.err)
	}
	return s.Store.Commit(ctx, w, ts)
}

// CommitTx implements store.Hot.
func (s *codedStore) CommitTx(ctx context.Context, w store.WorkerID, g store.Guard, limit time.Duration, body func(context.Context, store.Tx) (store.Transition, error)) (store.Verdict, error) {
	return s.Store.CommitTx(ctx, w, g, limit, func(ctx context.Context, tx store.Tx) (store.Transition, error) {
		t, err := body(ctx, tx)
		if err != nil {
			return t, err
		}
		v := s.encoding()
		v.transition(&t)
		return t, passingError(v.err)
	})
}

// Claim implements store.Hot.
func (s *codedStore) Claim(ctx context.Context, w store.WorkerID, defs []store.Def, limit int) ([]store.Claimed, error) {
	rows, err := s.Store.Claim(ctx, w, defs, limit)
	return decoded(s, rows, err, (*visitor).claimed)
}

// Mail implements store.Hot.
func (s *codedStore) Mail(ctx context.Context, w store.WorkerID) ([]store.Message, error) {
	ms, err := s.Store.Mail(ctx, w)
	return decoded(s, ms, err, (*visitor).message)
}

// Load implements store.Workers.
func (s *codedStore) Load(ctx context.Context, w store.WorkerID, ids []string) ([]store.Claimed, error) {
	rows, err := s.Store.Load(ctx, w, ids)
	return decoded(s, rows, err, (*visitor).claimed)
}

// StartTx implements store.Clients.
func (s *codedStore) StartTx(ctx context.Context, tx store.Tx, n store.New) (store.StartResult, error) {
	v := s.encoding()
	v.place(&n.Place)
	if v.err != nil {
		return store.StartResult{}, v.err
	}
	return s.Store.StartTx(ctx, tx, n)
}

// Send implements store.Clients.
func (s *codedStore) Send(ctx context.Context, ms []store.Message) ([]store.SendResult, error) {
	v := s.encoding()
	ms = v.messages(ms)
	if v.err != nil {
		return nil, v.err
	}
	return s.Store.Send(ctx, ms)
}

// Get implements store.Clients.
func (s *codedStore) Get(ctx context.Context, id string) (store.Workflow, error) {
	w, err := s.Store.Get(ctx, id)
	return decodedOne(s, w, err, (*visitor).workflow)
}

// Ended implements store.Clients.
func (s *codedStore) Ended(ctx context.Context, ids []string) (ended []store.Workflow, missing []string, err error) {
	ended, missing, err = s.Store.Ended(ctx, ids)
	ended, err = decoded(s, ended, err, (*visitor).workflow)
	return ended, missing, err
}

// History implements store.Clients.
func (s *codedStore) History(ctx context.Context, id string) ([]store.StepRecord, error) {
	recs, err := s.Store.History(ctx, id)
	return decoded(s, recs, err, (*visitor).step)
}

// Inbox implements store.Clients.
func (s *codedStore) Inbox(ctx context.Context, id string) ([]store.Message, error) {
	ms, err := s.Store.Inbox(ctx, id)
	return decoded(s, ms, err, (*visitor).message)
}

// List implements store.Clients.
func (s *codedStore) List(ctx context.Context, q store.Query) ([]store.Workflow, error) {
	rows, err := s.Store.List(ctx, q)
	return decoded(s, rows, err, (*visitor).workflow)
}

// Amend implements store.Operations.
func (s *codedStore) Amend(ctx context.Context, t store.Transition, r store.Request) (store.Verdict, error) {
	v := s.encoding()
	v.transition(&t)
	v.request(&r)
	if v.err != nil {
		return store.Lost, v.err
	}
	return s.Store.Amend(ctx, t, r)
}

// Requests implements store.Operations.
func (s *codedStore) Requests(ctx context.Context, id string) ([]store.Request, error) {
	rs, err := s.Store.Requests(ctx, id)
	return decoded(s, rs, err, (*visitor).request)
}

// CreateSchedule implements store.Schedules.
func (s *codedStore) CreateSchedule(ctx context.Context, sch store.Schedule) error {
	v := s.encoding()
	v.schedule(&sch)
	if v.err != nil {
		return v.err
	}
	return s.Store.CreateSchedule(ctx, sch)
}

// GetSchedule implements store.Schedules.
func (s *codedStore) GetSchedule(ctx context.Context, name string) (store.Schedule, error) {
	sch, err := s.Store.GetSchedule(ctx, name)
	return decodedOne(s, sch, err, (*visitor).schedule)
}

// ListSchedules implements store.Schedules.
func (s *codedStore) ListSchedules(ctx context.Context, after string, limit int) ([]store.Schedule, error) {
	all, err := s.Store.ListSchedules(ctx, after, limit)
	return decoded(s, all, err, (*visitor).schedule)
}

// DueSchedules implements store.Schedules.
func (s *codedStore) DueSchedules(ctx context.Context, definitions []string, limit int) (store.DueSchedules, error) {
	due, err := s.Store.DueSchedules(ctx, definitions, limit)
	due.Due, err = decoded(s, due.Due, err, (*visitor).schedule)
	return due, err
}

// ChangeSchedule implements store.Schedules.
func (s *codedStore) ChangeSchedule(ctx context.Context, c store.ScheduleChange) (store.Verdict, error) {
	v := s.encoding()
	v.scheduleState(&c.ScheduleState)
	c.Slots = slices.Clone(c.Slots)
	for i := range c.Slots {
		if start := c.Slots[i].Start; start != nil {
			n := *start
			v.place(&n.Place)
			c.Slots[i].Start = &n
		}
	}
	if v.err != nil {
		return store.Lost, v.err
	}
	return s.Store.ChangeSchedule(ctx, c)
}

// ClaimQueued implements store.Queues.
func (s *codedStore) ClaimQueued(ctx context.Context, w store.WorkerID, defs []store.Def, limit int) (store.QueueClaim, error) {
	c, err := s.Store.ClaimQueued(ctx, w, defs, limit)
	c.Rows, err = decoded(s, c.Rows, err, (*visitor).claimed)
	return c, err
}

// SetQueue implements store.Queues.
func (s *codedStore) SetQueue(ctx context.Context, q store.Queue) error {
	v := s.encoding()
	v.queue(&q)
	if v.err != nil {
		return v.err
	}
	return s.Store.SetQueue(ctx, q)
}

// PauseQueue implements store.Queues.
func (s *codedStore) PauseQueue(ctx context.Context, name, note string) error {
	v := s.encoding()
	v.text(&note)
	if v.err != nil {
		return v.err
	}
	return s.Store.PauseQueue(ctx, name, note)
}

// Queues implements store.Queues.
func (s *codedStore) Queues(ctx context.Context) ([]store.QueueState, error) {
	all, err := s.Store.Queues(ctx)
	return decoded(s, all, err, func(v *visitor, q *store.QueueState) { v.queue(&q.Queue) })
}

// SendTx implements store.Clients.
func (s *codedStore) SendTx(ctx context.Context, tx store.Tx, m store.Message) (store.SendResult, error) {
	v := s.encoding()
	v.message(&m)
	if v.err != nil {
		return 0, v.err
	}
	return s.Store.SendTx(ctx, tx, m)
}

// Fork implements store.Forks.
func (s *codedStore) Fork(ctx context.Context, f store.Fork) (store.StartResult, error) {
	v := s.encoding()
	v.fork(&f)
	if v.err != nil {
		return store.StartResult{}, v.err
	}
	return s.Store.Fork(ctx, f)
}

// Beat implements store.Progress.
func (s *codedStore) Beat(ctx context.Context, w store.WorkerID, g store.Guard, key string, progress []byte) (store.Verdict, error) {
	v := s.encoding()
	v.bytes(&progress)
	if v.err != nil {
		return store.Lost, v.err
	}
	return s.Store.Beat(ctx, w, g, key, progress)
}

// LastBeat implements store.Progress.
func (s *codedStore) LastBeat(ctx context.Context, id, key string) ([]byte, error) {
	progress, err := s.Store.LastBeat(ctx, id, key)
	if err != nil || len(progress) == 0 {
		return progress, err
	}
	v := s.decoding()
	v.bytes(&progress)
	if v.err == nil && isCoded(progress) {
		return nil, codecErrorOf(ofWorkflow(id), progress)
	}
	return progress, v.err
}

// decoded decodes what a call has returned.
func decoded[T any](s *codedStore, rows []T, err error, visit func(*visitor, *T)) ([]T, error) {
	if err != nil {
		return rows, err
	}
	v := s.decoding()
	for i := range rows {
		visit(v, &rows[i])
	}
	return rows, v.err
}

func decodedOne[T any](s *codedStore, row T, err error, visit func(*visitor, *T)) (T, error) {
	rows, err := decoded(s, []T{row}, err, visit)
	return rows[0], err
}
