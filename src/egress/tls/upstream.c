/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/tls/upstream.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdbool.h>

#include "egress/tls/alpn.h"

static SSL_CTX *make_context(void)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());

	if (!context)
		return NULL;
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
				  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	/* The head of a record and the rest of it in one call. */
	SSL_CTX_set_read_ahead(context, 1);
	if (!SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION)) {
		SSL_CTX_free(context);
		return NULL;
	}
	return context;
}

/* How many of them; what is no certificate ends the text, as it does for OpenSSL's own reader. */
static size_t add_authorities(X509_STORE *store, BIO *text)
{
	X509 *certificate;
	size_t count = 0;

	while ((certificate = PEM_read_bio_X509_AUX(text, NULL, NULL, NULL))) {
		count += X509_STORE_add_cert(store, certificate) == 1;
		X509_free(certificate);
	}
	ERR_clear_error();
	return count;
}

int upstream_new(const char *bundle, SSL_CTX **ret_context)
{
	SSL_CTX *context = make_context();
	BIO *text = BIO_new_mem_buf(bundle, -1);
	size_t count = context && text ? add_authorities(SSL_CTX_get_cert_store(context), text) : 0;
	int r = !context || !text ? -ENOMEM : !count ? -ENOENT : 0;

	BIO_free(text);
	if (r < 0)
		SSL_CTX_free(context);
	else
		*ret_context = context;
	return r;
}

int upstream_connect(SSL_CTX *context, const char *host, unsigned protocols, SSL **ret_ssl)
{
	unsigned char list[ALPN_LIST_MAX];
	unsigned size = alpn_format(protocols, list);
	SSL *ssl = SSL_new(context);
	uint8_t address[16];
	bool is_address = inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
	int is_set;

	if (!ssl)
		return -ENOMEM;
	if (is_address)
		is_set = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
	else
		is_set = SSL_set1_host(ssl, host) && SSL_set_tlsext_host_name(ssl, host);
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	/* 0: success, in this function alone. */
	if (!is_set || !*host || !size || SSL_set_alpn_protos(ssl, list, size) != 0) {
		SSL_free(ssl);
		return -EINVAL;
	}
	SSL_set_connect_state(ssl);
	*ret_ssl = ssl;
	return 0;
}

const char *upstream_problem(const SSL *ssl)
{
	long result = SSL_get_verify_result(ssl);

	return result == X509_V_OK ? "the TLS handshake with the server failed" : X509_verify_cert_error_string(result);
}
