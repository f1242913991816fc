/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/tls/ca.h"

#include <arpa/inet.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "base/str.h"
#include "egress/tls/alpn.h"

enum {
	DAY_S = 24 * 60 * 60,
	CA_DAYS = 365,
	LEAF_DAYS = 30,
	LEAF_RENEW_DAYS = 20,
	SERIAL_BITS = 127,
	HOST_SIZE = 254,
	CN_MAX = 64,   /* ub-common-name, RFC 5280 A.1 */
};

struct leaf {
	char host[HOST_SIZE];
	X509 *certificate;      /* owned */
	uint64_t made_s, used;
};

struct ca {
	EVP_PKEY *key, *leaf_key;   /* owned */
	X509 *certificate;          /* owned */
	SSL_CTX *context;           /* owned: what all connections have in common; NULL before the first */
	struct leaf leaves[CA_LEAVES_MAX];
	size_t leaf_count;
	uint64_t uses;
};

static int visit_index = -1;

/* What a connection is about; hangs on its SSL, which frees it. */
struct visit {
	char host[HOST_SIZE];
	unsigned offered, allowed;   /* enum alpn; allowed 0: not decided yet */
};

static int select_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_size, const unsigned char *in,
			   unsigned in_size, void *context)
{
	const struct visit *visit = SSL_get_ex_data(ssl, visit_index);
	unsigned char list[ALPN_LIST_MAX];
	unsigned size = alpn_format(visit->allowed, list);
	unsigned char *chosen;

	/* The answer may point into either list; only the client's lives on. */
	if (SSL_select_next_proto(&chosen, out_size, list, size, in, in_size) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = memmem(in, in_size, chosen, *out_size);
	return *out ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* Again for the hello that counts: after a retry (RFC 8446 4.1.2) it is another one than the first. */
static int check_name(SSL *ssl, int *alert, void *context)
{
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	const struct visit *visit = SSL_get_ex_data(ssl, visit_index);

	if (!name || strcasecmp(name, visit->host) == 0)
		return SSL_TLSEXT_ERR_OK;
	*alert = SSL_AD_UNRECOGNIZED_NAME;
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* The handshake stands still here until ca_allow(). */
static int look_at_hello(SSL *ssl, int *alert, void *context)
{
	struct visit *visit = SSL_get_ex_data(ssl, visit_index);
	const unsigned char *list;
	size_t size;

	if (visit->allowed)
		return SSL_CLIENT_HELLO_SUCCESS;
	visit->offered = ALPN_HTTP1;
	/* Two bytes of length come before the list. */
	if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &list, &size) == 1)
		visit->offered = size > 2 ? alpn_parse(list + 2, size - 2) : 0;
	if (visit->offered)
		return SSL_CLIENT_HELLO_RETRY;
	*alert = SSL_AD_NO_APPLICATION_PROTOCOL;
	return SSL_CLIENT_HELLO_ERROR;
}

static void free_visit(void *parent, void *visit, CRYPTO_EX_DATA *data, int index, long argl, void *argp)
{
	free(visit);
}

unsigned ca_offered(const SSL *ssl)
{
	const struct visit *visit = SSL_get_ex_data(ssl, visit_index);

	return visit->offered;
}

void ca_allow(SSL *ssl, unsigned protocols)
{
	struct visit *visit = SSL_get_ex_data(ssl, visit_index);

	visit->allowed = protocols;
}

static SSL_CTX *make_context(void)
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());

	if (!context)
		return NULL;
	/* A session that is taken up again would skip the certificate, and with it the name. */
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_num_tickets(context, 0);
	SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
				  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	/* The head of a record and the rest of it in one call. */
	SSL_CTX_set_read_ahead(context, 1);
	SSL_CTX_set_alpn_select_cb(context, select_protocol, NULL);
	SSL_CTX_set_tlsext_servername_callback(context, check_name);
	SSL_CTX_set_client_hello_cb(context, look_at_hello, NULL);
	if (visit_index < 0)
		visit_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, free_visit);
	if (visit_index < 0 || !SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION)) {
		SSL_CTX_free(context);
		return NULL;
	}
	return context;
}

