/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the table of fields cannot say of a config.json: values that must fit one another. It asks nothing of the
 * machine. Used by config.c.
 */

#include "oci/config/config.h"

/* 0, or -EINVAL with *err naming the first field that cannot mean what it says. */
int oci_config_check(const struct oci_config *config, struct err *err) MUST_USE;

/* The same of a process alone, whose arguments must be there. */
int oci_process_check(const struct oci_process *process, struct err *err) MUST_USE;
