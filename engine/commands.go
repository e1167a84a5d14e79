package engine

import "github.com/pawlhq/pawl/store"

// command is something that the reactor asks of the shell. The shell carries
// each out without blocking the reactor, and answers with the event named.
type command interface{ isCommand() }

type (
	// cmdJoin begins a new incarnation with a fresh id: evJoined.
	cmdJoin struct{}

	// cmdRenew lengthens the lease: evRenewed.
	cmdRenew struct{}

	// cmdClaim claims up to limit workflows: evClaimed.
	cmdClaim struct{ limit int }

	// cmdClaimQueued claims up to limit workflows from queues: evQueued.
	cmdClaimQueued struct{ limit int }

	// cmdMail reads fresh messages of owned workflows: evMail.
	cmdMail struct{}

	// cmdSweep buries the dead and gives back what they owned: evSwept.
	cmdSweep struct{}

	// cmdSchedule decides about the schedules that are due: evScheduled.
	cmdSchedule struct{}

	// cmdOwned asks what the database says this worker owns: evOwned.
	cmdOwned struct{}

	// cmdLoad reads owned workflows: evLoaded.
	cmdLoad struct{ ids []string }

	// cmdStart inserts workflows: evStarted.
	cmdStart struct{ reqs []*startRequest }

	// cmdReply answers a start.
	cmdReply struct {
		req   *startRequest
		reply startReply
	}

	// cmdWork advances one workflow: evWorked.
	cmdWork struct{ job job }

	// cmdInterrupt cancels the context of a body, with a cause.
	cmdInterrupt struct {
		id    string
		cause error
	}

	// cmdCommit writes the kept transitions: evCommitted.
	cmdCommit struct {
		batch []*hold
		ts    []store.Transition
	}

	// cmdReadBack reads how workflows stand: evReadBack.
	cmdReadBack struct{ holds []*hold }

	// cmdRelease gives workflows back whose bodies have not begun: evReleased.
	cmdRelease struct {
		holds []*hold
		rs    []store.Released
	}

	// cmdTell tells OnStep of attempts, now durable.
	cmdTell struct{ events []StepEvent }

	// cmdHint tells other processes, and waiters of this one, of a topic.
	cmdHint struct{ topic store.Topic }

	// cmdLog writes a line for operators.
	cmdLog struct {
		warn bool
		msg  string
		args []any
	}

	// cmdClean makes and removes tombstones: evCleaned.
	cmdClean struct{}

	// cmdLeave buries this worker on its own wish: evLeft.
	cmdLeave struct{}

	// cmdStop ends the loop.
	cmdStop struct{}
)

func (cmdJoin) isCommand()        {}
func (cmdRenew) isCommand()       {}
func (cmdClaim) isCommand()       {}
func (cmdClaimQueued) isCommand() {}
func (cmdMail) isCommand()        {}
func (cmdSweep) isCommand()       {}
func (cmdSchedule) isCommand()    {}
func (cmdOwned) isCommand()       {}
func (cmdLoad) isCommand()        {}
func (cmdStart) isCommand()       {}
func (cmdReply) isCommand()       {}
func (cmdWork) isCommand()        {}
func (cmdInterrupt) isCommand()   {}
func (cmdCommit) isCommand()      {}
func (cmdReadBack) isCommand()    {}
func (cmdRelease) isCommand()     {}
func (cmdTell) isCommand()        {}
func (cmdHint) isCommand()        {}
func (cmdLog) isCommand()         {}
func (cmdClean) isCommand()       {}
func (cmdLeave) isCommand()       {}
func (cmdStop) isCommand()        {}
