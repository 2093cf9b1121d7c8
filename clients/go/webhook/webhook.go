// SPDX-License-Identifier: Apache-2.0

// Package webhook verifies that a webhook comes from an outbox that has one of our keys (Standard Webhooks 1.0.0: v1,
// HMAC-SHA256, and v1a, Ed25519), and that it is not an old one that somebody sends again.
package webhook

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Tolerance is how far the sender's clock and ours may be apart, and how old a webhook may be.
const Tolerance = 5 * time.Minute

// ErrRefused is in every error of Verify: answer 401.
var ErrRefused = errors.New("webhook refused")

// Verifier has the keys that a webhook may be signed with: during a rotation, the former one and the new one.
type Verifier struct {
	Tolerance time.Duration    // default: Tolerance
	Now       func() time.Time // default: time.Now
	keys      []key
}

type key struct {
	version string
	valid   func(signed, signature []byte) bool
}

// NewVerifier takes keys as Standard Webhooks writes them: whsec_ and base64 of a secret that the sender has, too (HMAC), or
// whpk_ and base64 of the public key to the sender's whsk_ (Ed25519).
func NewVerifier(keys ...string) (*Verifier, error) {
	verifier := &Verifier{Tolerance: Tolerance, Now: time.Now}
	for i, text := range keys {
		key, err := parse(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		verifier.keys = append(verifier.keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("no key is given; give at least one")
	}
	return verifier, nil
}

func parse(text string) (key, error) {
	prefix, encoded, _ := strings.Cut(text, "_")
	secret, err := base64.StdEncoding.DecodeString(encoded)
	switch {
	case err == nil && prefix == "whsec" && len(secret) >= 24 && len(secret) <= 64:
		return key{"v1", func(signed, signature []byte) bool {
			mac := hmac.New(sha256.New, secret)
			mac.Write(signed)
			return hmac.Equal(mac.Sum(nil), signature)
		}}, nil
	case err == nil && prefix == "whpk" && len(secret) == ed25519.PublicKeySize:
		return key{"v1a", func(signed, signature []byte) bool {
			return ed25519.Verify(secret, signed, signature)
		}}, nil
	}
	return key{}, errors.New("is neither whsec_ and base64 of 24 to 64 bytes, nor whpk_ and base64 of the 32 bytes of an Ed25519 public key")
}

// Verify says whether one of our keys signed this body, as it was received, and not long ago.
func (v *Verifier) Verify(headers http.Header, body []byte) error {
	id, sent := headers.Get("webhook-id"), headers.Get("webhook-timestamp")
	if id == "" || strings.Contains(id, ".") {
		return fmt.Errorf("%w: webhook-id is missing or has a dot", ErrRefused)
	}
	seconds, err := strconv.ParseUint(sent, 10, 40)
	if err != nil {
		return fmt.Errorf("%w: webhook-timestamp is not in seconds since 1970", ErrRefused)
	}
	age := v.Now().Sub(time.Unix(int64(seconds), 0))
	if age > v.Tolerance || age < -v.Tolerance {
		return fmt.Errorf("%w: webhook-timestamp is %v from now, at most %v", ErrRefused, age, v.Tolerance)
	}
	signed := append([]byte(id+"."+sent+"."), body...)
	for _, one := range strings.Fields(headers.Get("webhook-signature")) {
		version, encoded, _ := strings.Cut(one, ",")
		signature, err := base64.StdEncoding.DecodeString(encoded)
		for i := range v.keys {
			if err == nil && v.keys[i].version == version && v.keys[i].valid(signed, signature) {
				return nil
			}
		}
	}
	return fmt.Errorf("%w: no signature is of one of our keys", ErrRefused)
}
