// Package engine runs workflows: it starts them, advances them one guarded
// transition at a time, recovers them from crashed workers, and lets programs
// steer and watch them.
//
//	st, err := sqlite.Open(ctx, "orders.db") // or postgres.Open(ctx, url), then st.Migrate(ctx)
//	eng, err := engine.New(st, engine.Config{})
//	orders, err := engine.Register(eng, shop.Workflow()) // *engine.Workflow[Order]
//	go eng.Run(ctx)
//	started, err := orders.Start(ctx, "order-42", order)
//	err = engine.Signal(ctx, eng, "order-42", Approval, Decision{Approved: true})
//	final, err := orders.Wait(ctx, "order-42")
//
// An engine without Run is a client: it starts, signals, cancels, reads and
// waits. Any number of processes may do either on one database.
//
// # What is guaranteed
//
//   - A workflow id is started once: concurrent and later starts with the same
//     input get the same workflow, with another input an [ErrConflict].
//   - Each transition is a compare-and-swap on (id, revision, owner), written
//     together with the result of the step that caused it and the mark of the
//     step that follows. So a step's result is recorded once, and never without
//     its transition.
//   - A body runs at least once, and in one attempt group always with the same
//     key. An InTx body's effect happens exactly once.
//   - When a worker dies, others go on with its workflows within one lease and
//     one poll.
//
// # Schedules
//
// [Workflow.Schedule] makes workers start a workflow at each slot of a cron
// expression or an interval. Every slot is a row in the schedule's ledger: fired,
// skipped, missed, or queued until an earlier run ends. That row, the schedule's
// next slot and the workflow are one transaction, a compare-and-swap on the
// schedule's revision: any number of workers start one run a slot.
//
// # Payloads
//
// Payloads are stored as JSON, or as [Config.Codec] encodes them: [Codec]. Package
// aescodec encrypts them. A workflow with a payload that a worker cannot decode is
// paused, with all that it has, until it is resumed by one that can.
//
// # Situations and errors
//
//	the id belongs to another input or definition   ErrConflict (*ConflictError)
//	the workflow ended long ago                     ErrExpired
//	there is no such workflow                       ErrNotFound
//	a message for a workflow that has ended         ErrEnded
//	a cancellation after the point of no return     ErrPastPivot
//	an id, input or value that cannot be used       ErrBadID, ErrBadInput, ErrTooLarge
//	a name that no registered definition has        ErrUnknownDefinition, ErrUnknownSignal
//	a schedule that could not fire                  ErrBadSchedule
//	a schedule's name that is not known, or taken   ErrScheduleNotFound, ErrScheduleExists
//	a graph that changed without a new version      ErrGraphChanged
//	a payload of a codec or key that is not here    ErrCodec (*CodecError)
//
// In a body, context.Cause tells why its context ended: [ErrTimeout],
// [ErrCancelAsked], [ErrLeaseLost], [ErrDraining].
//
// # The worker
//
// A worker is one incarnation of a process, with one lease. All it holds in
// memory and every decision it makes is in the reactor, which does no I/O:
// events go in, commands come out. The shell around it carries the commands
// out with goroutines, the store and the clock, so neither a body nor a slow
// database ever holds up a decision. To read the protocol, begin with
// reactor.go and go on by concern:
//
//	reactor_lease.go   joining, renewing, fencing itself, being buried
//	reactor_claim.go   claims, mail, takeover of the dead, reconciliation
//	reactor_work.go    which body runs when; suspects run alone
//	reactor_commit.go  batches, verdicts, lost answers
//	reactor_start.go   starts by this process
//	reactor_schedule.go when to look at schedules; schedule_decide.go says what becomes of their slots
//	reactor_drain.go   leaving in good order
//
// Why a stale worker cannot commit, and the rest of the argument, is in
// docs/decisions/0002-worker-protocol.md.
package engine