static bool add_extension(X509 *certificate, X509 *issuer, int kind, const char *value)
{
	X509V3_CTX context;
	X509_EXTENSION *extension;
	bool is_added;

	X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
	is_added = extension && X509_add_ext(certificate, extension, -1);
	X509_EXTENSION_free(extension);
	return is_added;
}

static bool set_serial(X509 *certificate)
{
	BIGNUM *serial = BN_new();
	bool is_set = serial && BN_rand(serial, SERIAL_BITS, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) &&
		      BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(certificate));

	BN_free(serial);
	return is_set;
}

static bool set_name(X509_NAME *name, const char *text)
{
	return X509_NAME_add_entry_by_txt(name, "O", MBSTRING_UTF8,
					  (const unsigned char *)"atoll (this sandbox only)", -1, -1, 0) &&
	       X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)text, -1, -1, 0);
}

/* What every certificate here has: a version, a serial number, a name, a time and a key. */
static X509 *begin_certificate(const char *name, EVP_PKEY *key, uint64_t now_s, long days)
{
	X509 *certificate = X509_new();
	time_t from = (time_t)(now_s - DAY_S);

	if (certificate && X509_set_version(certificate, X509_VERSION_3) && set_serial(certificate) &&
	    set_name(X509_get_subject_name(certificate), name) && X509_set_pubkey(certificate, key) &&
	    X509_time_adj_ex(X509_getm_notBefore(certificate), 0, 0, &from) &&
	    X509_time_adj_ex(X509_getm_notAfter(certificate), (int)days + 1, 0, &from))
		return certificate;
	X509_free(certificate);
	return NULL;
}

/* The random part lets two sessions' authorities, both in a log, be told apart, and keeps caches from mixing
 * them up. */
static X509 *make_authority(EVP_PKEY *key, uint64_t now_s)
{
	char name[CN_MAX];
	uint32_t number;
	X509 *certificate = NULL;

	if (RAND_bytes((unsigned char *)&number, sizeof number) == 1 &&
	    str_format(name, sizeof name, "atoll session %08x", number) == 0)
		certificate = begin_certificate(name, key, now_s, CA_DAYS);
	if (certificate && X509_set_issuer_name(certificate, X509_get_subject_name(certificate)) &&
	    add_extension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
	    add_extension(certificate, certificate, NID_key_usage, "critical,keyCertSign,cRLSign") &&
	    add_extension(certificate, certificate, NID_subject_key_identifier, "hash") &&
	    X509_sign(certificate, key, EVP_sha256()))
		return certificate;
	X509_free(certificate);
	return NULL;
}

int ca_new(struct ca **ret_ca, uint64_t now_s)
{
	struct ca *ca = calloc(1, sizeof *ca);

	if (!ca)
		return -ENOMEM;
	ca->key = EVP_EC_gen("P-256");
	ca->leaf_key = EVP_EC_gen("P-256");
	ca->certificate = ca->key ? make_authority(ca->key, now_s) : NULL;
	if (!ca->leaf_key || !ca->certificate) {
		ca_free(ca);
		return -EIO;
	}
	*ret_ca = ca;
	return 0;
}

void ca_free(struct ca *ca)
{
	if (!ca)
		return;
	for (size_t i = 0; i < ca->leaf_count; i++)
		X509_free(ca->leaves[i].certificate);
	SSL_CTX_free(ca->context);
	X509_free(ca->certificate);
	EVP_PKEY_free(ca->leaf_key);
	EVP_PKEY_free(ca->key);
	free(ca);
}

void ca_put_pem(const struct ca *ca, struct buf *out)
{
	BIO *memory = BIO_new(BIO_s_mem());
	char *text;
	long size = memory && PEM_write_bio_X509(memory, ca->certificate) ? BIO_get_mem_data(memory, &text) : 0;

	if (size > 0)
		buf_put(out, text, (size_t)size);
	else
		out->error = -ENOMEM;
	BIO_free(memory);
}

