package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// Creating a database writes about 300 files, and dropping it removes them,
// which some file systems answer with creations that take several times as long.
// So where somebody drops the databases in the end (Main does, and so does the
// end of a server that this process started), one that its test no longer needs
// is emptied and lent to the next test, under another name: a
// program that outlives its test does not find it again. One that
// can't be made as good as new is dropped.

// spares are the emptied databases of this process.
var spares struct {
	mu    sync.Mutex
	names []string
}

// underMain is set while Main runs the tests, and drops the spares at their end.
var underMain atomic.Bool

// takeSpare returns the name of an emptied database, or "" if there is none.
func takeSpare() string {
	spares.mu.Lock()
	defer spares.mu.Unlock()
	last := len(spares.names) - 1
	if last < 0 {
		return ""
	}
	name := spares.names[last]
	spares.names = spares.names[:last]
	return name
}

// keepSpare empties a database, and keeps it for another test if it is then like
// a new one. If it isn't kept, or an error comes back, it still exists under the
// name that is returned.
func keepSpare(ctx context.Context, server *url.URL, name string) (now string, kept bool, err error) {
	now = databaseName("spare")
	if err := rename(ctx, server, name, now); err != nil {
		return name, false, err
	}
	conn, err := pgx.Connect(ctx, withDatabase(server, now))
	if err != nil {
		return now, false, err
	}
	kept, err = wipe(ctx, conn)
	if err := errors.Join(err, conn.Close(ctx)); err != nil || !kept {
		return now, false, err
	}
	spares.mu.Lock()
	defer spares.mu.Unlock()
	spares.names = append(spares.names, now)
	return now, true, nil
}

// dropSpares drops all databases that are kept.
func dropSpares(ctx context.Context, server *url.URL) error {
	var failed []error
	for name := takeSpare(); name != ""; name = takeSpare() {
		failed = append(failed, drop(ctx, server, name))
	}
	return errors.Join(failed...)
}

// rename ends all sessions of a database and gives it another name.
func rename(ctx context.Context, server *url.URL, from, to string) error {
	conn, err := pgx.Connect(ctx, server.String())
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `
		SELECT pg_terminate_backend(pid, 10000)
		FROM   pg_stat_activity
		WHERE  datname = $1`, from)
	if err == nil {
		// It waits up to five seconds for sessions that end.
		_, err = conn.Exec(ctx, "ALTER DATABASE "+quote(from)+" RENAME TO "+quote(to))
	}
	return errors.Join(err, conn.Close(ctx))
}

// wipe drops all that a test has put into the connected database, and reports
// whether the database is then as a new one is.
func wipe(ctx context.Context, conn *pgx.Conn) (asNew bool, err error) {
	_, err = conn.Exec(ctx, `
		DO $wipe$
		DECLARE
			one name;
		BEGIN
			SET LOCAL client_min_messages = error;
			FOR one IN
				SELECT nspname
				FROM   pg_namespace
				WHERE  nspname NOT LIKE 'pg\_%'
				AND    nspname <> 'information_schema'
			LOOP
				EXECUTE format('DROP SCHEMA %I CASCADE', one);
			END LOOP;
			-- Its owner and its rights may have been changed, so it is made anew.
			CREATE SCHEMA public;
			IF current_setting('server_version_num')::int >= 150000 THEN
				ALTER SCHEMA public OWNER TO pg_database_owner;
				GRANT USAGE ON SCHEMA public TO PUBLIC;
			ELSE
				GRANT ALL ON SCHEMA public TO PUBLIC;
			END IF;
		END
		$wipe$`)
	if err != nil {
		return false, fmt.Errorf("empty database: %w", err)
	}
	// What schemas don't hold; objects of a test have ids of 16384 and above.
	err = conn.QueryRow(ctx, `
		SELECT  datacl IS NULL
		AND NOT EXISTS (SELECT FROM pg_db_role_setting WHERE setdatabase = d.oid)
		AND NOT EXISTS (SELECT FROM pg_default_acl)
		AND NOT EXISTS (SELECT FROM pg_event_trigger)
		AND NOT EXISTS (SELECT FROM pg_publication)
		AND NOT EXISTS (SELECT FROM pg_largeobject_metadata)
		AND NOT EXISTS (SELECT FROM pg_foreign_data_wrapper)
		AND NOT EXISTS (SELECT FROM pg_extension WHERE extname <> 'plpgsql')
		AND NOT EXISTS (SELECT FROM pg_cast WHERE oid >= 16384)
		AND NOT EXISTS (SELECT FROM pg_language WHERE oid >= 16384)
		FROM    pg_database d
		WHERE   datname = current_database()`).Scan(&asNew)
	if err != nil {
		return false, fmt.Errorf("compare database with a new one: %w", err)
	}
	return asNew, nil
}
