/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/http/sign.h"

#include "base/base64.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/secret.h"
#include "core/secrets.h"

#include <inttypes.h>
#include <openssl/core_names.h>
#include <openssl/params.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HMAC_PREFIX "whsec_"
#define ED25519_PREFIX "whsk_"
#define HMAC_LEAST 24
#define SEED 32
#define KEY_MAX 64
#define SEPARATORS ", \t\r\n"

void signer_deinit(struct signer *signer)
{
	for (size_t i = 0; i < signer->n_keys; i++)
		EVP_PKEY_free(signer->keys[i].ed25519);
	signer->text = secret_free(signer->text);
	explicit_bzero(signer, sizeof(*signer));
}

/* ---- keys ------------------------------------------------------------------------------------------- */

static bool read_hmac(struct sign_key *key, const unsigned char *bytes, size_t size)
{
	if (size < HMAC_LEAST || size > KEY_MAX)
		return false;
	memcpy(key->hmac, bytes, size);
	key->hmac_size = size;
	return true;
}

/* The seed; some write the public key behind it. */
static bool read_ed25519(struct sign_key *key, const unsigned char *bytes, size_t size)
{
	if (size != SEED && size != 2 * (size_t)SEED)
		return false;
	key->ed25519 = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, bytes, SEED);
	return key->ed25519;
}

static bool read_key(struct sign_key *key, const char *text)
{
	bool hmac = strncmp(text, HMAC_PREFIX, strlen(HMAC_PREFIX)) == 0;
	bool ed25519 = strncmp(text, ED25519_PREFIX, strlen(ED25519_PREFIX)) == 0;
	unsigned char bytes[2 * KEY_MAX];
	size_t length, size = 0;
	bool read = false;

	if (!hmac && !ed25519)
		return false;
	text += strlen(hmac ? HMAC_PREFIX : ED25519_PREFIX);
	length = strlen(text);
	if (length <= sizeof(bytes) / 3 * 4 && base64_decode(text, length, bytes, &size))
		read = hmac ? read_hmac(key, bytes, size) : read_ed25519(key, bytes, size);
	explicit_bzero(bytes, sizeof(bytes));
	return read;
}

static int add_text(struct signer *signer, const char *option, const char *text,
		    struct outbox_error *err)
{
	size_t length = strcspn(text, "\r\n");

	if (signer->n_keys)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "option %s: sign=hermodr has one key, not several; keep one",
				   option);
	if (!length)
		return outbox_fail(err, OUTBOX_ECONFIG, "option %s: the key is empty", option);
	signer->text = strndup(text, length);
	if (!signer->text)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	secrets_hide(signer->text);
	signer->n_keys = 1;
	return OUTBOX_OK;
}

int signer_add(struct signer *signer, const char *option, const char *text, struct outbox_error *err)
{
	char *copy, *rest, *save;
	size_t before = signer->n_keys;
	int r = OUTBOX_OK;

	if (signer->preset == SIGN_HERMODR)
		return add_text(signer, option, text, err);
	copy = strdup(text);
	if (!copy)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	rest = copy;
	for (char *one; !r && (one = strtok_r(rest, SEPARATORS, &save)); rest = NULL) {
		secrets_hide(one);
		if (signer->n_keys == SIGN_KEYS_MAX)
			r = outbox_fail(err, OUTBOX_ECONFIG,
					"option %s: more than %d keys; remove old ones", option,
					SIGN_KEYS_MAX);
		else if (!read_key(&signer->keys[signer->n_keys], one))
			r = outbox_fail(err, OUTBOX_ECONFIG,
					"option %s: key %zu is neither " HMAC_PREFIX
					" and base64 of 24 to 64 bytes, nor " ED25519_PREFIX
					" and base64 of the 32 bytes of an Ed25519 key",
					option, signer->n_keys - before + 1);
		else
			signer->n_keys++;
	}
	secret_free(copy);
	if (!r && signer->n_keys == before)
		r = outbox_fail(err, OUTBOX_ECONFIG, "option %s: has no key", option);
	return r;
}

