/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CONNECT: who we are. With a password or a token it is said; with an nkey or a credentials file (a JWT and a seed) the
 * server's nonce is signed with the seed's Ed25519 key, and the seed stays here.
 *
 * A seed is base32 without padding: two bytes that say what it is, 32 bytes, a CRC-16 of these 34 in little endian.
 */

#include "transport/nats/driver.h"

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/secret.h"
#include "base/text.h"
#include "core/json.h"

#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#define SEED_TEXT 58 /* characters */
#define SEED_BYTES 36
#define KEY_BYTES 32
#define SIGNATURE_BYTES 64

static void free_secret(char **secret)
{
	secret_free(*secret);
}

/* ---- seeds ------------------------------------------------------------------------------------------ */

static uint16_t crc16(const unsigned char *data, size_t size)
{
	uint16_t crc = 0;

	for (size_t i = 0; i < size; i++) {
		crc = (uint16_t)(crc ^ data[i] << 8);
		for (int bit = 0; bit < 8; bit++)
			crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
	}
	return crc;
}

static bool decode_seed(const char *text, unsigned char out[SEED_BYTES])
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
	unsigned bits = 0, held = 0;
	size_t n = 0;

	for (size_t i = 0; i < SEED_TEXT; i++) {
		const char *found = text[i] ? strchr(alphabet, text[i]) : NULL;

		if (!found)
			return false;
		held = held << 5 | (unsigned)(found - alphabet);
		bits += 5;
		if (bits >= 8) {
			bits -= 8;
			out[n++] = (unsigned char)(held >> bits);
		}
	}
	return text[0] == 'S' && text[1] == 'U' &&
	       crc16(out, SEED_BYTES - 2) == (out[SEED_BYTES - 2] | out[SEED_BYTES - 1] << 8);
}

static bool sign(const unsigned char key[KEY_BYTES], const char *nonce,
		 unsigned char out[SIGNATURE_BYTES])
{
	EVP_PKEY *pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, key, KEY_BYTES);
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	size_t size = SIGNATURE_BYTES;
	bool done = pkey && context && EVP_DigestSignInit(context, NULL, NULL, NULL, pkey) == 1 &&
		    EVP_DigestSign(context, out, &size, (const unsigned char *)nonce,
				   strlen(nonce)) == 1;

	EVP_MD_CTX_free(context);
	EVP_PKEY_free(pkey);
	return done;
}

/* ,"sig":"..." in the alphabet for URLs and without padding. */
static int add_signature(const char *path, const char *seed, const char *nonce, struct buf *out,
			 struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(2 * SIGNATURE_BYTES);
	unsigned char bytes[SEED_BYTES], signature[SIGNATURE_BYTES];
	bool known = decode_seed(seed, bytes), done = known && sign(bytes + 2, nonce, signature);

	explicit_bzero(bytes, sizeof(bytes));
	if (!known)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "%s has no seed of a user in it (SU and 56 more characters)",
				   path);
	if (!done)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "%s: OpenSSL cannot sign with this seed: is Ed25519 switched off?",
				   path);
	base64_append(&text, signature, sizeof(signature));
	if (text.failed)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (char *c = text.data; *c; c++)
		*c = (char)(*c == '+' ? '-' : *c == '/' ? '_' : *c == '=' ? '\0' : *c);
	buf_printf(out, ",\"sig\":\"%s\"", text.data);
	return OUTBOX_OK;
}

/* ---- files ------------------------------------------------------------------------------------------ */

/* The line behind "-----BEGIN title-----", or without such a title the first line. It ends at a blank or a line's end. */
static const char *find_line(const char *text, const char *title)
{
	const char *at = title ? strstr(text, title) : text;

	if (at && title)
		at = strchr(at, '\n');
	while (at && (*at == '\n' || *at == '\r' || *at == ' '))
		at++;
	return at;
}

static int add_creds(const char *path, const char *nonce, struct buf *out, struct outbox_error *err)
{
	_cleanup_(free_secret) char *file = NULL;
	const char *jwt, *seed;
	int r = secret_read_file("creds", path, &file, err);

	if (r != OUTBOX_OK)
		return r;
	jwt = find_line(file, "BEGIN NATS USER JWT");
	seed = find_line(file, "BEGIN USER NKEY SEED");
	if (!jwt || !seed)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "%s is not a credentials file: it needs a NATS USER JWT and a USER NKEY "
				   "SEED",
				   path);
	buf_text(out, ",\"jwt\":");
	json_append_string(out, jwt, strcspn(jwt, " \r\n"));
	return add_signature(path, seed, nonce, out, err);
}

static int add_nkey(const struct nats_transport *t, struct buf *out, struct outbox_error *err)
{
	_cleanup_(free_secret) char *file = NULL;
	const char *seed;
	int r = secret_read_file("nkey_seed", t->seed, &file, err);

	if (r != OUTBOX_OK)
		return r;
	seed = find_line(file, "BEGIN USER NKEY SEED");
	buf_text(out, ",\"nkey\":");
	json_append_string(out, t->nkey, strlen(t->nkey));
	return add_signature(t->seed, seed ? seed : find_line(file, NULL), t->nonce, out, err);
}

static void add_text(struct buf *out, const char *name, const char *value)
{
	buf_printf(out, ",\"%s\":", name);
	json_append_string(out, value, strlen(value));
}

int nats_put_connect(struct nats_transport *t, struct outbox_error *err)
{
	struct buf *out = &t->wire.out;
	int r = OUTBOX_OK;

	buf_printf(out,
		   "CONNECT {\"verbose\":false,\"pedantic\":false,\"tls_required\":%s,\"lang\":\"c\","
		   "\"version\":\"" OUTBOX_VERSION "\",\"protocol\":1,\"echo\":true,\"headers\":true,"
		   "\"no_responders\":true",
		   t->broker.endpoint.tls ? "true" : "false");
	add_text(out, "name", t->broker.client);
	if (t->creds)
		r = add_creds(t->creds, t->nonce, out, err);
	else if (t->nkey)
		r = add_nkey(t, out, err);
	else if (t->token)
		add_text(out, "auth_token", t->token);
	if (t->broker.endpoint.user) {
		add_text(out, "user", t->broker.endpoint.user);
		add_text(out, "pass", t->broker.endpoint.password);
	}
	buf_text(out, "}\r\n");
	return r;
}
