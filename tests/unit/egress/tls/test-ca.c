/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "egress/tls/alpn.h"
#include "egress/tls/ca.h"
#include "egress/tls/certificates.h"
#include "egress/tls/upstream.h"
#include "os/fd.h"

/* Handshakes in memory between the two sides that the gate has: its server, and its client in the place of a
 * program's. */

static struct ca *ca;
static SSL_CTX *client;
static uint64_t now_s;

static char *pem_of(const struct ca *of)
{
	struct buf pem;
	char *text;

	buf_init(&pem, 64 << 10);
	ca_put_pem(of, &pem);
	assert_int_equal(buf_error(&pem), 0);
	text = str_dup(buf_text(&pem));
	buf_done(&pem);
	return text;
}

static int setup(void **state)
{
	cleanup_free char *pem = NULL;

	now_s = (uint64_t)time(NULL);
	assert_int_equal(ca_new(&ca, now_s), 0);
	pem = pem_of(ca);
	return upstream_new(pem, &client);
}

static int teardown(void **state)
{
	SSL_CTX_free(client);
	ca_free(ca);
	return 0;
}

/* Both to the end or to an error, the gate allowing what is offered and in allowed. Whether both are done. */
static bool shake_hands_with(SSL *inside, SSL *gate, unsigned allowed)
{
	BIO *left, *right;
	int inside_done = 0, gate_done = 0;

	assert_int_equal(BIO_new_bio_pair(&left, 64 << 10, &right, 64 << 10), 1);
	SSL_set_bio(inside, left, left);
	SSL_set_bio(gate, right, right);
	for (int i = 0; i < 10 && (inside_done != 1 || gate_done != 1); i++) {
		inside_done = SSL_do_handshake(inside);
		gate_done = SSL_do_handshake(gate);
		if (gate_done != 1 && SSL_get_error(gate, gate_done) == SSL_ERROR_WANT_CLIENT_HELLO_CB)
			ca_allow(gate, ca_offered(gate) & allowed);
		ERR_clear_error();
	}
	return inside_done == 1 && gate_done == 1;
}

static bool shake_hands(SSL *inside, SSL *gate)
{
	return shake_hands_with(inside, gate, ALPN_HTTP1 | ALPN_HTTP2);
}

/* NULL when the program that asks for host is content with what the gate shows for served, else why not. */
static const char *connect_to(const char *host, const char *served, uint64_t at_s)
{
	SSL *inside, *gate;
	const char *problem = NULL;

	assert_int_equal(ca_accept(ca, served, at_s, &gate), 0);
	assert_int_equal(upstream_connect(client, host, ALPN_HTTP1, &inside), 0);
	if (!shake_hands(inside, gate))
		problem = upstream_problem(inside);
	else
		assert_true(SSL_version(inside) >= TLS1_2_VERSION);
	SSL_free(inside);
	SSL_free(gate);
	return problem;
}

static void test_trusted(void **state)
{
	static const char *const hosts[] = {
		"api.example.org",
		"localhost",
		"xn--bcher-kva.example",
		"a_b.example",
		"127.0.0.1",
		"2001:db8::1",
		"a-very-long-label-that-fills-much-of-it.another-long-label-that-does-so.example.org"
	};

	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		const char *problem = connect_to(hosts[i], hosts[i], now_s);

		if (problem)
			fail_msg("%s: %s", hosts[i], problem);
	}
}

/* What the client offers in ALPN, what the server speaks; what both agree on with the gate between them, 0: nothing. */
static unsigned agree(const char *offer, unsigned allowed)
{
	SSL *inside, *gate;
	unsigned chosen = 0;

	assert_int_equal(ca_accept(ca, "a.example", now_s, &gate), 0);
	assert_int_equal(upstream_connect(client, "a.example", ALPN_HTTP1, &inside), 0);
	assert_int_equal(SSL_set_alpn_protos(inside, (const unsigned char *)offer, (unsigned)strlen(offer)), 0);
	if (shake_hands_with(inside, gate, allowed)) {
		chosen = alpn_chosen(inside);
		assert_int_equal(alpn_chosen(gate), chosen);
	}
	SSL_free(inside);
	SSL_free(gate);
	return chosen;
}

