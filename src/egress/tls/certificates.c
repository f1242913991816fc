/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/tls/certificates.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdbool.h>
#include <string.h>

/* --- JKS: sun.security.provider.JavaKeyStore, version 2; big-endian; certificates only. --- */

static const char jks_password[] = "changeit";

static void put_be(struct buf *out, uint64_t value, size_t bytes)
{
	for (size_t i = bytes; i-- > 0;)
		buf_put_char(out, (char)(value >> (8 * i)));
}

static void put_utf(struct buf *out, const char *text)
{
	put_be(out, strlen(text), 2);
	buf_put_text(out, text);
}

static void put_entry(const unsigned char *der, long size, size_t number, uint64_t now_s, struct buf *out)
{
	char alias[32];

	snprintf(alias, sizeof alias, "certificate-%zu", number);
	put_be(out, 2, 4);                 /* a trusted certificate */
	put_utf(out, alias);
	put_be(out, now_s * 1000, 8);
	put_utf(out, "X.509");
	put_be(out, (uint64_t)size, 4);
	buf_put(out, der, (size_t)size);
}

/* One sequence and nothing else. More is not asked: to read all of a bundle takes OpenSSL 20 ms at every start. */
static bool is_certificate(const unsigned char *der, long size)
{
	const unsigned char *at = der;
	int tag, class;
	long length;

	return !(ASN1_get_object(&at, &length, &tag, &class, size) & 0x80) && tag == V_ASN1_SEQUENCE &&
	       at + length == der + size;
}

/* Every certificate of a PEM text; *count goes on. What else stands there is passed over, as OpenSSL does. */
static int put_entries(const char *pem, uint64_t now_s, size_t *count, struct buf *out)
{
	BIO *memory = BIO_new_mem_buf(pem, -1);
	unsigned char *der;
	long size;
	int r = memory ? 0 : -ENOMEM;

	while (r == 0 && PEM_bytes_read_bio(&der, &size, NULL, PEM_STRING_X509, memory, NULL, NULL)) {
		if (is_certificate(der, size))
			put_entry(der, size, ++*count, now_s, out);
		else
			r = -EINVAL;
		OPENSSL_free(der);
	}
	/* The end of the text is an error to the reader; anything else is a certificate that is none. */
	if (r == 0 && ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
		r = -EINVAL;
	ERR_clear_error();
	BIO_free(memory);
	return r;
}

/* The digest that tells damage from a wrong password: SHA-1 of the password in UTF-16, a phrase, and the content. */
static int put_digest(struct buf *out)
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned size;
	int is_done = context && EVP_DigestInit_ex(context, EVP_sha1(), NULL);

	for (const char *at = jks_password; is_done && *at; at++)
		is_done = EVP_DigestUpdate(context, (const char[]){ 0, *at }, 2);
	is_done = is_done && EVP_DigestUpdate(context, "Mighty Aphrodite", 16) &&
		  EVP_DigestUpdate(context, out->bytes, out->size) && EVP_DigestFinal_ex(context, digest, &size);
	EVP_MD_CTX_free(context);
	if (is_done)
		buf_put(out, digest, size);
	return is_done ? 0 : -ENOMEM;
}

static int format_java(const char *authority, const char *system, uint64_t now_s, struct buf *out)
{
	cleanup_buf struct buf entries;
	size_t count = 0;
	int r;

	buf_init(&entries, CERTIFICATE_FILE_MAX);
	r = put_entries(authority, now_s, &count, &entries);
	if (r == 0 && count != 1)
		r = -EINVAL;
	if (r == 0)
		r = put_entries(system, now_s, &count, &entries);
	if (r == 0)
		r = buf_error(&entries);
	if (r < 0)
		return r;
	put_be(out, 0xfeedfeed, 4);
	put_be(out, 2, 4);
	put_be(out, count, 4);
	buf_put(out, entries.bytes, entries.size);
	return buf_error(out) < 0 ? buf_error(out) : put_digest(out);
}

int certificates_format(enum certificate_file file, const char *authority, const char *system, uint64_t now_s,
			struct buf *out)
{
	size_t size = strlen(system);

	if (strlen(authority) + size > CERTIFICATE_FILE_MAX)
		return -EFBIG;
	if (file == CERTIFICATE_JAVA)
		return format_java(authority, system, now_s, out);
	if (file == CERTIFICATE_BUNDLE) {
		buf_put(out, system, size);
		if (size && system[size - 1] != '\n')
			buf_put_char(out, '\n');
	}
	buf_put_text(out, authority);
	return buf_error(out);
}
