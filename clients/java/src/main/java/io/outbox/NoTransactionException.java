// SPDX-License-Identifier: Apache-2.0
package io.outbox;

/** No transaction is open: what is written now would commit by itself. Nothing was written. */
public final class NoTransactionException extends IllegalStateException {
    private static final long serialVersionUID = 1;

    public NoTransactionException(String remedy) {
        super("no transaction is open; " + remedy);
    }
}