static void test_protocols(void **state)
{
	enum { BOTH = ALPN_HTTP1 | ALPN_HTTP2 };

	assert_int_equal(agree("\x08http/1.1", BOTH), ALPN_HTTP1);
	assert_int_equal(agree("\x02h2", BOTH), ALPN_HTTP2);
	assert_int_equal(agree("\x08http/1.1\x02h2", BOTH), ALPN_HTTP2);
	assert_int_equal(agree("\x02h2\x08http/1.1", ALPN_HTTP1), ALPN_HTTP1);
	assert_int_equal(agree("\x02h3\x02h2\x08http/1.1", ALPN_HTTP2), ALPN_HTTP2);
	/* Nothing said is HTTP/1.1; what is not known here could not be judged. */
	assert_int_equal(agree("", BOTH), ALPN_HTTP1);
	assert_int_equal(agree("\x02h3", BOTH), 0);
	assert_int_equal(agree("\x08http/1.0\x06spdy/3", BOTH), 0);
}

static void test_lists(void **state)
{
	unsigned char list[ALPN_LIST_MAX];

	assert_int_equal(alpn_format(ALPN_HTTP1 | ALPN_HTTP2, list), 12);
	assert_memory_equal(list, "\x02h2\x08http/1.1", 12);
	assert_int_equal(alpn_parse(list, 12), ALPN_HTTP1 | ALPN_HTTP2);
	assert_int_equal(alpn_format(ALPN_HTTP2, list), 3);
	assert_int_equal(alpn_format(0, list), 0);
	assert_int_equal(alpn_parse(list, 0), ALPN_HTTP1);
	assert_int_equal(alpn_parse((const unsigned char *)"\x08http", 5), 0);
	assert_int_equal(alpn_parse((const unsigned char *)"\x02h2\xff", 4), ALPN_HTTP2);
	assert_int_equal(alpn_parse((const unsigned char *)"\x02h2\xffx", 5), 0);
}

static void test_another_name(void **state)
{
	SSL *inside, *gate;

	/* The client says the name of another host than the one that the connection leads to. */
	assert_non_null(connect_to("b.example", "a.example", now_s));
	/* The certificate is of no use for another name, whatever the client says. */
	assert_int_equal(ca_accept(ca, "a.example", now_s, &gate), 0);
	assert_int_equal(upstream_connect(client, "b.example", ALPN_HTTP1, &inside), 0);
	assert_int_equal(SSL_set_tlsext_host_name(inside, "a.example"), 1);
	assert_false(shake_hands(inside, gate));
	assert_non_null(strstr(upstream_problem(inside), "hostname mismatch"));
	SSL_free(inside);
	SSL_free(gate);
}

static void test_old_versions_are_refused(void **state)
{
	SSL *inside, *gate;

	assert_int_equal(ca_accept(ca, "a.example", now_s, &gate), 0);
	assert_int_equal(upstream_connect(client, "a.example", ALPN_HTTP1, &inside), 0);
	SSL_set_security_level(inside, 0);
	assert_int_equal(SSL_set_min_proto_version(inside, TLS1_VERSION), 1);
	assert_int_equal(SSL_set_max_proto_version(inside, TLS1_1_VERSION), 1);
	assert_false(shake_hands(inside, gate));
	SSL_free(inside);
	SSL_free(gate);
}

/* Another session's authority is trusted by nobody here. */
static void test_another_authority(void **state)
{
	struct ca *other;
	SSL *inside, *gate;

	assert_int_equal(ca_new(&other, now_s), 0);
	assert_int_equal(ca_accept(other, "a.example", now_s, &gate), 0);
	assert_int_equal(upstream_connect(client, "a.example", ALPN_HTTP1, &inside), 0);
	assert_false(shake_hands(inside, gate));
	assert_non_null(strstr(upstream_problem(inside), "unable to get local issuer"));
	SSL_free(inside);
	SSL_free(gate);
	ca_free(other);
}

static void test_times(void **state)
{
	enum { DAY_S = 24 * 60 * 60 };

	/* Made anew when it is old, so that a long session goes on; what was made long ago is refused. */
	assert_null(connect_to("time.example", "time.example", now_s));
	assert_non_null(connect_to("late.example", "late.example", now_s - (uint64_t)40 * DAY_S));
	assert_null(connect_to("late.example", "late.example", now_s));
	/* A client's clock may be some hours behind, not days. */
	assert_null(connect_to("ahead.example", "ahead.example", now_s + (uint64_t)20 * 60 * 60));
	assert_non_null(strstr(connect_to("early.example", "early.example", now_s + (uint64_t)3 * DAY_S),
			       "not yet valid"));
}

