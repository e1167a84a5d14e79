// Package statemachine describes a workflow as a closed table of states, and
// says as one pure function what it does next.
//
// A [Definition] is data. What it may do can be validated, compared with an
// earlier version and drawn before a single workflow has started. [Compile]
// turns it into a [Machine], which has no type parameter: from there on data,
// inputs and results are bytes.
//
// [Machine.Next] is the whole semantics, rollback included: given where a
// workflow stands (a [Cursor]) and what has happened (an [Event]), it says
// where it stands now and what is to be done about it (the [Command]s). It
// knows no clock, no context, no chance and no I/O, so everything that can go
// wrong with ordering can be tested as a table. Package engine drives it.
package statemachine
