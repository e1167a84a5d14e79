package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/postgres"
	"github.com/pawlhq/pawl/store/sqlite"
)

// world is what a scenario happens in: a database of its own, the ledger, and
// whatever engines and processes the test puts there. Once the test is over it
// is looked at whether everything is as it must always be: see finish.
type world struct {
	*testing.T
	url    string
	lease  time.Duration // of the workers
	poll   time.Duration
	only   []string // the definitions that engines and processes know; all if empty
	ledger *ledger
	site   *site
	st     store.Store // the test's own look at the database

	mu      sync.Mutex
	starts  map[string]startAgain
	closing []func() error
}

// startAgain repeats the start of a workflow.
type startAgain struct {
	flow string
	data trip
}

// slack is what a noisy machine may add to a time that the engine promises.
const slack = 2 * time.Second

// eachStore runs a scenario on SQLite and on PostgreSQL, in parallel.
func eachStore(t *testing.T, run func(w *world)) {
	t.Parallel()
	onSQLite(t, run)
	onPostgres(t, run)
}

func onSQLite(t *testing.T, run func(w *world)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		run(newWorld(t, "sqlite:"+filepath.Join(t.TempDir(), "pawl.db")))
	})
}

func onPostgres(t *testing.T, run func(w *world)) {
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		run(newWorld(t, pgtest.URL(t)))
	})
}

// newWorld gives the goroutine of the test a label, which all goroutines
// inherit that come of it: in the end none may be left. So it is called after
// whatever may outlive the test.
func newWorld(t *testing.T, url string) *world {
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(testLabel, t.Name())))
	w := &world{T: t, url: url, lease: 30 * time.Second, poll: 150 * time.Millisecond, ledger: newLedger(), starts: map[string]startAgain{}}
	w.site = newSite(w.ledger.server.URL)
	t.Cleanup(w.finish)
	w.st = w.open()
	return w
}

// knows says which definitions the scenario is about. To register the others
// would only take time.
func (w *world) knows(definitions ...string) { w.only = definitions }

// ctx bounds a call of the test's.
func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	w.Cleanup(cancel)
	return ctx
}

// open gives one more handle on the database, as another process would have.
func (w *world) open() store.Store { w.Helper(); return w.openAt(w.url) }

func (w *world) openAt(url string) store.Store {
	w.Helper()
	st, err := openStore(w.ctx(), url)
	require.NoError(w, err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closing = append(w.closing, st.Close)
	return st
}

func openStore(ctx context.Context, url string) (store.Store, error) {
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		return sqlite.Open(ctx, path)
	}
	st, err := postgres.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	if _, err := st.Migrate(ctx); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return st, nil
}

// isPostgres reports which store the scenario runs on.
func (w *world) isPostgres() bool { return !strings.HasPrefix(w.url, "sqlite:") }

