/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How programs inside come to trust the session's authority without a command of anybody: the files to make, the places
 * that they are mounted over, and the variables that name them. Who reads which is in the tables. Tables only:
 * atoll-egress makes the content (egress/tls/certificates.h), the box mounts it.
 */

#include <stddef.h>

enum trust_file {
	TRUST_AUTHORITY,     /* the session's certificate alone, PEM */
	TRUST_BUNDLE,        /* the host's certificates and the session's, PEM */
	TRUST_JAVA,          /* the same as a Java key store (JKS), password "changeit" */
	TRUST_FILE_COUNT,
};

/* Where they stand inside. */
extern const char *const trust_file_paths[TRUST_FILE_COUNT];

enum { TRUST_FILE_MAX = 4 << 20 };

/* A variable that is set to the path of a file, unless the policy sets it. */
struct trust_variable {
	const char *name;
	enum trust_file file;
	const char *readers;     /* for people */
};

/* A file of the system that the made one is mounted over, where it exists inside. */
struct trust_place {
	const char *path;
	enum trust_file file;
	const char *readers;
};

extern const struct trust_variable trust_variables[];
extern const size_t trust_variable_count;
extern const struct trust_place trust_places[];
extern const size_t trust_place_count;

/* The bundle of the host's authorities, which SSL_CERT_FILE of this environment may name; NULL: there is none. */
const char *trust_bundle_path(char *const *env);
