/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library gets a context of ours: the settings are the same as other drivers', files are read again at every connect,
 * and the name to verify is the URL's, although the library is handed an address. The same name goes into the
 * handshake (SNI), just before it begins, in place of the address that the library puts there.
 */

#include "transport/mqtt/driver.h"

#include "transport/socket.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>

static const char *tls_error(void)
{
	unsigned long code = ERR_get_error();
	const char *text = code ? ERR_reason_error_string(code) : NULL;

	ERR_clear_error();
	return text ? text : "TLS failed";
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

static bool is_ip(const char *host)
{
	unsigned char address[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
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

/* Before the first message of the handshake. */
static void name_server(const SSL *tls, int where, int value)
{
	const struct mqtt_transport *t = SSL_CTX_get_app_data(SSL_get_SSL_CTX(tls));
	void *name = is_ip(t->host) ? NULL : (void *)(uintptr_t)t->host;

	(void)value;
	if (where & SSL_CB_HANDSHAKE_START)
		SSL_set_tlsext_host_name((SSL *)(uintptr_t)tls, name);
}

/* Whatever the verdict is, it stays; the library forgets the reason. */
static int keep_reason(int good, X509_STORE_CTX *store)
{
	SSL *tls = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
	struct mqtt_transport *t = SSL_CTX_get_app_data(SSL_get_SSL_CTX(tls));

	if (!good)
		t->link.verify_error = X509_STORE_CTX_get_error(store);
	return good;
}

static bool set_host(SSL_CTX *context, const char *host)
{
	X509_VERIFY_PARAM *param = SSL_CTX_get0_param(context);

	X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return (is_ip(host) ? X509_VERIFY_PARAM_set1_ip_asc(param, host)
			    : X509_VERIFY_PARAM_set1_host(param, host, 0)) == 1;
}

int mqtt_tls_context(struct mqtt_transport *t, SSL_CTX **ret_context, struct outbox_error *err)
{
	const struct endpoint *e = &t->broker.endpoint;
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	int r;

	ERR_clear_error();
	if (!context || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
	    (e->verify && !set_host(context, t->host)))
		r = outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	else
		r = set_files(context, e, t->shown, err);
	if (r != OUTBOX_OK) {
		SSL_CTX_free(context);
		return r;
	}
	SSL_CTX_set_verify(context, e->verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE,
			   e->verify ? keep_reason : NULL);
	SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_app_data(context, t);
	SSL_CTX_set_info_callback(context, name_server);
	*ret_context = context;
	return OUTBOX_OK;
}

int mqtt_tls_fail(const struct mqtt_transport *t, struct outbox_error *err)
{
	const struct mqtt_link *link = &t->link;
	bool hung_up = ERR_GET_REASON(link->tls_error) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
	const char *text;

	if (link->verify_error != X509_V_OK)
		return outbox_fail_native(err, OUTBOX_EAUTH, link->verify_error, "%s: TLS: %s",
					  t->shown,
					  X509_verify_cert_error_string(link->verify_error));
	if (!link->tls_error)
		return OUTBOX_OK;
	text = ERR_reason_error_string(link->tls_error);
	return outbox_fail(err, link->answered || hung_up ? OUTBOX_ECONN : OUTBOX_EAUTH,
			   "%s: TLS: %s", t->shown, text ? text : "TLS failed");
}

/*
 * The library asks for write readiness all the time until the handshake is over; reading is enough, what it sends fits
 * the socket. A reset it takes for "try again", and finds the end of the stream then.
 */
int mqtt_tls_handshake(struct mqtt_transport *t, outbox_time deadline, struct outbox_error *err)
{
	short events = 0;

	for (;;) {
		const SSL *tls = mosquitto_ssl_get(t->client);
		int fd = mosquitto_socket(t->client), rc, n;

		if (tls && SSL_is_init_finished(tls))
			return OUTBOX_OK;
		rc = fd < 0 ? MOSQ_ERR_CONN_LOST : mosquitto_loop_read(t->client, 1);
		if (rc != MOSQ_ERR_SUCCESS || t->link.ended)
			return mqtt_client_fail(t, rc, err);
		if (tls && SSL_is_init_finished(tls))
			return OUTBOX_OK;
		n = socket_wait(fd, POLLIN, t->broker.clock, deadline, &events);
		if (n == 0)
			return outbox_fail(err, OUTBOX_ETIMEDOUT, "%s: TLS: no answer in time",
					   t->shown);
		if (n < 0)
			return mqtt_client_fail(t, MOSQ_ERR_ERRNO, err);
	}
}
