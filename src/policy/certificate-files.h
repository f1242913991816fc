/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How programs inside come to trust the session's authority without a command of anybody: the files to make, the places
 * that they are mounted over, and the variables that name them. Who reads which is in the tables. Tables only:
 * atoll-egress makes the content (egress/tls/certificates.h), the box mounts it.
 */

#include <stddef.h>

enum certificate_file {
	CERTIFICATE_AUTHORITY,     /* the session's certificate alone, PEM */
	CERTIFICATE_BUNDLE,        /* the host's certificates and the session's, PEM */
	CERTIFICATE_JAVA,          /* the same as a Java key store (JKS), password "changeit" */
	CERTIFICATE_FILE_COUNT,
};

/* Where they stand inside. */
extern const char *const certificate_file_paths[CERTIFICATE_FILE_COUNT];

enum { CERTIFICATE_FILE_MAX = 4 << 20 };

/* A variable that is set to the path of a file, unless the policy sets it. */
struct certificate_variable {
	const char *name;
	enum certificate_file file;
	const char *readers;     /* for people */
};

/* A file of the system that the made one is mounted over, where it exists inside. */
struct certificate_place {
	const char *path;
	enum certificate_file file;
	const char *readers;
};

extern const struct certificate_variable certificate_variables[];
extern const size_t certificate_variable_count;
extern const struct certificate_place certificate_places[];
extern const size_t certificate_place_count;

/* The bundle of the host's authorities, which SSL_CERT_FILE of this environment may name; NULL: there is none. */
const char *certificate_bundle_path(char *const *env);
