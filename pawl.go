package pawl

import _ "embed"

// SchemaSQL is the whole schema in PostgreSQL, commented, in the schema named
// pawl. It equals what the migrations of package store/postgres make, and
// loading it into an empty database does the same as migrating it.
//
//go:embed schema.sql
var SchemaSQL string
