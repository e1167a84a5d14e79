package postgres

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/store"
)

// maxBuckets is the most buckets a schema may have.
const maxBuckets = 1024

// dealSQL reads how many buckets the schema has.
const dealSQL = `SELECT buckets FROM {schema}.schema_info`

// buckets returns how many buckets the schema has. They never change, so they
// are asked for once.
func (s *Store) buckets(ctx context.Context) (int, error) {
	if n := s.deal.Load(); n > 0 {
		return int(n), nil
	}
	var n int32
	err := s.query(ctx, "read schema", statement{sql: s.sql.deal, read: func(rows pgx.Rows) error {
		return rows.Scan(&n)
	}})
	if err != nil {
		return 0, err
	}
	if n < 1 {
		return 0, fmt.Errorf("read schema: %w: %s", store.ErrSchemaMissing, migrateHint)
	}
	s.deal.Store(n)
	return int(n), nil
}

// bucketOf returns the bucket of a row: the FNV-1a hash of the id of the
// workflow that it belongs to, modulo their number. It is part of the schema:
// it must never change.
func bucketOf(id string, buckets int) int16 {
	if buckets == 1 {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(store.RootOf(id)))
	return int16(h.Sum32() % uint32(buckets))
}

// group is the part of a batch that lies in one bucket: indexes into the
// batch, in the order of their ids.
type group struct {
	bucket int16
	at     []int
}

// groups deals a batch of n by the ids of its parts, each group sorted by id
// and the groups by bucket: whoever locks rows in this order cannot deadlock
// with another who does.
func groups(n, buckets int, id func(int) string) []group {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	slices.SortFunc(all, func(a, b int) int { return strings.Compare(id(a), id(b)) })
	if buckets == 1 {
		return []group{{bucket: 0, at: all}}
	}
	byBucket := make(map[int16][]int)
	for _, i := range all {
		b := bucketOf(id(i), buckets)
		byBucket[b] = append(byBucket[b], i)
	}
	dealt := make([]group, 0, len(byBucket))
	for b, at := range byBucket {
		dealt = append(dealt, group{bucket: b, at: at})
	}
	slices.SortFunc(dealt, func(a, b group) int { return int(a.bucket) - int(b.bucket) })
	return dealt
}
