package main

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/store"
)

// killTables say what was done to the workers, beside the engine's own tables.
var killTables = []string{`
	CREATE TABLE IF NOT EXISTS shop_kill (
		worker    TEXT   NOT NULL PRIMARY KEY,
		pid       BIGINT NOT NULL,
		killed_at BIGINT NOT NULL -- microseconds since 1970
	)`, `
	CREATE TABLE IF NOT EXISTS shop_orphan (
		order_id  TEXT   NOT NULL,
		worker    TEXT   NOT NULL, -- that owned the order when it was killed
		step      TEXT,            -- that was under way
		revision  BIGINT NOT NULL, -- of the workflow
		PRIMARY KEY (order_id, worker)
	)`,
}

func createKillTables(ctx context.Context, tx store.Tx) error {
	for _, table := range killTables {
		if _, err := tx.Exec(ctx, table); err != nil {
			return fmt.Errorf("create the tables of kills: %w", err)
		}
	}
	return nil
}

// noteKill writes down a kill, and which workflows the killed process owned. It
// is called once the process is gone, long before its lease is over.
func noteKill(ctx context.Context, tx store.Tx, schema, worker string, pid int, at time.Time) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO shop_kill (worker, pid, killed_at)
		VALUES ($1, $2, $3)`, worker, pid, at.UnixMicro())
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, fmt.Sprintf(`
		INSERT INTO shop_orphan (order_id, worker, step, revision)
		SELECT w.id, CAST($1 AS TEXT), w.step, w.revision
		FROM %s.workflow w
		WHERE w.owner = (
			SELECT k.id FROM %[1]s.worker k
			WHERE k.pid = $2
			ORDER BY k.started_at DESC
			LIMIT 1)`, schema), worker, pid)
	return err
}
