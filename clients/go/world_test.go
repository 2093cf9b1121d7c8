// SPDX-License-Identifier: Apache-2.0

package outbox_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/mattn/go-sqlite3"
	"outbox.example/outbox"
	"outbox.example/outbox/pgxoutbox"
)

var ctx = context.Background()

// unit is an open transaction, whatever its driver is.
type unit struct {
	publish   func(context.Context, ...outbox.Event) ([]string, error)
	once      func(ctx context.Context, consumer, id string, handle func(context.Context) error) (bool, error)
	published func(context.Context, string, string) ([]outbox.Event, error)
	exec      func(query string) error
	commit    func() error
	rollback  func() error
}

// world is a database with an outbox, and one of the drivers to it. All tests share it.
type world struct {
	driver string
	store  string  // the URL that the program takes
	db     *sql.DB // for looking at it from outside
	table  string
	begin  func(*testing.T, outbox.Options) unit
}

var (
	worldsMade = make(map[string]*world)
	folder     string
)

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "outbox-go-"); err != nil {
		panic(err)
	}
	status := m.Run()
	os.RemoveAll(folder)
	os.Exit(status)
}

// worlds runs test with every driver.
func worlds(t *testing.T, test func(*testing.T, *world)) {
	for name, open := range map[string]func(*testing.T) *world{"sqlite": openSQLite, "postgres": openPostgres, "pgx": openPgx} {
		name, open := name, open
		t.Run(name, func(t *testing.T) {
			if worldsMade[name] == nil {
				w := open(t)
				w.driver = name
				program(t, "init", "--store", w.store)
				program(t, "init", "--inbox", "--store", w.store)
				worldsMade[name] = w
			}
			test(t, worldsMade[name])
		})
	}
}

func openSQLite(t *testing.T) *world {
	file := filepath.Join(folder, "a b#1.db")
	db, err := sql.Open("sqlite3", "file:"+strings.ReplaceAll(file, "#", "%23")+"?_busy_timeout=20000&_txlock=immediate&_journal=WAL")
	must(t, err)
	return &world{store: "sqlite:" + file, db: db, table: "outbox_message", begin: beginSQL(db, outbox.SQLite)}
}

func postgres(t *testing.T, schema string) *world {
	url := os.Getenv("OUTBOX_TEST_POSTGRES")
	if url == "" {
		t.Skip("no PostgreSQL server: run it with tests/support/with-postgres")
	}
	db, err := sql.Open("pgx", url)
	must(t, err)
	return &world{store: url + "?schema=" + strings.ReplaceAll(schema, " ", "%20"), db: db,
		table: pgx.Identifier{schema, "outbox_message"}.Sanitize()}
}

func openPostgres(t *testing.T) *world {
	w := postgres(t, "of Go")
	begin := beginSQL(w.db, outbox.Postgres)
	w.begin = func(t *testing.T, options outbox.Options) unit {
		options.Schema = "of Go"
		return begin(t, options)
	}
	return w
}

func openPgx(t *testing.T) *world {
	w := postgres(t, "of pgx")
	pool, err := pgxpool.New(ctx, os.Getenv("OUTBOX_TEST_POSTGRES"))
	must(t, err)
	w.begin = func(t *testing.T, options outbox.Options) unit {
		options.Schema = "of pgx"
		tx, err := pool.Begin(ctx)
		must(t, err)
		t.Cleanup(func() { _ = tx.Rollback(ctx) })
		return unitOf(pgxoutbox.New(options), tx, unit{
			exec:     func(query string) error { _, err := tx.Exec(ctx, query); return err },
			commit:   func() error { return tx.Commit(ctx) },
			rollback: func() error { return tx.Rollback(ctx) },
		})
	}
	return w
}

func beginSQL(db *sql.DB, store outbox.Store) func(*testing.T, outbox.Options) unit {
	return func(t *testing.T, options outbox.Options) unit {
		tx, err := db.BeginTx(ctx, nil)
		must(t, err)
		t.Cleanup(func() { _ = tx.Rollback() })
		return unitOf[outbox.Tx](outbox.New(store, options), tx, unit{
			exec:   func(query string) error { _, err := tx.ExecContext(ctx, query); return err },
			commit: tx.Commit, rollback: tx.Rollback,
		})
	}
}

func unitOf[T any](client *outbox.Client[T], tx T, u unit) unit {
	u.publish = func(ctx context.Context, events ...outbox.Event) ([]string, error) {
		return client.Publish(ctx, tx, events...)
	}
	u.once = func(ctx context.Context, consumer, id string, handle func(context.Context) error) (bool, error) {
		return client.Once(ctx, tx, consumer, id, handle)
	}
	u.published = func(ctx context.Context, eventType, key string) ([]outbox.Event, error) {
		return client.Published(ctx, tx, eventType, key)
	}
	return u
}

// program runs outbox and returns what it prints.
func program(t testing.TB, args ...string) string {
	t.Helper()
	binary := os.Getenv("OUTBOX_BIN")
	if binary == "" {
		binary = "outbox"
	}
	out, err := exec.Command(binary, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("outbox %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// count returns how many messages the log has, seen from outside.
func (w *world) count(t *testing.T) (n int) {
	t.Helper()
	must(t, w.db.QueryRow("SELECT count(*) FROM "+w.table).Scan(&n))
	return n
}

// events delivers all that is in the log and returns it by id.
func (w *world) events(t *testing.T) map[string]map[string]any {
	file := filepath.Join(t.TempDir(), "out.jsonl")
	program(t, "relay", "--store", w.store, "--to", "events=file:"+file, "--until-idle")
	text, err := os.ReadFile(file)
	must(t, err)
	events := make(map[string]map[string]any)
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		event := make(map[string]any)
		must(t, json.Unmarshal([]byte(line), &event))
		events[event["id"].(string)] = event
	}
	return events
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func at(t *testing.T, text string) time.Time {
	value, err := time.Parse(time.RFC3339, text)
	must(t, err)
	return value
}
