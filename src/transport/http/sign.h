/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_HTTP_SIGN_H
#define TRANSPORT_HTTP_SIGN_H

/*
 * Signatures of webhooks, by which a receiver knows who sent one and that nobody changed it.
 *
 *	standard	Standard Webhooks 1.0.0: webhook-id, webhook-timestamp, webhook-signature over "id.timestamp.body"; one
 *			signature for each key, HMAC-SHA256 (whsec_) or Ed25519 (whsk_)
 *	hermodr		X-Webhook-Signature and four more over "timestamp.body"; one HMAC-SHA256 key, any text
 */

#include <outbox/error.h>

#include <openssl/evp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

#define SIGN_KEYS_MAX 8

enum sign_preset { SIGN_STANDARD = 1, SIGN_HERMODR };

struct sign_key {
	EVP_PKEY *ed25519; /* NULL: HMAC */
	unsigned char hmac[64];
	size_t hmac_size;
};

struct signer {
	enum sign_preset preset;
	struct sign_key keys[SIGN_KEYS_MAX];
	size_t n_keys; /* 0: nothing is signed */
	char *text;    /* of hermodr, whose key is the text as it is */
};

/*
 * Add the keys in text, which have commas, blanks or line breaks between them. ECONFIG says what is wrong, and never what
 * the key is; option is its name for people.
 */
int signer_add(struct signer *signer, const char *option, const char *text,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;
void signer_deinit(struct signer *signer);

struct sign_input {
	const char *id; /* as it stands in the header: without a dot, which would make two readings of the signed text */
	int64_t timestamp; /* seconds */
	const void *body;
	size_t size;
};

/* Append the value of the header with the signatures. ENOMEM. */
int signer_sign(const struct signer *signer, const struct sign_input *input, struct buf *out,
		struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Append a message's id as it stands in headers: all but letters, digits, - and _ as percent escapes, dots above all. */
void sign_id(struct buf *out, const char *id);

#endif
