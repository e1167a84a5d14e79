package engine

import (
	"math"
	"time"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
)

// event is something that the shell tells the reactor.
type event interface{ isEvent() }

type (
	// evTick says that the time has come that nextTick asked for.
	evTick struct{}

	// evJoined answers cmdJoin.
	evJoined struct {
		id     store.WorkerID
		sentAt time.Duration
		err    error
	}

	// evRenewed answers cmdRenew.
	evRenewed struct {
		id     store.WorkerID
		sentAt time.Duration
		alive  bool
		err    error
	}

	// evClaimed answers cmdClaim, and cmdLoad as far as rows are concerned.
	evClaimed struct {
		id    store.WorkerID
		limit int
		rows  []store.Claimed
		err   error
	}

	// evQueued answers cmdClaimQueued.
	evQueued struct {
		id    store.WorkerID
		limit int
		claim store.QueueClaim
		err   error
	}

	// evLoaded answers cmdLoad.
	evLoaded struct {
		id   store.WorkerID
		rows []store.Claimed
		err  error
	}

	// evMail answers cmdMail.
	evMail struct {
		id   store.WorkerID
		msgs []store.Message
		err  error
	}

	// evSwept answers cmdSweep.
	evSwept struct {
		buried   int
		released int
		err      error
	}

	// evScheduled answers cmdSchedule.
	evScheduled struct {
		round scheduleRound
		err   error
	}

	// evCleaned answers cmdClean.
	evCleaned struct {
		id    store.WorkerID
		round cleanRound
		err   error
	}

	// evOwned answers cmdOwned.
	evOwned struct {
		id  store.WorkerID
		pos []store.Position
		err error
	}

	// evStart brings a start by this process's own client.
	evStart struct{ req *startRequest }

	// evStarted answers cmdStart.
	evStarted struct {
		id      store.WorkerID
		reqs    []*startRequest
		results []store.StartResult
		err     error
	}

	// evWorked answers cmdWork.
	evWorked struct {
		id  store.WorkerID
		job job
		out worked
	}

	// evCommitted answers cmdCommit.
	evCommitted struct {
		id       store.WorkerID
		batch    []*hold
		verdicts []store.Verdict
		err      error
	}

	// evReadBack answers cmdReadBack.
	evReadBack struct {
		id    store.WorkerID
		holds []*hold
		pos   []store.Position
		err   error
	}

	// evReleased answers cmdRelease.
	evReleased struct {
		id    store.WorkerID
		holds []*hold
		err   error
	}

	// evHint says that somebody has told of new work or mail.
	evHint struct{}

	// evDrain says that Run's context is done.
	evDrain struct{}

	// evLeft answers cmdLeave.
	evLeft struct{ err error }
)

func (evTick) isEvent()      {}
func (evJoined) isEvent()    {}
func (evRenewed) isEvent()   {}
func (evClaimed) isEvent()   {}
func (evQueued) isEvent()    {}
func (evLoaded) isEvent()    {}
func (evMail) isEvent()      {}
func (evSwept) isEvent()     {}
func (evScheduled) isEvent() {}
func (evCleaned) isEvent()   {}
func (evOwned) isEvent()     {}
func (evStart) isEvent()     {}
func (evStarted) isEvent()   {}
func (evWorked) isEvent()    {}
func (evCommitted) isEvent() {}
func (evReadBack) isEvent()  {}
func (evReleased) isEvent()  {}
func (evHint) isEvent()      {}
func (evDrain) isEvent()     {}
func (evLeft) isEvent()      {}

// job is what the shell needs to advance one workflow by one transition. It
// shares nothing with the reactor that either of them changes.
type job struct {
	id      string
	def     store.Def
	rev     int64
	parent  string // the row that is told of the end; "" for nobody
	cursor  statemachine.Cursor
	run     *statemachine.RunStep // the body to run; nil to look at what has happened
	due     bool                  // its wake time has come
	left    time.Duration         // until its deadline, when the job was made; noDeadline for never
	wakeAt  time.Time
	inbox   []store.Message
	unseen  []string // ids of those messages that are still fresh in the database
	refused string   // why the database refused the last transition for good; "" if it did not
	unread  *unread  // if its row cannot be read
}

// noDeadline is the time left of a workflow that may take for ever.
const noDeadline = time.Duration(math.MaxInt64)

// worked is what came of a job.
type worked struct {
	cursor     statemachine.Cursor
	transition store.Transition
	follow     follow
	events     []StepEvent // to be told once durable
	stuck      bool        // nothing has come of it but that a person must look

	// inTx says that the transition was given to CommitTx already: then verdict
	// and err say what became of it, and the batch has no part in it.
	inTx    bool
	verdict store.Verdict
	err     error
}

// startRequest is one start on its way through the reactor.
type startRequest struct {
	n       newWorkflow
	reply   chan startReply // takes one reply without blocking
	retried bool            // an earlier insert may have been applied
	fails   int             // how often in a row the database could not be reached
	owner   store.WorkerID  // what the insert under way says
}

type startReply struct {
	res store.StartResult
	err error
}
