package bank

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// outcome is what came of a request.
type outcome struct {
	answer
	replayed bool
	mishap   mishap
	effects  []Effect
}

// answer is what is said to a request.
type answer struct {
	status int
	body   string
}

func refuse(status int, why string) answer {
	body, _ := json.Marshal(map[string]string{"error": why}) //nolint:errchkjson // a map of strings always encodes
	return answer{status, string(body)}
}

// handle writes down the request, then its effect and answer, in one
// transaction.
func (b *Bank) handle(ctx context.Context, req request) (done outcome, err error) {
	tx, err := b.books.BeginTx(ctx, nil)
	if err != nil {
		return outcome{}, fmt.Errorf("%s: %w", req.path, err)
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	d := desk{ctx, tx, req, time.Now()}
	if done, err = d.handle(b.cfg.IgnoreKeys); err != nil {
		return outcome{}, fmt.Errorf("%s: %w", req.path, err)
	}
	if err := tx.Commit(); err != nil {
		return outcome{}, fmt.Errorf("%s: %w", req.path, err)
	}
	return done, nil
}

// desk works on one request in one transaction.
type desk struct {
	ctx context.Context //nolint:containedctx // lives as long as the call
	tx  *sql.Tx
	req request
	now time.Time
}

func (d desk) handle(ignoreKeys bool) (outcome, error) {
	mishap, err := d.note()
	if err != nil || mishap == failBefore {
		return outcome{mishap: mishap}, err
	}
	done := outcome{mishap: mishap}
	if !ignoreKeys {
		var known bool
		if done.answer, known, err = d.recall(); err != nil || known {
			done.replayed = known
			return done, err
		}
	}
	done.answer, done.effects, err = d.carryOut(ignoreKeys)
	if err != nil || ignoreKeys {
		return done, err
	}
	return done, d.remember(done.answer)
}

// note writes down that the bank was asked, and says what will go wrong.
func (d desk) note() (mishap, error) {
	_, err := d.tx.ExecContext(d.ctx, `
		INSERT INTO request (path, key, order_id, caller, came_at)
		VALUES (?1, ?2, ?3, ?4, ?5)`,
		d.req.path, d.req.key, d.req.order.Order, d.req.caller, d.now.UnixMicro())
	if err != nil {
		return none, err
	}
	card := d.req.order.Card
	if d.req.path != "/charge" {
		if card, err = d.cardCharged(); err != nil {
			return none, err
		}
	}
	var nth int
	err = d.tx.QueryRowContext(d.ctx, `
		SELECT count(*) FROM request
		WHERE key = ?1`, d.req.key).Scan(&nth)
	return mishapOf(card, d.req.path, nth), err
}

// cardCharged returns the card of the charge that a refund or void is about,
// or "" if there is none.
func (d desk) cardCharged() (card string, err error) {
	err = d.tx.QueryRowContext(d.ctx, `
		SELECT card FROM effect
		WHERE kind = 'charge' AND (n = ?1 OR key = ?2)`,
		chargeNumber(d.req.order.Charge), d.req.order.Key).Scan(&card)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return card, err
}

// recall returns the answer that the key got before.
func (d desk) recall() (a answer, known bool, err error) {
	var text string
	err = d.tx.QueryRowContext(d.ctx, `
		SELECT request, status, body FROM answer
		WHERE key = ?1`, d.req.key).Scan(&text, &a.status, &a.body)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return answer{}, false, nil
	case err != nil:
		return answer{}, false, err
	case text != d.req.text:
		return refuse(http.StatusUnprocessableEntity, "the key was used for another request"), true, nil
	}
	return a, true, nil
}

// remember keeps the first answer to a key.
func (d desk) remember(a answer) error {
	_, err := d.tx.ExecContext(d.ctx, `
		INSERT INTO answer (key, request, status, body)
		VALUES (?1, ?2, ?3, ?4)`, d.req.key, d.req.text, a.status, a.body)
	return err
}

func (d desk) carryOut(ignoreKeys bool) (answer, []Effect, error) {
	switch d.req.path {
	case "/charge":
		return d.charge(ignoreKeys)
	case "/refund":
		return d.refund()
	default:
		return d.void()
	}
}

