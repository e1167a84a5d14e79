package pgtest_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/pgtest"
)

// A program that isn't a test uses a throw-away server too.
func ExampleLaunch() {
	server, err := pgtest.Launch(pgtest.Setting{Name: "max_connections", Value: "20"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	ctx := context.Background()
	conn, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close(ctx)

	var limit, durable string
	err = conn.QueryRow(ctx, `
		SELECT current_setting('max_connections'),
		       current_setting('fsync')`).Scan(&limit, &durable)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("connections:", limit, "durable:", durable)
	// Output: connections: 20 durable: on
}
