// Package aescodec encrypts what users put into workflows: a [Codec] for
// engine.Config.Codec, of AES-256-GCM with a random nonce for each value.
//
//	codec, err := aescodec.New(aescodec.Keys{
//		Write:       "2026-12",
//		ByID:        map[string][]byte{"2026-12": key, "2026-06": before},
//		Fingerprint: fingerprint,
//	})
//	eng, err := engine.New(st, engine.Config{Codec: codec})
//
// # Keys
//
// Each value carries the id of its key in the clear. One key writes; all that are
// given read. To change keys, first give the new one to every process, workers and
// operators alike; then have it write; and take the old one away once nothing is left
// that it wrote: values are not written anew, so that is when the last workflow that
// it had a part in is a tombstone, and the last schedule that it wrote is made anew.
// A process without the key of a value does not run the workflow: it pauses it.
//
// Encrypt at most 2³² values with one key: the nonces are random, and beyond that the
// risk that two are alike is no longer negligible.
//
// The fingerprint key is one for all times. The database keeps, of each workflow's
// input, a keyed hash (HMAC-SHA-256) by which a second start is told from a
// conflicting one; with another key every repeated start would be a conflict. It
// reads nothing: who has it and the database can try out guesses of an input.
//
// # What it does not do
//
// It hides no names, lengths or times: ids, states, steps, signals, definitions and
// schedules are in the clear, so keep what is secret out of ids. It does not tie a
// value to its row: who can write to the database can put one value in the place of
// another. What a step writes into tables of its own is the step's.
package aescodec