// withParameter is a URL with one more parameter.
func withParameter(text, name, value string) string {
	u, err := url.Parse(text)
	if err != nil {
		panic(err)
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}

// node is one engine in the test's own process.
type node struct {
	*engine.Engine
	w     *world
	st    store.Store
	flows flows
	log   *logs
	steps *stepLog

	stopping context.CancelFunc
	ended    chan error // of Run; nil while it does not work
}

// nodeOptions tune a node. Its zero value is a client or worker like any other.
type nodeOptions struct {
	wrap   func(store.Store) store.Store // between the engine and the database
	tune   func(*engine.Config)
	only   []string // the definitions that it knows, if not those of its world
	pool   int      // how many connections it may have, where the store has a pool
	shared bool     // it uses the test's own handle on the database
}

// client is an engine that does not work.
func (w *world) client(opts ...nodeOptions) *node {
	w.Helper()
	var o nodeOptions
	if len(opts) > 0 {
		o = opts[0]
	}
	n := &node{w: w, log: newLogs(), steps: &stepLog{}}
	switch {
	case o.shared:
		n.st = w.st
	case w.isPostgres() && o.pool > 0:
		n.st = w.openAt(withParameter(w.url, "pool_max_conns", strconv.Itoa(o.pool)))
	default:
		n.st = w.open()
	}
	if o.wrap != nil {
		n.st = o.wrap(n.st)
	}
	cfg := engine.Config{
		Logger: slog.New(n.log.handler()), Lease: w.lease, Poll: w.poll, Concurrency: 16,
		DrainTimeout: 5 * time.Second, CutTimeout: 2 * time.Second, OnStep: n.steps.add,
	}
	if o.tune != nil {
		o.tune(&cfg)
	}
	var err error
	n.Engine, err = engine.New(n.st, cfg)
	require.NoError(w, err)
	if o.only == nil {
		o.only = w.only
	}
	n.flows, err = w.site.register(n.Engine, o.only...)
	require.NoError(w, err)
	return n
}

// worker is an engine that works until it is stopped, at the latest when the
// test is over.
func (w *world) worker(opts ...nodeOptions) *node {
	w.Helper()
	n := w.client(opts...)
	n.run()
	return n
}

func (n *node) run() {
	ctx, cancel := context.WithCancel(context.Background())
	n.stopping, n.ended = cancel, make(chan error, 1)
	go func() { n.ended <- n.Run(ctx) }()
	n.w.Cleanup(n.stop)
}

// stop drains the worker and waits until it has.
func (n *node) stop() {
	if n.ended == nil {
		return
	}
	n.stopping()
	select {
	case err := <-n.ended:
		require.NoError(n.w, err)
	case <-time.After(patience):
		n.w.Errorf("a worker does not stop")
	}
	n.ended = nil
}

// start starts a workflow of the named definition, and remembers how.
func (n *node) start(flow, id string, data trip) engine.Started {
	n.w.Helper()
	s, err := n.flows[flow].Start(n.w.ctx(), id, data)
	require.NoError(n.w, err)
	n.w.remember(flow, id, data)
	return s
}

func (w *world) remember(flow, id string, data trip) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.starts[id] = startAgain{flow, data}
}

// forget leaves a workflow out of the duplicate starts at the end: its answer is
// another by then, and is meant to be.
func (w *world) forget(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.starts, id)
}

// wait returns a workflow once it has ended.
func (n *node) wait(id string) engine.Snapshot[trip] {
	n.w.Helper()
	info, err := n.Wait(n.w.ctx(), id)
	require.NoError(n.w, err)
	return n.w.decode(info)
}

// ends waits for the end of a workflow, which must be that one.
func (n *node) ends(id string, want store.Status) engine.Snapshot[trip] {
	n.w.Helper()
	s := n.wait(id)
	require.Equal(n.w, want, s.Status, "%s: %s (%s)", id, s.Reason, s.Cause)
	return s
}

// get returns a workflow as it stands.
func (n *node) get(id string) engine.Snapshot[trip] {
	n.w.Helper()
	info, err := n.Get(n.w.ctx(), id)
	require.NoError(n.w, err)
	return n.w.decode(info)
}

// becomes waits until a workflow stands as ok says.
func (n *node) becomes(id, what string, ok func(engine.Snapshot[trip]) bool) engine.Snapshot[trip] {
	n.w.Helper()
	var s engine.Snapshot[trip]
	n.w.eventually(what, func() bool { s = n.get(id); return ok(s) })
	return s
}

// decode reads the data of a workflow, whatever its definition.
func (w *world) decode(info engine.Info) engine.Snapshot[trip] {
	w.Helper()
	s := engine.Snapshot[trip]{Info: info}
	if info.Status == store.Expired {
		return s
	}
	require.NoError(w, json.Unmarshal(info.Raw, &s.Data))
	return s
}

// eventually polls what another worker or process is about to do.
func (w *world) eventually(what string, ok func() bool) {
	w.Helper()
	require.Eventually(w, ok, patience, 5*time.Millisecond, what)
}

