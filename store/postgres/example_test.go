package postgres_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/postgres"
)

// What is wrong with a URL is said without the password in it.
func ExampleOpen_badURL() {
	_, err := postgres.Open(context.Background(), "postgres://ann:secret@db.example/shop?sslmode=perhaps")
	fmt.Println(errors.Is(err, store.ErrBadURL))
	fmt.Println(err)
	// Output:
	// true
	// open database: bad database URL: sslmode is invalid
}

// The schema's name may be given in the URL or in Go, and is a plain name.
func ExampleWithSchema() {
	_, err := postgres.Open(context.Background(), "postgres://db.example/shop", postgres.WithSchema("my schema"))
	fmt.Println(err)
	// Output:
	// open database: bad schema name: "my schema"
}