/* ---- signatures ------------------------------------------------------------------------------------- */

static void free_mac(EVP_MAC **mac)
{
	EVP_MAC_free(*mac);
}

static void free_mac_context(EVP_MAC_CTX **context)
{
	EVP_MAC_CTX_free(*context);
}

/* In two parts, so that the body need not be copied. */
static bool hmac_sha256(const void *key, size_t key_size, const struct buf *head,
			const struct sign_input *input, unsigned char digest[32])
{
	OSSL_PARAM parameters[] = { OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST,
								     (char[]){ "SHA256" }, 0),
				    OSSL_PARAM_construct_end() };
	_cleanup_(free_mac) EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	_cleanup_(free_mac_context) EVP_MAC_CTX *context = mac ? EVP_MAC_CTX_new(mac) : NULL;
	size_t size = 0;

	return context && EVP_MAC_init(context, key, key_size, parameters) == 1 &&
	       EVP_MAC_update(context, (const void *)head->data, head->size) == 1 &&
	       EVP_MAC_update(context, input->body, input->size) == 1 &&
	       EVP_MAC_final(context, digest, &size, 32) == 1 && size == 32;
}

static void free_digest(EVP_MD_CTX **context)
{
	EVP_MD_CTX_free(*context);
}

/* Ed25519 reads its message twice: there is no signing in parts. */
static bool sign_ed25519(EVP_PKEY *key, const struct buf *head, const struct sign_input *input,
			 unsigned char signature[64])
{
	_cleanup_(free_digest) EVP_MD_CTX *context = EVP_MD_CTX_new();
	_cleanup_(buf_deinit) struct buf whole = BUF_INIT(head->size + input->size + 1);
	size_t size = 64;

	buf_append(&whole, head->data, head->size);
	buf_append(&whole, input->body, input->size);
	return context && !whole.failed && EVP_DigestSignInit(context, NULL, NULL, NULL, key) == 1 &&
	       EVP_DigestSign(context, signature, &size, (const void *)whole.data, whole.size) == 1 &&
	       size == 64;
}

static bool sign_standard(const struct signer *signer, const struct buf *head,
			  const struct sign_input *input, struct buf *out)
{
	unsigned char bytes[64];

	for (size_t i = 0; i < signer->n_keys; i++) {
		const struct sign_key *key = &signer->keys[i];
		bool done = key->ed25519
				    ? sign_ed25519(key->ed25519, head, input, bytes)
				    : hmac_sha256(key->hmac, key->hmac_size, head, input, bytes);

		if (!done)
			return false;
		buf_text(out, i ? " " : "");
		buf_text(out, key->ed25519 ? "v1a," : "v1,");
		base64_append(out, bytes, key->ed25519 ? 64 : 32);
	}
	return true;
}

static bool sign_hermodr(const struct signer *signer, const struct buf *head,
			 const struct sign_input *input, struct buf *out)
{
	unsigned char digest[32];

	if (!hmac_sha256(signer->text, strlen(signer->text), head, input, digest))
		return false;
	buf_text(out, "sha256=");
	for (size_t i = 0; i < sizeof(digest); i++)
		buf_printf(out, "%02x", digest[i]);
	return true;
}

int signer_sign(const struct signer *signer, const struct sign_input *input, struct buf *out,
		struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf head = BUF_INIT(4096);
	bool done;

	if (signer->preset == SIGN_STANDARD)
		buf_printf(&head, "%s.", input->id);
	buf_printf(&head, "%" PRId64 ".", input->timestamp);
	done = !head.failed &&
	       (signer->preset == SIGN_STANDARD ? sign_standard(signer, &head, input, out)
						: sign_hermodr(signer, &head, input, out));
	if (!done || out->failed)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory for a signature");
	return OUTBOX_OK;
}

void sign_id(struct buf *out, const char *id)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

	for (; *id; id++) {
		if (strchr(plain, *id))
			buf_char(out, *id);
		else
			buf_printf(out, "%%%02X", (unsigned)(unsigned char)*id);
	}
}
