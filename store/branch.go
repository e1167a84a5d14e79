package store

import "strings"

// A workflow may work in several places at once. The workflow's own row is the
// root; each place beside it is a branch: a row of its own in the same table,
// claimed, leased, taken over and committed like any other. Its id is that of
// the root, a separator that no caller's id can hold, and the branch's path. So
// a root and its branches lie side by side in the order of ids, and in one
// bucket.

// branchSeparator parts a root's id from a branch's path. Ids hold no control
// characters, so in the order of bytes nothing but branches lies between an id
// and the id with a space after it.
const branchSeparator = "\x1f"

// BranchID is the id of the row of a branch.
func BranchID(root, path string) string { return root + branchSeparator + path }

// RootOf returns the id of the workflow that the row id belongs to: id itself
// unless it is a branch's.
func RootOf(id string) string { root, _, _ := strings.Cut(id, branchSeparator); return root }

// BranchOf returns the path of the branch whose row id is, or "" for a root.
func BranchOf(id string) string { _, path, _ := strings.Cut(id, branchSeparator); return path }

// FamilyEnd returns the first id beyond those of the root id and its branches:
// they are the ids from id up to, but not including, FamilyEnd(id).
func FamilyEnd(id string) string { return id + " " }
