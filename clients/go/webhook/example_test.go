// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"outbox.example/outbox/webhook"
)

func Example() {
	verifier, err := webhook.NewVerifier("whsec_AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=")
	if err != nil {
		panic(err)
	}
	receive := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil || verifier.Verify(r.Header, body) != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusNoContent) // its id is webhook-id: handle it once
	}
	answer := httptest.NewRecorder()
	receive(answer, httptest.NewRequest("POST", "/orders", strings.NewReader("{}")))
	fmt.Println(answer.Code)
	// Output: 401
}
