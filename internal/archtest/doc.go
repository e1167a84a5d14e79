// Package archtest keeps the source tree in its agreed shape: which package may
// import which, and what every package must explain about itself.
//
// Its test reads all packages of the module, without compiling them, and fails
// with one line for each of these:
//
//   - a package that the table of rules ([Design]) does not know;
//   - an import, of the module's own packages or of somebody else's, that the
//     table does not allow. A package may also import what is allowed to the
//     packages it may import. The list of what test files may import on top of that
//     is one for all;
//   - cgo, since pawl must build without a C compiler;
//   - a package whose name says nothing, such as util;
//   - a package without a doc.go that holds its package comment (commands may have
//     theirs in any file);
//   - a package that users can import without a runnable example, that is
//     one with an "// Output:" comment;
//   - an exported name without a comment: types, functions, methods, methods of
//     interfaces, constants and variables. A comment on a group of constants or
//     variables counts for all of them.
//
// # When it fails
//
// A new package needs a row in rules.go. A new edge between packages changes the
// architecture: change the table on purpose, and say why in docs/decisions.
//
// Folders named testdata, hidden folders and nested modules are not read, nor
// are files that are excluded from every build by "//go:build ignore".
package archtest
