// SPDX-License-Identifier: Apache-2.0

// Package pgxoutbox is package outbox for transactions of pgx.
package pgxoutbox

import (
	"context"

	"github.com/jackc/pgx/v5"
	"outbox.example/outbox"
)

// New makes a client for transactions of pgx. Connections and pools, on which every statement commits by itself, are no
// pgx.Tx: publishing there does not compile.
func New(options outbox.Options) *outbox.Client[pgx.Tx] {
	return outbox.NewClient(outbox.Postgres, options, func(tx pgx.Tx) outbox.Conn { return conn{tx} })
}

type conn struct{ tx pgx.Tx }

func (c conn) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	if err := c.open(); err != nil {
		return 0, err
	}
	tag, err := c.tx.Exec(ctx, query, args...)
	return tag.RowsAffected(), err
}

func (c conn) Query(ctx context.Context, each func(scan func(...any) error) error, query string, args ...any) error {
	if err := c.open(); err != nil {
		return err
	}
	rows, err := c.tx.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// open asks the connection, not its wrapper: somebody may have sent it a COMMIT as text.
func (c conn) open() error {
	if c.tx.Conn() != nil && c.tx.Conn().PgConn().TxStatus() == 'I' {
		return outbox.ErrNoTransaction
	}
	return nil
}
