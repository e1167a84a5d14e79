package postgres

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/store"
)

const (
	// oldestServer is the first PostgreSQL that pawl is written for.
	oldestServer = 140000

	// transactionTimeoutServer is the first one that ends a transaction by
	// itself.
	transactionTimeoutServer = 170000

	// connectTimeout bounds one attempt to connect, unless the URL says
	// connect_timeout.
	connectTimeout = 5 * time.Second

	// openTimeout bounds Open as a whole.
	openTimeout = 15 * time.Second

	// acquireTimeout bounds the wait for a connection of the pool: an
	// exhausted pool answers store.ErrRetry instead of hanging.
	acquireTimeout = 10 * time.Second

	// defaultPool is the size of the pool, unless the URL says pool_max_conns.
	defaultPool = 10

	// committers is how many batches may usefully be under way at once.
	committers = 3

	// batchSize is how many transitions one statement takes.
	batchSize = 500
)

// Store keeps workflows in PostgreSQL. It fulfils [store.Store], and is safe
// for concurrent use.
type Store struct {
	pool    *pgxpool.Pool
	schema  string
	sql     texts
	version int // of the server, such as 150004
	wanted  int // the buckets of a schema that Migrate makes
	deal    atomic.Int32
	beat    *line
	closed  atomic.Bool
	gone    chan struct{} // closed by Close
}

var _ store.Store = (*Store)(nil)

// Open connects to the database of a URL that begins with postgres:// or
// postgresql:// and verifies, within 15 seconds, that a server answers which
// is not too old. It neither makes nor checks the schema: see [Store.Migrate]
// and [Store.Check].
//
// The URL may hold, beside what PostgreSQL itself understands, pool_max_conns
// and schema; an option beats the URL. It returns store.ErrBadURL,
// store.ErrBadSchemaName or, where no server answers, store.ErrRetry. No error
// ever holds the URL's password.
func Open(ctx context.Context, url string, opts ...Option) (*Store, error) {
	set := settings{buckets: 1}
	for _, o := range opts {
		o(&set)
	}
	config, schema, err := parseURL(url, set)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	if set.buckets < 1 || set.buckets > maxBuckets {
		return nil, fmt.Errorf("open database: %d buckets, want 1 to %d", set.buckets, maxBuckets)
	}

	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, translate("open database", err, unsent)
	}
	version, err := serverVersion(ctx, pool)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &Store{
		pool:    pool,
		schema:  schema,
		sql:     textsFor(schema),
		version: version,
		wanted:  set.buckets,
		beat:    newLine(config.ConnConfig),
		gone:    make(chan struct{}),
	}, nil
}

// serverVersion asks the server for its version and refuses one too old.
func serverVersion(ctx context.Context, pool *pgxpool.Pool) (int, error) {
	var text string
	if err := pool.QueryRow(ctx, "SHOW server_version_num").Scan(&text); err != nil {
		return 0, translate("open database", err, reading)
	}
	version, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("open database: read server version: %w", err)
	}
	return version, checkVersion(version)
}

// checkVersion refuses a server that is too old.
func checkVersion(version int) error {
	if version < oldestServer {
		return fmt.Errorf("open database: the server is PostgreSQL %d.%d, pawl needs %d or newer",
			version/10000, version%10000, oldestServer/10000)
	}
	return nil
}

// TxType returns pgx.Tx, which the body of a step may ask for.
func (s *Store) TxType() reflect.Type { return reflect.TypeFor[pgx.Tx]() }

// Limits says how many commits may usefully be under way at once, which is
// never more than the pool holds, and how many transitions fit one.
func (s *Store) Limits() store.Limits {
	return store.Limits{
		Committers: min(committers, int(s.pool.Config().MaxConns)),
		Batch:      batchSize,
	}
}

// Close waits for running calls and closes all connections. It may be called
// more than once.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	close(s.gone)
	s.beat.close()
	s.pool.Close()
	return nil
}