/* "DNS:…" or "IP:…", for a host that has none of the characters which mean something in OpenSSL's notation. */
static int format_name(const char *host, char out[HOST_SIZE + 8])
{
	uint8_t address[16];
	bool is_address = inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;

	if (!*host || strlen(host) >= HOST_SIZE ||
	    host[strspn(host, is_address ? "0123456789abcdefABCDEF.:" : "abcdefghijklmnopqrstuvwxyz0123456789-_.")])
		return -EINVAL;
	return str_format(out, HOST_SIZE + 8, "%s:%s", is_address ? "IP" : "DNS", host);
}

static X509 *make_leaf(struct ca *ca, const char *host, const char *name, uint64_t now_s)
{
	X509 *certificate = begin_certificate(strlen(host) <= CN_MAX ? host : "host", ca->leaf_key, now_s, LEAF_DAYS);

	if (certificate && X509_set_issuer_name(certificate, X509_get_subject_name(ca->certificate)) &&
	    add_extension(certificate, ca->certificate, NID_basic_constraints, "critical,CA:FALSE") &&
	    add_extension(certificate, ca->certificate, NID_key_usage, "critical,digitalSignature") &&
	    add_extension(certificate, ca->certificate, NID_ext_key_usage, "serverAuth") &&
	    add_extension(certificate, ca->certificate, NID_subject_alt_name, name) &&
	    add_extension(certificate, ca->certificate, NID_authority_key_identifier, "keyid") &&
	    X509_sign(certificate, ca->key, EVP_sha256()))
		return certificate;
	X509_free(certificate);
	return NULL;
}

/* The place for a host: its own, a free one, or that of the leaf which was not used for the longest time. */
static struct leaf *find_leaf(struct ca *ca, const char *host)
{
	struct leaf *oldest = &ca->leaves[0];

	for (size_t i = 0; i < ca->leaf_count; i++) {
		if (str_equal(ca->leaves[i].host, host))
			return &ca->leaves[i];
		if (ca->leaves[i].used < oldest->used)
			oldest = &ca->leaves[i];
	}
	if (ca->leaf_count < CA_LEAVES_MAX)
		return &ca->leaves[ca->leaf_count++];
	X509_free(oldest->certificate);
	*oldest = (struct leaf){ 0 };
	return oldest;
}

static int get_leaf(struct ca *ca, const char *host, uint64_t now_s, X509 **ret_certificate)
{
	char name[HOST_SIZE + 8];
	struct leaf *leaf;
	int r = format_name(host, name);

	if (r < 0)
		return r;
	leaf = find_leaf(ca, host);
	if (!leaf->certificate || now_s < leaf->made_s || now_s - leaf->made_s > (uint64_t)LEAF_RENEW_DAYS * DAY_S) {
		X509_free(leaf->certificate);
		leaf->certificate = make_leaf(ca, host, name, now_s);
		leaf->made_s = now_s;
		r = str_copy(leaf->host, sizeof leaf->host, host);
	}
	leaf->used = ++ca->uses;
	*ret_certificate = leaf->certificate;
	return leaf->certificate ? r : -EIO;
}

int ca_accept(struct ca *ca, const char *host, uint64_t now_s, SSL **ret_ssl)
{
	X509 *certificate;
	struct visit *visit;
	SSL *ssl;
	int r = get_leaf(ca, host, now_s, &certificate);

	if (r < 0)
		return r;
	/* Not in ca_new(), for which a start waits. */
	if (!ca->context)
		ca->context = make_context();
	ssl = ca->context ? SSL_new(ca->context) : NULL;
	visit = calloc(1, sizeof *visit);
	if (!ssl || !visit || str_copy(visit->host, sizeof visit->host, host) < 0 ||
	    !SSL_set_ex_data(ssl, visit_index, visit)) {
		free(visit);
		SSL_free(ssl);
		return -ENOMEM;
	}
	/* visit now goes with ssl. */
	if (SSL_use_certificate(ssl, certificate) != 1 || SSL_use_PrivateKey(ssl, ca->leaf_key) != 1) {
		SSL_free(ssl);
		return -EIO;
	}
	SSL_set_accept_state(ssl);
	*ret_ssl = ssl;
	return 0;
}
