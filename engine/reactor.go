package engine

import (
	"cmp"
	"container/heap"
	"time"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// reactor is the worker without its I/O: all that it holds in memory and every
// decision it makes. Events go in, commands come out; time comes in with the
// events. One goroutine owns it. Everything it does follows from the events and
// their order alone, so that a run can be repeated.
//
// The methods live in one file a concern: lease, claim, work, commit, start,
// schedule, drain.
type reactor struct {
	cfg reactorConfig
	now time.Duration // since the shell began, by the monotonic clock
	seq int           // events so far
	out []command

	timers   timers
	timerSeq int

	// The lease.
	life      life
	me        store.WorkerID
	leaseEnd  time.Duration // when bodies must have stopped unless renewed
	renewing  bool
	nextRenew time.Duration
	late      bool // the last renewal came late: do not bury others for a round

	// What it holds.
	holds   map[string]*hold
	ready   []*hold // have something to do, wait for their turn
	working int     // jobs that the shell has not answered
	alone   *hold   // the suspect that nothing else is to be held beside, if any

	// Commits.
	queue      []*hold   // have a transition to write
	batches    [][]*hold // were split off a batch that failed, to be sent as they are
	committing int       // Commits and Starts under way
	startsLast bool      // the last of them was a Start

	// Starts.
	starts   []*startRequest
	starting int

	// Claims and the rest of the rounds.
	claiming  bool
	claimNext bool // look for work as soon as there is room
	wary      bool // the last claim brought a suspect: claim one by one
	queues    bool // there are queues, by the last that was heard
	queueNext bool // look into them as soon as there is room
	mailing   bool
	mailNext  bool // mail was hinted at while reading it
	mailAsked int  // the event at which the reading of it began
	sweeping  bool
	polling   bool            // a poll timer is set
	strangers map[string]bool // owned by the database's word, but not held, at the last reconciliation

	// Schedules.
	scheduling  bool
	scheduleSeq int // counts the timers for the next one that is due: the last one counts

	cleanSeq int // counts the timers for the next round of cleaning: the last one counts

	drain drain
}

// reactorConfig is what a reactor is built with. All durations are positive.
type reactorConfig struct {
	lease       time.Duration
	margin      time.Duration // bodies are stopped this long before the lease ends
	poll        time.Duration
	concurrency int // holds
	limits      store.Limits
	drain       time.Duration
	cut         time.Duration
	clean       time.Duration // between two rounds of cleaning up; 0 if nothing is to be
	discreet    bool          // texts that users have a part in are not logged

	// deadline is how long a workflow of a definition may take; 0 for ever.
	deadline func(d store.Def) time.Duration

	// spec returns a step or undo of a definition. It always gives the same
	// answer.
	spec func(d store.Def, name string) (step.Spec, bool)
}

// life is the state of the worker's own existence.
type life uint8

const (
	// unborn has no worker row yet, or no longer: it is about to join.
	unborn life = iota

	// alive holds a lease.
	alive

	// fenced has not managed to renew in time: it runs no body and claims
	// nothing, but keeps results, since nobody may have buried it.
	fenced

	// gone has left.
	gone
)

// hold is a workflow that this worker owns, as it is in memory.
type hold struct {
	id    string
	def   store.Def
	rev   int64 // as the database has it
	phase holdPhase

	parent string // the row that is told of its end; "" for nobody
	queued bool   // it has a slot of a queue

	cursor statemachine.Cursor   // as the database has it
	run    *statemachine.RunStep // the body to run next, if it is known already
	due    bool
	wakeAt time.Time
	inbox  []store.Message // not consumed
	seen   map[string]bool // ids of messages that are no longer fresh in the database
	taken  int             // the event at which it was adopted
	since  time.Duration   // when it became ready

	ends time.Duration // when its definition's deadline passes, by the reactor's clock; 0 for never

	heir *store.Claimed // a later claim of the same row; see adopt

	kept    worked  // the outcome that waits to be written, or whose writing is uncertain
	sends   int     // how often it was sent
	refused string  // why the database refused it for good
	unread  *unread // if its row cannot be read
	fails   int     // how often in a row the database could not be reached with it
}

// holdPhase says what a hold waits for.
type holdPhase uint8

const (
	holdReady      holdPhase = iota // in reactor.ready
	holdWorking                     // the shell is advancing it
	holdQueued                      // in reactor.queue, in a batch, or before its next try
	holdCommitting                  // a Commit with it is under way
	holdUnsure                      // a ReadBack of it is under way or about to be
	holdReleasing                   // a Release of it is under way
)

func newReactor(cfg reactorConfig) *reactor {
	return &reactor{cfg: cfg, holds: map[string]*hold{}, strangers: map[string]bool{}}
}

// handle takes in one event. Its commands come out of flush.
func (r *reactor) handle(now time.Duration, ev event) {
	r.now = now
	r.seq++
	r.runTimers()
	switch ev := ev.(type) {
	case evTick:
	case evJoined:
		r.joined(ev)
	case evRenewed:
		r.renewed(ev)
	case evClaimed:
		r.claimed(ev)
	case evLoaded:
		r.loaded(ev)
	case evMail:
		r.mail(ev)
	case evSwept:
		r.swept(ev)
	case evScheduled:
		r.scheduled(ev)
	case evCleaned:
		r.cleaned(ev)
	case evOwned:
		r.owned(ev)
	case evStart:
		r.starts = append(r.starts, ev.req)
	case evStarted:
		r.started(ev)
	case evWorked:
		r.worked(ev)
	case evCommitted:
		r.committed(ev)
	case evReadBack:
		r.readBack(ev)
	case evReleased:
		r.released(ev)
	case evQueued:
		r.claimedQueued(ev)
	case evHint:
		r.claimNext = true
		r.queueNext = r.queueNext || r.queues
		r.readMail()
	case evDrain:
		r.beginDrain()
	case evLeft:
		r.life = gone
		r.do(cmdStop{})
	}
}

// flush decides what can be sent now, and returns all commands since the last
// call. Call it once all events at hand are handled: what has gathered by then
// shares its commits.
func (r *reactor) flush() []command {
	r.checkLease()
	r.checkDrain()
	r.sendWork()
	if r.startsLast { // both share the store's committers, and neither may starve the other
		r.sendCommits()
		r.sendStarts()
	} else {
		r.sendStarts()
		r.sendCommits()
	}
	r.sendClaim()
	out := r.out
	r.out = nil
	return out
}

// nextTick returns when the reactor wants to be called even if nothing happens.
func (r *reactor) nextTick() time.Duration {
	next := r.now + time.Hour
	if len(r.timers) > 0 {
		next = min(next, r.timers[0].at)
	}
	if r.life == alive {
		next = min(next, r.leaseEnd)
	}
	return next
}

func (r *reactor) do(c command) { r.out = append(r.out, c) }

func (r *reactor) log(warn bool, msg string, args ...any) { r.do(cmdLog{warn, msg, args}) }

// current reports whether an answer belongs to this incarnation.
func (r *reactor) current(id store.WorkerID) bool { return id == r.me && r.life != gone }

// timer is something to be done at a time.
type timer struct {
	at  time.Duration
	seq int // keeps the order of equal times
	fn  func()
}

type timers []timer

func (t timers) Len() int { return len(t) }
func (t timers) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(t[i].at, t[j].at), cmp.Compare(t[i].seq, t[j].seq)) < 0
}
func (t timers) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)   { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

// after does fn once d has passed.
func (r *reactor) after(d time.Duration, fn func()) {
	r.timerSeq++
	heap.Push(&r.timers, timer{r.now + d, r.timerSeq, fn})
}

func (r *reactor) runTimers() {
	for len(r.timers) > 0 && r.timers[0].at <= r.now {
		heap.Pop(&r.timers).(timer).fn()
	}
}

// backoff is the pause before the nth try in a row to reach a database that
// does not answer.
func backoff(n int) time.Duration {
	return min(10*time.Millisecond<<min(max(n-1, 0), 10), time.Second)
}
