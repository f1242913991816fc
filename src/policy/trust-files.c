/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/trust-files.h"

#include "base/cleanup.h"
#include "base/str.h"

const char *const trust_file_paths[TRUST_FILE_COUNT] = {
	[TRUST_AUTHORITY] = "/run/atoll/ca.pem",
	[TRUST_BUNDLE] = "/run/atoll/ca-bundle.pem",
	[TRUST_JAVA] = "/run/atoll/ca-bundle.jks",
};

/* Found by asking each of them: a mounted bundle is enough for GnuTLS, curl and Go, but OpenSSL looks for
 * hashes of names. */
const struct trust_variable trust_variables[] = {
	{ "SSL_CERT_FILE", TRUST_BUNDLE,
	  "OpenSSL (Python, Ruby, PHP, Perl), Go, rustls with native certificates, httpx" },
	{ "CURL_CA_BUNDLE", TRUST_BUNDLE, "curl, Python requests" },
	{ "REQUESTS_CA_BUNDLE", TRUST_BUNDLE, "Python requests, which brings a bundle of its own" },
	{ "PIP_CERT", TRUST_BUNDLE, "pip, which brings a requests of its own" },
	{ "NODE_EXTRA_CA_CERTS", TRUST_AUTHORITY, "Node and npm, which have their certificates built in" },
	{ "DENO_CERT", TRUST_AUTHORITY, "Deno" },
	{ "GIT_SSL_CAINFO", TRUST_BUNDLE, "git" },
	{ "CARGO_HTTP_CAINFO", TRUST_BUNDLE, "cargo" },
	{ "AWS_CA_BUNDLE", TRUST_BUNDLE, "AWS tools" },
	{ "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", TRUST_BUNDLE, "gRPC" },
	{ "NIX_SSL_CERT_FILE", TRUST_BUNDLE, "Nix" },
};
const size_t trust_variable_count = ARRAY_SIZE(trust_variables);

const struct trust_place trust_places[] = {
	{ "/etc/ssl/certs/ca-certificates.crt", TRUST_BUNDLE, "Debian, Arch: GnuTLS (wget, git), curl, Go" },
	{ "/etc/pki/tls/certs/ca-bundle.crt", TRUST_BUNDLE, "Fedora and its kin" },
	{ "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", TRUST_BUNDLE, "Fedora and its kin" },
	{ "/etc/ca-certificates/extracted/tls-ca-bundle.pem", TRUST_BUNDLE, "Arch" },
	{ "/var/lib/ca-certificates/ca-bundle.pem", TRUST_BUNDLE, "SUSE" },
	{ "/etc/ssl/ca-bundle.pem", TRUST_BUNDLE, "SUSE" },
	{ "/etc/ssl/cert.pem", TRUST_BUNDLE, "Alpine, and OpenSSL where it is built so" },
	{ "/etc/ssl/certs/java/cacerts", TRUST_JAVA, "Debian: Java" },
	{ "/etc/pki/ca-trust/extracted/java/cacerts", TRUST_JAVA, "Fedora and its kin: Java" },
	{ "/etc/ca-certificates/extracted/java-cacerts.jks", TRUST_JAVA, "Arch: Java" },
};
const size_t trust_place_count = ARRAY_SIZE(trust_places);

const char *trust_bundle_path(char *const *env)
{
	static const char variable[] = "SSL_CERT_FILE=";

	for (; *env; env++)
		if (str_has_prefix(*env, variable) && (*env)[sizeof variable - 1])
			return *env + sizeof variable - 1;
	for (size_t i = 0; i < trust_place_count; i++)
		if (trust_places[i].file == TRUST_BUNDLE && access(trust_places[i].path, R_OK) == 0)
			return trust_places[i].path;
	return NULL;
}
