package bank

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"

	"github.com/ncruces/go-sqlite3/driver"
)

const tables = `
	CREATE TABLE IF NOT EXISTS request (
		n        INTEGER PRIMARY KEY,
		path     TEXT    NOT NULL,
		key      TEXT    NOT NULL,
		order_id TEXT    NOT NULL,
		caller   TEXT    NOT NULL, -- the request's User-Agent
		came_at  INTEGER NOT NULL  -- microseconds since 1970
	);
	CREATE INDEX IF NOT EXISTS request_key ON request (key);

	-- The first answer to each key.
	CREATE TABLE IF NOT EXISTS answer (
		key     TEXT    PRIMARY KEY,
		request TEXT    NOT NULL, -- what was asked
		status  INTEGER NOT NULL,
		body    TEXT    NOT NULL
	);

	-- What the bank did. A charge's n is its id.
	CREATE TABLE IF NOT EXISTS effect (
		n        INTEGER PRIMARY KEY,
		kind     TEXT    NOT NULL, -- charge, refund or void
		key      TEXT    NOT NULL, -- of the request; of the voided charge
		order_id TEXT    NOT NULL,
		caller   TEXT    NOT NULL,
		card     TEXT    NOT NULL,
		charge   INTEGER NOT NULL, -- that was refunded; else 0
		cents    INTEGER NOT NULL,
		done_at  INTEGER NOT NULL  -- microseconds since 1970
	);
	CREATE INDEX IF NOT EXISTS effect_key    ON effect (key);
	CREATE INDEX IF NOT EXISTS effect_charge ON effect (charge);`

// OpenBooks opens a bank's file, and creates it if it is not there. Any number
// of processes may have it open. Use it to read: tables request and effect say
// what the bank was asked and what it did.
func OpenBooks(ctx context.Context, path string) (*sql.DB, error) {
	q := url.Values{
		"_txlock": {"immediate"},
		"_pragma": {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)"},
	}
	db, err := driver.Open("file:" + url.PathEscape(path) + "?" + q.Encode())
	if err != nil {
		return nil, fmt.Errorf("open books %q: %w", path, err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, tables); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("open books %q: %w", path, err)
	}
	return db, nil
}