func (d desk) charge(ignoreKeys bool) (answer, []Effect, error) {
	o := d.req.order
	voided, err := d.isVoid()
	switch {
	case err != nil:
		return answer{}, nil, err
	case voided && !ignoreKeys:
		return refuse(http.StatusConflict, "the charge was voided before it came"), nil, nil
	case o.Cents <= 0:
		return refuse(http.StatusBadRequest, "nothing to charge"), nil, nil
	case o.Card == Declined:
		return refuse(http.StatusPaymentRequired, "card declined"), nil, nil
	}
	n, e, err := d.enter("charge", d.req.key, o.Card, 0, o.Cents)
	if err != nil {
		return answer{}, nil, err
	}
	return answer{http.StatusOK, fmt.Sprintf(`{"charge":"ch_%d"}`, n)}, []Effect{e}, nil
}

func (d desk) isVoid() (voided bool, err error) {
	err = d.tx.QueryRowContext(d.ctx, `
		SELECT EXISTS (SELECT 1 FROM effect WHERE kind = 'void' AND key = ?1)`, d.req.key).Scan(&voided)
	return voided, err
}

// refund gives back one charge. It is naturally idempotent: what was given back
// already is left alone.
func (d desk) refund() (answer, []Effect, error) {
	n := chargeNumber(d.req.order.Charge)
	open, err := d.openCharges(`n = ?1`, n)
	if err != nil {
		return answer{}, nil, err
	}
	effects, err := d.giveBack(open)
	return answer{http.StatusOK, "{}"}, effects, err
}

// void gives back whatever a key has charged and bars it from charging.
func (d desk) void() (answer, []Effect, error) {
	open, err := d.openCharges(`key = ?1`, d.req.order.Key)
	if err != nil {
		return answer{}, nil, err
	}
	effects, err := d.giveBack(open)
	if err != nil {
		return answer{}, nil, err
	}
	_, e, err := d.enter("void", d.req.order.Key, "", 0, 0)
	return answer{http.StatusOK, "{}"}, append(effects, e), err
}

// openCharge is a charge that was not given back.
type openCharge struct {
	n, cents int64
	card     string
}

// openCharges returns the charges that fit a condition on column n or key.
func (d desk) openCharges(condition string, arg any) (open []openCharge, err error) {
	rows, err := d.tx.QueryContext(d.ctx, `
		SELECT n, cents, card FROM effect AS c
		WHERE kind = 'charge' AND `+condition+`
			AND NOT EXISTS (SELECT 1 FROM effect AS r WHERE r.kind = 'refund' AND r.charge = c.n)`, arg)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var c openCharge
		if err := rows.Scan(&c.n, &c.cents, &c.card); err != nil {
			return nil, err
		}
		open = append(open, c)
	}
	return open, rows.Err()
}

func (d desk) giveBack(open []openCharge) (effects []Effect, err error) {
	for _, c := range open {
		_, e, err := d.enter("refund", d.req.key, c.card, c.n, c.cents)
		if err != nil {
			return nil, err
		}
		effects = append(effects, e)
	}
	return effects, nil
}

// enter writes an effect into the books.
func (d desk) enter(kind, key, card string, charge, cents int64) (n int64, e Effect, err error) {
	e = Effect{Kind: kind, Key: key, Order: d.req.order.Order, Caller: d.req.caller, Cents: cents, At: d.now}
	res, err := d.tx.ExecContext(d.ctx, `
		INSERT INTO effect (kind, key, order_id, caller, card, charge, cents, done_at)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`,
		kind, key, e.Order, e.Caller, card, charge, cents, d.now.UnixMicro())
	if err != nil {
		return 0, Effect{}, err
	}
	n, err = res.LastInsertId()
	return n, e, err
}

// chargeNumber reads the n of ch_n; 0 if it is no charge's id.
func chargeNumber(id string) int64 {
	n, _ := strconv.ParseInt(strings.TrimPrefix(id, "ch_"), 10, 64)
	return n
}
