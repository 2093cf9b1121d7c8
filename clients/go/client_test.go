// SPDX-License-Identifier: Apache-2.0

package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"outbox.example/outbox"
)

func placed(key string) outbox.Event {
	return outbox.Event{Type: "order.placed", Key: key, Payload: outbox.JSON(map[string]string{"id": key})}
}

func TestRolledBackPublishesNothing(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		before := w.count(t)
		u := w.begin(t, outbox.Options{})
		_, err := u.publish(ctx, placed("1"))
		must(t, err)
		must(t, u.exec("SAVEPOINT s"))
		_, err = u.publish(ctx, placed("2"))
		must(t, err)
		must(t, u.exec("ROLLBACK TO SAVEPOINT s"))
		_, err = u.publish(ctx, placed("3"))
		must(t, err)
		if keys := w.keys(t, u); !reflect.DeepEqual(keys, []string{"1", "3"}) {
			t.Errorf("after the savepoint: %v", keys)
		}
		must(t, u.rollback())
		if n := w.count(t) - before; n != 0 {
			t.Errorf("%d messages of a transaction that was rolled back", n)
		}
	})
}

// keys returns the keys of what the transaction will publish.
func (w *world) keys(t *testing.T, u unit) (keys []string) {
	t.Helper()
	events, err := u.published(ctx, "", "")
	must(t, err)
	for _, event := range events {
		keys = append(keys, event.Key)
	}
	return keys
}

// A statement outside of a transaction commits by itself: whatever can run one is not accepted by Publish.
func TestAutocommitDoesNotCompile(t *testing.T) {
	std, native := reflect.TypeOf((*outbox.Tx)(nil)).Elem(), reflect.TypeOf((*pgx.Tx)(nil)).Elem()
	for value, accepted := range map[any]reflect.Type{
		(*sql.DB)(nil): std, (*sql.Conn)(nil): std, (*pgx.Conn)(nil): native, (*pgxpool.Pool)(nil): native,
		(*pgxpool.Conn)(nil): native,
	} {
		if reflect.TypeOf(value).Implements(accepted) {
			t.Errorf("Publish takes a %T", value)
		}
	}
	if !reflect.TypeOf((*sql.Tx)(nil)).Implements(std) {
		t.Error("Publish does not take a *sql.Tx")
	}
}

func TestEndedTransactionIsRefused(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		for _, end := range []func(unit) error{func(u unit) error { return u.commit() }, func(u unit) error { return u.rollback() }} {
			before := w.count(t)
			u := w.begin(t, outbox.Options{})
			must(t, end(u))
			_, err := u.publish(ctx, placed("late"))
			if !errors.Is(err, sql.ErrTxDone) && !errors.Is(err, outbox.ErrNoTransaction) {
				t.Errorf("the error is %v", err)
			}
			if n := w.count(t) - before; n != 0 {
				t.Errorf("%d messages outside of a transaction", n)
			}
		}
	})
}

// The driver believes that its transaction goes on, while every statement commits by itself.
func TestAutocommitIsRefused(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		if w.driver == "postgres" {
			t.Skip("database/sql does not tell the state of a PostgreSQL connection")
		}
		before := w.count(t)
		u := w.begin(t, outbox.Options{})
		must(t, u.exec("ROLLBACK"))
		if _, err := u.publish(ctx, placed("1")); !errors.Is(err, outbox.ErrNoTransaction) {
			t.Errorf("publish: %v", err)
		}
		handled := false
		_, err := u.once(ctx, "billing", t.Name(), func(context.Context) error { handled = true; return nil })
		if !errors.Is(err, outbox.ErrNoTransaction) || handled {
			t.Errorf("once: %v", err)
		}
		if n := w.count(t) - before; n != 0 {
			t.Errorf("%d messages outside of a transaction", n)
		}
	})
}

func TestPublishedIsOfThisTransaction(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		first := w.begin(t, outbox.Options{})
		_, err := first.publish(ctx, placed("before"))
		must(t, err)
		must(t, first.commit())

		u := w.begin(t, outbox.Options{})
		sent := placed("mine")
		sent.ID, sent.Headers, sent.Priority, sent.Published = "mine-"+t.Name(), map[string]string{"tenant": "acme"}, 7, true
		_, err = u.publish(ctx, sent, outbox.Event{Type: "order.paid", Key: "mine", Payload: outbox.Bytes{0, 1}})
		must(t, err)
		must(t, u.exec("INSERT INTO "+w.table+" (type, key, payload) VALUES ('order.placed', 'plain SQL', '{}')"))
		if keys := w.keys(t, u); !reflect.DeepEqual(keys, []string{"mine", "mine", "plain SQL"}) {
			t.Errorf("it will publish %v", keys)
		}
		found, err := u.published(ctx, "order.placed", "mine")
		must(t, err)
		sent.Payload = outbox.Text(`{"id":"mine"}`)
		if len(found) == 1 {
			sent.EventTime = found[0].EventTime
		}
		if len(found) != 1 || !reflect.DeepEqual(found[0], sent) || sent.EventTime.IsZero() {
			t.Errorf("published %+v\nfound %+v", sent, found)
		}
		must(t, u.rollback())
		if keys := w.keys(t, w.begin(t, outbox.Options{})); keys != nil {
			t.Errorf("another transaction sees %v", keys)
		}
	})
}

