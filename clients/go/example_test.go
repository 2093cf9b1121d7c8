// SPDX-License-Identifier: Apache-2.0

package outbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"

	"outbox.example/outbox"
)

// The outbox of a shop: on PostgreSQL outbox.New(outbox.Postgres, outbox.Options{Schema: "outbox"}).
var shop = outbox.New(outbox.SQLite, outbox.Options{})

type order struct {
	ID    string  `json:"id"`
	Total float64 `json:"total"`
}

// place writes an order and publishes that it was placed: both, or neither.
func place(ctx context.Context, tx *sql.Tx, o order) error {
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id, total) VALUES (?, ?)", o.ID, o.Total); err != nil {
		return err
	}
	_, err := shop.Publish(ctx, tx, outbox.Event{Type: "order.placed", Key: o.ID, Payload: outbox.JSON(o)})
	return err
}

func ExampleClient_Publish() {
	ctx, db := context.Background(), openShop()
	defer db.Close()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Rollback()
	if err := place(ctx, tx, order{"42", 99.5}); err != nil {
		log.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		log.Fatal(err)
	}
	var payload string
	err = db.QueryRow("SELECT payload FROM outbox_message").Scan(&payload)
	fmt.Println(payload, err)
	// Output: {"id":"42","total":99.5} <nil>
}

// A test of a function that publishes needs no relay and no commit.
func ExampleClient_Published() {
	ctx, db := context.Background(), openShop()
	defer db.Close()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Rollback()
	if err := place(ctx, tx, order{"42", 99.5}); err != nil {
		log.Fatal(err)
	}
	events, err := shop.Published(ctx, tx, "order.placed", "42")
	fmt.Println(len(events), events[0].Payload, err)
	// Output: 1 {"id":"42","total":99.5} <nil>
}

// A consumer: what it writes and what it publishes happens once for each message, however often that comes.
func ExampleClient_Once() {
	ctx, db := context.Background(), openShop()
	defer db.Close()
	handle := func(id, correlationID string) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		ctx := outbox.Handling(ctx, outbox.Received{ID: id, CorrelationID: correlationID})
		_, err = shop.Once(ctx, tx, "billing", id, func(ctx context.Context) error {
			fmt.Println("bill", id)
			_, err := shop.Publish(ctx, tx, outbox.Event{Type: "bill.written", Payload: outbox.JSON(id)})
			return err
		})
		if err != nil {
			return err
		}
		return tx.Commit() // and acknowledge the message
	}
	fmt.Println(handle("message-1", "cart-7"), handle("message-1", "cart-7"))
	// Output:
	// bill message-1
	// <nil> <nil>
}

func openShop() *sql.DB {
	file := filepath.Join(folder, fmt.Sprint("shop-", shops, ".db"))
	shops++
	for _, args := range [][]string{{"init"}, {"init", "--inbox"}} {
		out, err := exec.Command(os.Getenv("OUTBOX_BIN"), append(args, "--store", "sqlite:"+file)...).CombinedOutput()
		if err != nil {
			log.Fatalf("outbox init: %v\n%s", err, out)
		}
	}
	db, err := sql.Open("sqlite3", "file:"+file+"?_busy_timeout=5000&_txlock=immediate")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE orders (id TEXT PRIMARY KEY, total REAL)"); err != nil {
		log.Fatal(err)
	}
	return db
}

var shops int
