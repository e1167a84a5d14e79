//go:build race

package engine_test

// raced says that the race detector is on, which makes a SQLite that is Go code
// ten times as slow: scenarios that are about sheer numbers make do with fewer.
const raced = true
