// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"testing"
	"time"

	"outbox.example/outbox/webhook"
)

// The cases that all clients' tests run: clients/testdata/README.md says what they mean.
func TestFixture(t *testing.T) {
	text, err := os.ReadFile("../../testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases struct {
		Webhooks []struct {
			Name, Body string
			Valid      bool
			Keys       []string
			Now        int64
			Headers    map[string]string
		}
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	for _, one := range cases.Webhooks {
		verifier, err := webhook.NewVerifier(one.Keys...)
		if err != nil {
			t.Fatalf("%s: %v", one.Name, err)
		}
		verifier.Now = func() time.Time { return time.Unix(one.Now, 0) }
		headers := make(http.Header)
		for name, value := range one.Headers {
			headers.Set(name, value)
		}
		err = verifier.Verify(headers, []byte(one.Body))
		if (err == nil) != one.Valid || (err != nil && !errors.Is(err, webhook.ErrRefused)) {
			t.Errorf("%s: %v", one.Name, err)
		}
	}
}

func TestKeys(t *testing.T) {
	for _, keys := range [][]string{
		{}, {""}, {"secret"}, {"whsec_AAAA"}, {"whsec_not base64"}, {"whpk_AQEBAQEBAQEBAQEBAQEBAQ=="},
		{"whsec_AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=", "whsk_AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="},
	} {
		if _, err := webhook.NewVerifier(keys...); err == nil {
			t.Errorf("%q are accepted", keys)
		}
	}
}
