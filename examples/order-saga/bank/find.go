package bank

import (
	"encoding/json"
	"net/http"
)

// Found is what the bank knows of a key: the answer to GET /find. A key that it
// has never seen is all zeros.
type Found struct {
	Requests int   `json:"requests"` // how often the key came
	Charges  int   `json:"charges"`  // how often it was charged for
	Cents    int64 `json:"cents"`    // what was charged in all
}

func (b *Bank) find(w http.ResponseWriter, r *http.Request) {
	var f Found
	err := b.books.QueryRowContext(r.Context(), `
		SELECT
			(SELECT count(*) FROM request WHERE key = ?1),
			(SELECT count(*) FROM effect WHERE kind = 'charge' AND key = ?1),
			(SELECT coalesce(sum(cents), 0) FROM effect WHERE kind = 'charge' AND key = ?1)`,
		r.FormValue("key")).Scan(&f.Requests, &f.Charges, &f.Cents)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(f) // a caller that is gone has no use for it
}
