/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The process of an `exec` by words: the container's own process, changed as the options say. It is read from JSON
 * like one of a file, so that the same rules hold.
 */

#include "prog/atoll-oci/job.h"

/* *ret_text (freed with free()) is the JSON. -EINVAL with *job->err for an option that is wrong. */
int words_to_process(const struct job *job, const struct oci_state *state, char **ret_text) MUST_USE;
