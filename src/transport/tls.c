/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS between two memories: OpenSSL's own socket I/O raises SIGPIPE in the application's process and knows no deadline. The
 * settings are read again at every connect, since files may have changed.
 */

#include "transport/wire.h"

#include "base/cleanup.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

const char *tls_error(void)
{
	unsigned long code = ERR_get_error();
	const char *text = code ? ERR_reason_error_string(code) : NULL;

	ERR_clear_error();
	return text ? text : "TLS failed";
}

static void free_context(SSL_CTX **context)
{
	SSL_CTX_free(*context);
}

/* Without one of ours OpenSSL would ask the terminal for the key's password. */
static int no_password(char *out, int size, int writing, void *context)
{
	(void)out;
	(void)size;
	(void)writing;
	(void)context;
	return 0;
}

static int set_files(SSL_CTX *context, const struct endpoint *e, const char *who,
		     struct outbox_error *err)
{
	SSL_CTX_set_default_passwd_cb(context, no_password);
	if (e->verify && SSL_CTX_load_verify_file(context, e->ca) != 1)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "%s: cannot use %s as certificate authorities: %s", who, e->ca,
				   tls_error());
	if (e->cert && (SSL_CTX_use_certificate_chain_file(context, e->cert) != 1 ||
			SSL_CTX_use_PrivateKey_file(context, e->key, SSL_FILETYPE_PEM) != 1))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "%s: cannot use the certificate %s with the key %s: %s; both are "
				   "PEM, the key without a password",
				   who, e->cert, e->key, tls_error());
	return OUTBOX_OK;
}

static bool is_ip(const char *host)
{
	unsigned char address[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

static SSL *new_session(SSL_CTX *context, bool verify, const char *host)
{
	SSL *tls = SSL_new(context);
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());

	if (!tls || !in || !out || (verify && SSL_set1_host(tls, host) != 1) ||
	    (!is_ip(host) && SSL_set_tlsext_host_name(tls, host) != 1)) {
		SSL_free(tls);
		BIO_free(in);
		BIO_free(out);
		return NULL;
	}
	SSL_set_hostflags(tls, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	SSL_set_verify(tls, verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
	SSL_set_bio(tls, in, out);
	SSL_set_connect_state(tls);
	SSL_set_options(tls, SSL_OP_NO_RENEGOTIATION);
	SSL_set_mode(tls, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	return tls;
}

static int make_session(const struct endpoint *endpoint, const char *host, const char *who,
			SSL **ret_tls, struct outbox_error *err)
{
	_cleanup_(free_context) SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	int r;

	ERR_clear_error();
	if (!context || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = set_files(context, endpoint, who, err);
	if (r != OUTBOX_OK)
		return r;
	*ret_tls = new_session(context, endpoint->verify, host);
	return *ret_tls ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

static int fail_handshake(struct wire *wire, struct outbox_error *err)
{
	/* With verify=no it is there, too, and nobody's reason. */
	long verified = SSL_get_verify_mode(wire->tls) == SSL_VERIFY_PEER
				? SSL_get_verify_result(wire->tls)
				: X509_V_OK;

	return outbox_fail_native(err, OUTBOX_EAUTH, (int)verified, "%s: TLS: %s", wire->shown,
				  verified != X509_V_OK ? X509_verify_cert_error_string(verified)
							: tls_error());
}

int wire_start_tls(struct wire *wire, const struct endpoint *endpoint, const char *host,
		   outbox_time deadline, struct outbox_error *err)
{
	int r;

	/* What stands behind INFO came without TLS, from whomever. */
	if (wire->in.size > wire->taken)
		return outbox_fail(err, OUTBOX_EPROTO, "%s: the server sent data before TLS began",
				   wire->shown);
	r = make_session(endpoint, host, wire->shown, &wire->tls, err);
	if (r != OUTBOX_OK)
		return r;
	for (;;) {
		outbox_time left = deadline - wire->clock->mono(wire->clock);
		int done;

		ERR_clear_error();
		done = SSL_do_handshake(wire->tls);

		if (done == 1) {
			wire->secured = true;
			wire_unseal(wire);
			return OUTBOX_OK;
		}
		if (SSL_get_error(wire->tls, done) != SSL_ERROR_WANT_READ)
			return fail_handshake(wire, err);
		if (wire->ended)
			return outbox_fail(err, wire->status, "%s: TLS: %s", wire->shown, wire->why);
		if (left <= 0 || !wire_wait(wire, left))
			return outbox_fail(err, OUTBOX_ETIMEDOUT, "%s: TLS: no answer in time",
					   wire->shown);
	}
}
