// Package statemachine describes a workflow as a closed table of states, and
// says as one pure function what it does next.
//
// # The table
//
// A [Definition] maps each state to what happens in it and where that leads:
//
//	Do(step, in, out).Then(next)                 run a step, merge its result into the data
//	If(cond, yes, no), Switch(pick, targets...)  choose at once, by the data
//	All(tasks...).Then(next)                     run several at the same time
//	Any(tasks...).Then(next)                     the same, and the first to be done counts
//	Each(items, step, merge).Then(next)          run one for each of many items
//	Sleep(duration).Then(next)                   let time pass
//	Await(signal, merge).Within(d, late).Then(next)
//	                                             wait for a message from outside, up to d
//	AwaitAny(On(signal, merge, next), ...).Node()
//	                                             wait for the first of several
//	Do(step, in, out).Then(next).Else(other)     go on by another way if the step fails
//
// It is data. What it may do can be validated, compared with an earlier version
// and drawn before a single workflow has started. [Definition.Compile] turns it
// into a [Machine], which has no type parameter: from there on data, inputs and
// results are bytes.
//
// # The function
//
// [Machine.Next] is the whole semantics, rollback included: given where a
// workflow stands (a [Cursor]) and what has happened (an [Event]), it says
// where it stands now and what is to be done about it (the [Command]s). It
// knows no clock, no context, no chance and no I/O, so everything that can go
// wrong with ordering can be tested as a table. Package engine drives it, and
// makes each cursor durable before it carries out the commands:
//
//	cursor, commands, err := machine.Next(cursor, event)
//
// A workflow goes through these phases:
//
//	                 +--------- retry, wake, signal ---------+
//	                 v                                       |
//	Started --> Running --- failed, sleeps, awaits ---> Waiting
//	                 |                                       |
//	                 +-- refused, exhausted, cancelled, -----+--> RollingBack --+
//	                 |   timed out                                              |
//	                 +-- a Completed end ---------------------------------------+--> Ended
//
// and is Held, in whichever of them it is, when it needs a person: what is
// marked has crashed its worker [MaxCrashes] times, an undo has failed for good,
// something has failed for good that the point of no return forbids to undo, or
// what follows cannot be computed or written down.
//
// # What the rollback undoes
//
// It undoes, newest first and one at a time, each step that has an undo and is
// done or may be. A step that was refused, or that ran in a transaction that is
// gone, has certainly had no effect and is left alone; a Call that was given up
// for any other reason is undone like those before it, and its undo is told
// that the outcome is not known. Once a pivot is passed nothing is undone, and
// [Definition.Validate] sees to it that no path behind one leads to a rollback.
//
// # Branches
//
// In a state of All each task is a branch: a [Cursor] of its own, which is told
// apart by its Branch and goes through the same function. It holds the input of
// its step in place of the data, so it needs nothing of the others, and no
// transition grows with their number. The workflow itself, the root, counts the
// branches that are open. A branch ends once its step has, well or not, and
// tells the root ([EndBranch], then [BranchEnded]); it undoes nothing. When the
// last has ended the root goes on: it merges the results, in the order of the
// tasks, or begins the rollback, which goes over the records of root and
// branches as over those of one row.
//
// In a state of [Any] the first branch that has succeeded wins; the root undoes what
// the others have done, and goes on.
//
// In a state of [Each] the branches are lanes, which work on one item after
// another: an item's end is a transition of its lane, and the root moves only
// when a lane ends.
//
// A state that runs a [Child] goes the same way: the child is another workflow,
// which the root starts ([StartChild]) and whose end it waits for
// ([ChildEnded]). The end is recorded as the outcome of a step, by the root, so
// that a rollback can undo it.
//
// # The attempt group
//
// A step's key names the workflow, the step and an attempt group. The group is
// 1, except in a state that can be entered again: there each entry is a new
// intent and begins a new group. Retries, crashes and changes of owner never do.
//
// # Caveats
//
// Functions of a definition (in, out, cond, pick, merge, duration) run inside
// Next and may run again with the same data; they must not do I/O or depend on
// the time. If one panics, Next says so with a [CodeError]. It cannot help
// against one that does not return.
//
// A [Machine] is safe for concurrent use, and Next never changes what a cursor
// refers to.
package statemachine
