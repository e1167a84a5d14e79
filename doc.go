// Package pawl is the root of a durable workflow and saga engine that keeps its
// state in the user's own database.
//
// A pawl is the catch on a ratchet: the wheel clicks forward and cannot slip
// back. A workflow is a state machine whose every click is one guarded
// compare-and-swap, so a retry, a crash, a paused process or a doubled request
// never applies an effect twice and never loses one.
//
// # Where to begin
//
//   - package step: the units of work, their guarantees and their keys
//   - package statemachine: a workflow's definition, compiled and checked
//   - package engine: to start, signal, watch and run workflows
//   - package engine/daemon: a whole program around them
//   - packages store/postgres and store/sqlite: the databases
//
// This package itself holds one thing: [SchemaSQL], the schema in PostgreSQL,
// to be read, reviewed or put under the care of a migration tool of one's own.
package pawl