// acquire takes a connection out of the pool, or gives up after a while. The
// caller releases it.
func (s *Store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	if s.closed.Load() {
		return nil, store.ErrClosed
	}
	ctx, cancel := context.WithTimeout(ctx, acquireTimeout)
	defer cancel()
	return s.pool.Acquire(ctx)
}

// texts are the statements with the schema's name in place, formatted once.
type texts struct {
	start, existing                  string
	commit, spread, fence            string
	claim, ready, mail, load, owned  string
	join, renew, leave, giveBack     string
	bury, takeover, sweep, forget    string
	readBack, release                string
	send                             string
	get, ended, history, inbox, list string
	branches                         string
	workers                          string
	amended, requests, expire        string
	lead, expirable, forgetOld       string
	definitions, open                string
	beat, lastBeat, copySteps        string
	linedUp, lockQueue, claimQueued  string
	nextToken, ensureQueues          string
	setQueue, pauseQueue, queues     string
	putDefinition, fingerprint       string
	deal, info, applied              string

	createSchedule, getSchedule, listSchedules  string
	nextDue, dueSchedules                       string
	changeSchedule, deleteSchedule              string
	putSlot, takenSlot, lastSlots, slotsBetween string
	deleteSlots                                 string
}

// textsFor puts the quoted name of a schema into every statement.
func textsFor(schema string) texts {
	in := func(text string) string { return inSchema(text, schema) }
	return texts{
		start: in(startSQL), existing: in(existingSQL),
		commit: in(commitSQL), spread: in(spreadSQL), fence: in(fenceSQL),
		claim: in(claimSQL), ready: in(readySQL), mail: in(mailSQL), load: in(loadSQL), owned: in(ownedSQL),
		join: in(joinSQL), renew: in(renewSQL), leave: in(leaveSQL), giveBack: in(giveBackSQL),
		bury: in(burySQL), takeover: in(takeoverSQL), sweep: in(sweepSQL), forget: in(forgetSQL),
		readBack: in(readBackSQL), release: in(releaseSQL),
		send: in(sendSQL),
		get:  in(getSQL), ended: in(endedSQL), history: in(historySQL), inbox: in(inboxSQL), list: in(listSQL),
		branches: in(branchesSQL),
		workers:  in(workersSQL),
		amended:  in(amendedSQL), requests: in(requestsSQL), expire: in(expireSQL),
		lead: in(leadSQL), expirable: in(expirableSQL), forgetOld: in(forgetOldSQL),
		definitions: in(definitionsSQL), open: in(openSQL),
		beat: in(beatSQL), lastBeat: in(lastBeatSQL), copySteps: in(copyStepsSQL),
		linedUp: in(linedUpSQL), lockQueue: in(lockQueueSQL), claimQueued: in(claimQueuedSQL),
		nextToken: in(nextTokenSQL), ensureQueues: in(ensureQueuesSQL),
		setQueue: in(setQueueSQL), pauseQueue: in(pauseQueueSQL), queues: in(queuesSQL),
		putDefinition: in(putDefinitionSQL), fingerprint: in(fingerprintSQL),
		deal: in(dealSQL), info: in(infoSQL), applied: in(appliedSQL),

		createSchedule: in(createScheduleSQL), getSchedule: in(getScheduleSQL), listSchedules: in(listSchedulesSQL),
		nextDue: in(nextDueSQL), dueSchedules: in(dueSchedulesSQL),
		changeSchedule: in(changeScheduleSQL), deleteSchedule: in(deleteScheduleSQL),
		putSlot: in(putSlotSQL), takenSlot: in(takenSlotSQL), lastSlots: in(lastSlotsSQL), slotsBetween: in(slotsBetweenSQL),
		deleteSlots: in(deleteSlotsSQL),
	}
}

// inSchema puts the quoted name of a schema where a statement says {schema}.
func inSchema(text, schema string) string {
	return strings.ReplaceAll(text, "{schema}", pgx.Identifier{schema}.Sanitize())
}