// Where another transaction can be open at the same time, nobody sees it either.
func TestPublishedAmongOthers(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		if w.driver == "sqlite" {
			t.Skip("SQLite has one writer")
		}
		other, u := w.begin(t, outbox.Options{}), w.begin(t, outbox.Options{})
		_, err := other.publish(ctx, placed("other"))
		must(t, err)
		_, err = u.publish(ctx, placed("mine"))
		must(t, err)
		must(t, other.commit())
		if keys := w.keys(t, u); !reflect.DeepEqual(keys, []string{"mine"}) {
			t.Errorf("it will publish %v", keys)
		}
	})
}

func TestOnceAmongParallelConsumers(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		const messages, deliveries = 8, 12
		must(t, w.exec("CREATE TABLE IF NOT EXISTS effects (id TEXT)"))
		var ran, failed int64
		var wait sync.WaitGroup
		for i := 0; i < messages*deliveries; i++ {
			id := fmt.Sprint(t.Name(), i%messages)
			wait.Add(1)
			go func(fails bool) {
				defer wait.Done()
				u := w.begin(t, outbox.Options{})
				first, err := u.once(ctx, "billing", id, func(context.Context) error {
					if fails {
						return errors.New("planned")
					}
					return u.exec("INSERT INTO effects VALUES ('" + id + "')")
				})
				switch {
				case err != nil && fails:
					atomic.AddInt64(&failed, 1)
					err = u.rollback()
				case err == nil:
					if first {
						atomic.AddInt64(&ran, 1)
					}
					err = u.commit()
				}
				if err != nil {
					t.Error(err)
				}
			}(i < messages && i%2 == 0)
		}
		wait.Wait()
		var n int
		must(t, w.db.QueryRow("SELECT count(*) FROM effects").Scan(&n))
		if ran != messages || n != messages {
			t.Errorf("%d messages: %d handled, %d effects, %d failed on the way", messages, ran, n, failed)
		}
		must(t, w.exec("DROP TABLE effects"))
	})
}

func (w *world) exec(query string) error {
	_, err := w.db.Exec(query)
	return err
}

func TestOnceHandsItsMessageOn(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		u := w.begin(t, outbox.Options{})
		handle := func(ctx context.Context) error {
			_, err := u.publish(ctx, placed("follows"))
			return err
		}
		_, err := u.once(ctx, "billing", "a", handle)
		must(t, err)
		_, err = u.once(outbox.Handling(ctx, outbox.Received{ID: "b", CorrelationID: "cart"}), "billing", "b", handle)
		must(t, err)
		events, err := u.published(ctx, "", "")
		must(t, err)
		for i, want := range []string{"a a", "b cart"} {
			if got := events[i].CausationID + " " + events[i].CorrelationID; got != want {
				t.Errorf("cause and correlation: %s, not %s", got, want)
			}
		}
	})
}

func TestTraceOfTheContext(t *testing.T) {
	const trace, own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
	type span struct{}
	options := outbox.Options{Trace: func(ctx context.Context) string {
		trace, _ := ctx.Value(span{}).(string)
		return trace
	}}
	worlds(t, func(t *testing.T, w *world) {
		u := w.begin(t, options)
		explicit, header := placed("1"), placed("2")
		explicit.Traceparent, header.Headers = own, map[string]string{"Traceparent": own}
		_, err := u.publish(context.WithValue(ctx, span{}, trace), placed("0"), explicit, header)
		must(t, err)
		for _, nothing := range []string{"", "00-00000000000000000000000000000000-0000000000000000-00"} {
			_, err = u.publish(context.WithValue(ctx, span{}, nothing), placed("3"))
			must(t, err)
		}
		events, err := u.published(ctx, "", "")
		must(t, err)
		for i, want := range []string{trace, own, "", "", ""} {
			if events[i].Traceparent != want {
				t.Errorf("traceparent of %d: %q, not %q", i, events[i].Traceparent, want)
			}
		}
	})
}

func TestBatch(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		var events []outbox.Event
		for i := 0; i < 5000; i++ { // more than one statement can have
			events = append(events, placed(fmt.Sprint(i)))
		}
		events[4999].Subject, events[4999].ID = "last", "last-"+t.Name()
		u := w.begin(t, outbox.Options{})
		ids, err := u.publish(ctx, events...)
		must(t, err)
		found, err := u.published(ctx, "", "")
		must(t, err)
		for i := range found {
			if found[i].ID != ids[i] || found[i].Key != events[i].Key {
				t.Fatalf("%d is %+v", i, found[i])
			}
		}
		if len(found) != len(events) || found[4999].Subject != "last" {
			t.Errorf("%d messages", len(found))
		}
		_, err = u.publish(ctx, events[4999]) // its id is in the log
		must(t, err)
		if _, err = u.publish(ctx, placed("good"), outbox.Event{}); err == nil {
			t.Error("a batch with a wrong event is accepted")
		}
		if n := len(w.keys(t, u)); n != len(events) {
			t.Errorf("%d messages after a repeat and an error", n)
		}
	})
}

func TestPublishedRefusesMemory(t *testing.T) {
	db, err := sql.Open("sqlite3", ":memory:")
	must(t, err)
	defer db.Close()
	tx, err := db.BeginTx(ctx, nil)
	must(t, err)
	if _, err := outbox.New(outbox.SQLite, outbox.Options{}).Published(ctx, tx, "", ""); err == nil {
		t.Error("a database in memory is accepted")
	}
	must(t, tx.Rollback())
}
