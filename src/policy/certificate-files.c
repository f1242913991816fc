/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/certificate-files.h"

#include "base/cleanup.h"
#include "base/str.h"

const char *const certificate_file_paths[CERTIFICATE_FILE_COUNT] = {
	[CERTIFICATE_AUTHORITY] = "/run/atoll/ca.pem",
	[CERTIFICATE_BUNDLE] = "/run/atoll/ca-bundle.pem",
	[CERTIFICATE_JAVA] = "/run/atoll/ca-bundle.jks",
};

/* Found by asking each of them: a mounted bundle is enough for GnuTLS, curl and Go, but OpenSSL looks for
 * hashes of names. */
const struct certificate_variable certificate_variables[] = {
	{ "SSL_CERT_FILE", CERTIFICATE_BUNDLE,
	  "OpenSSL (Python, Ruby, PHP, Perl), Go, rustls with native certificates, httpx" },
	{ "CURL_CA_BUNDLE", CERTIFICATE_BUNDLE, "curl, Python requests" },
	{ "REQUESTS_CA_BUNDLE", CERTIFICATE_BUNDLE, "Python requests, which brings a bundle of its own" },
	{ "PIP_CERT", CERTIFICATE_BUNDLE, "pip, which brings a requests of its own" },
	{ "NODE_EXTRA_CA_CERTS", CERTIFICATE_AUTHORITY, "Node and npm, which have their certificates built in" },
	{ "DENO_CERT", CERTIFICATE_AUTHORITY, "Deno" },
	{ "GIT_SSL_CAINFO", CERTIFICATE_BUNDLE, "git" },
	{ "CARGO_HTTP_CAINFO", CERTIFICATE_BUNDLE, "cargo" },
	{ "AWS_CA_BUNDLE", CERTIFICATE_BUNDLE, "AWS tools" },
	{ "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", CERTIFICATE_BUNDLE, "gRPC" },
	{ "NIX_SSL_CERT_FILE", CERTIFICATE_BUNDLE, "Nix" },
};
const size_t certificate_variable_count = ARRAY_SIZE(certificate_variables);

const struct certificate_place certificate_places[] = {
	{ "/etc/ssl/certs/ca-certificates.crt", CERTIFICATE_BUNDLE, "Debian, Arch: GnuTLS (wget, git), curl, Go" },
	{ "/etc/pki/tls/certs/ca-bundle.crt", CERTIFICATE_BUNDLE, "Fedora and its kin" },
	{ "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", CERTIFICATE_BUNDLE, "Fedora and its kin" },
	{ "/etc/ca-certificates/extracted/tls-ca-bundle.pem", CERTIFICATE_BUNDLE, "Arch" },
	{ "/var/lib/ca-certificates/ca-bundle.pem", CERTIFICATE_BUNDLE, "SUSE" },
	{ "/etc/ssl/ca-bundle.pem", CERTIFICATE_BUNDLE, "SUSE" },
	{ "/etc/ssl/cert.pem", CERTIFICATE_BUNDLE, "Alpine, and OpenSSL where it is built so" },
	{ "/etc/ssl/certs/java/cacerts", CERTIFICATE_JAVA, "Debian: Java" },
	{ "/etc/pki/ca-trust/extracted/java/cacerts", CERTIFICATE_JAVA, "Fedora and its kin: Java" },
	{ "/etc/ca-certificates/extracted/java-cacerts.jks", CERTIFICATE_JAVA, "Arch: Java" },
};
const size_t certificate_place_count = ARRAY_SIZE(certificate_places);

const char *certificate_bundle_path(char *const *env)
{
	const char *named = env_find(env, "SSL_CERT_FILE");

	if (named && *named)
		return named;
	for (size_t i = 0; i < certificate_place_count; i++)
		if (certificate_places[i].file == CERTIFICATE_BUNDLE && access(certificate_places[i].path, R_OK) == 0)
			return certificate_places[i].path;
	return NULL;
}