// recorded returns the recorded steps of a workflow as "name:STATUS:attempts".
func (n *node) recorded(id string) []string {
	n.w.Helper()
	steps, err := n.Steps(n.w.ctx(), id)
	require.NoError(n.w, err)
	var list []string
	for _, s := range steps {
		list = append(list, fmt.Sprintf("%s:%s:%d", s.Step, s.Status, s.Attempt))
	}
	return list
}

// inTx runs fn in a transaction of the user's, which is committed if fn says so.
func (w *world) inTx(fn func(ctx context.Context, tx store.Tx) (commit bool)) {
	w.Helper()
	ctx := w.ctx()
	if !w.isPostgres() {
		tx, err := w.st.(*sqlite.Store).DB().BeginTx(ctx, nil)
		require.NoError(w, err)
		defer tx.Rollback() //nolint:errcheck // does nothing after the commit
		if fn(ctx, sqlite.Tx(tx)) {
			require.NoError(w, tx.Commit())
		}
		return
	}
	conn, err := pgx.Connect(ctx, w.url)
	require.NoError(w, err)
	defer conn.Close(ctx) //nolint:errcheck // nothing to save
	tx, err := conn.Begin(ctx)
	require.NoError(w, err)
	if fn(ctx, postgres.Tx(tx)) {
		require.NoError(w, tx.Commit(ctx))
	}
}

// exec runs a statement of the user's.
func (w *world) exec(sql string, args ...any) {
	w.Helper()
	w.inTx(func(ctx context.Context, tx store.Tx) bool {
		_, err := tx.Exec(ctx, sql, args...)
		require.NoError(w, err)
		return true
	})
}

// accounts makes the accounts a and b with 1000 each.
func (w *world) accounts() {
	w.Helper()
	w.exec(`CREATE TABLE account (id VARCHAR(8) PRIMARY KEY, balance BIGINT NOT NULL)`)
	w.exec(`INSERT INTO account (id, balance) VALUES ('a', 1000), ('b', 1000)`)
}

// balances returns what a and b hold.
func (w *world) balances() (a, b int) {
	w.Helper()
	w.inTx(func(ctx context.Context, tx store.Tx) bool {
		for id, balance := range map[string]*int{"a": &a, "b": &b} {
			require.NoError(w, tx.QueryRow(ctx, `SELECT balance FROM account WHERE id = $1`, id).Scan(balance))
		}
		return false
	})
	return a, b
}

// leaseOver lets the lease of a worker run out now.
func (w *world) leaseOver(worker string) {
	w.Helper()
	id, err := uuid.Parse(worker)
	require.NoError(w, err)
	if w.isPostgres() {
		w.exec(`UPDATE pawl.worker SET expires_at = now() - interval '1 second' WHERE id = $1`, id.String())
	} else {
		w.exec(`UPDATE worker SET expires_at = 0 WHERE id = $1`, id[:])
	}
}

// due lets the time come now that a workflow waits for.
func (w *world) due(id string) {
	w.Helper()
	if w.isPostgres() {
		w.exec(`UPDATE pawl.workflow SET wake_at = now() WHERE id = $1`, id)
	} else {
		w.exec(`UPDATE workflow SET wake_at = $2 WHERE id = $1`, id, time.Now().UnixMicro())
	}
}

// testLabel names the label by which the goroutines of a test are known.
const testLabel = "scenario"

// leftBehind returns the stacks of the goroutines that come of this test. Its own
// is left out, and what waits for a server that it has restarted.
func leftBehind(name string) []string {
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		return []string{err.Error()}
	}
	var left []string
	for _, stack := range strings.Split(all.String(), "\n\n") {
		mine := strings.Contains(stack, fmt.Sprintf("%q:%q", testLabel, name))
		if mine && !strings.Contains(stack, "leftBehind") && !strings.Contains(stack, "pgtest.") {
			left = append(left, stack)
		}
	}
	return left
}