static void get_serial(const char *host, uint64_t at_s, char out[64])
{
	SSL *gate;
	BIGNUM *number;
	char *hex;

	assert_int_equal(ca_accept(ca, host, at_s, &gate), 0);
	number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(SSL_get_certificate(gate)), NULL);
	hex = BN_bn2hex(number);
	assert_int_equal(str_copy(out, 64, hex), 0);
	OPENSSL_free(hex);
	BN_free(number);
	SSL_free(gate);
}

static void test_leaves_are_kept_and_bounded(void **state)
{
	char first[64], again[64], host[32];

	get_serial("kept.example", now_s, first);
	get_serial("kept.example", now_s + 100, again);
	assert_string_equal(first, again);
	for (size_t i = 0; i < CA_LEAVES_MAX + 10; i++) {
		assert_int_equal(str_format(host, sizeof host, "h%zu.example", i), 0);
		get_serial(host, now_s, again);
		if (i % 100 == 0)
			get_serial("kept.example", now_s, again);
	}
	get_serial("kept.example", now_s, again);
	assert_string_equal(first, again);
	get_serial("h1.example", now_s, first);
	assert_null(connect_to("h1.example", "h1.example", now_s));
	get_serial("kept.example", now_s + 21 * 24 * 60 * 60, first);
	assert_string_not_equal(first, again);
}

static void test_no_hosts(void **state)
{
	static const char *const bad[] = { "",	  "a,DNS:b", "*.example", "A.example", "a b",
					   "a\n", "a/b",     "a:b",	  "@section" };
	SSL *ssl;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(ca_accept(ca, bad[i], now_s, &ssl), -EINVAL);
}

static void test_certificate(void **state)
{
	cleanup_free char *pem = pem_of(ca);
	BIO *bio = BIO_new_mem_buf(pem, -1);
	X509 *certificate;

	assert_null(strstr(pem, "PRIVATE"));
	assert_true(str_has_prefix(pem, "-----BEGIN CERTIFICATE-----"));
	certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	assert_non_null(certificate);
	assert_int_equal(X509_check_ca(certificate), 1);
	assert_int_equal(X509_get_pathlen(certificate), 0);
	assert_int_equal(X509_get_key_usage(certificate), KU_KEY_CERT_SIGN | KU_CRL_SIGN);
	X509_free(certificate);
	BIO_free(bio);
}

static void test_bundles(void **state)
{
	cleanup_free char *pem = pem_of(ca), *both = str_printf("# a comment\n%s", pem);
	cleanup_buf struct buf out;

	buf_init(&out, CERTIFICATE_FILE_MAX);
	assert_int_equal(certificates_format(CERTIFICATE_AUTHORITY, pem, "system", now_s, &out), 0);
	assert_string_equal(buf_text(&out), pem);
	buf_reset(&out);
	assert_int_equal(certificates_format(CERTIFICATE_BUNDLE, pem, "system", now_s, &out), 0);
	assert_true(str_has_prefix(buf_text(&out), "system\n-----BEGIN"));
	buf_reset(&out);
	assert_int_equal(certificates_format(CERTIFICATE_JAVA, pem, both, now_s, &out), 0);
	assert_memory_equal(out.bytes, "\xfe\xed\xfe\xed\0\0\0\2\0\0\0\2\0\0\0\2\0\rcertificate-1", 31);
	buf_reset(&out);
	assert_int_equal(certificates_format(CERTIFICATE_JAVA, pem, "", now_s, &out), 0);
	assert_memory_equal(out.bytes, "\xfe\xed\xfe\xed\0\0\0\2\0\0\0\1", 12);
	buf_reset(&out);
	assert_int_equal(certificates_format(CERTIFICATE_JAVA, "", both, now_s, &out), -EINVAL);
	assert_int_equal(certificates_format(CERTIFICATE_JAVA, pem,
				      "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n", now_s,
				      &out),
			 -EINVAL);
}

static void test_no_authorities(void **state)
{
	SSL_CTX *context;

	assert_int_equal(upstream_new("", &context), -ENOENT);
	assert_int_equal(upstream_new("no certificate\n", &context), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trusted),
		cmocka_unit_test(test_protocols),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_another_name),
		cmocka_unit_test(test_old_versions_are_refused),
		cmocka_unit_test(test_another_authority),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_leaves_are_kept_and_bounded),
		cmocka_unit_test(test_no_hosts),
		cmocka_unit_test(test_certificate),
		cmocka_unit_test(test_bundles),
		cmocka_unit_test(test_no_authorities),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
