/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One archive, unpacked into a target by libarchive: a tarball, or a layer of an image with its marks for what is gone
 * (image-spec, layer.md: whiteouts).
 */

#include "base/err.h"
#include "image/target.h"

struct archive;

enum layer_pass {
	LAYER_WHOLE,     /* all of it; ".wh.NAME" is a file like any other: of what is no layer */
	LAYER_MARKS,     /* only what the marks take away of the layers below */
	LAYER_ENTRIES,   /* all but the marks */
};

/* A reader for tar with the usual compressions, all done in this process; NULL: out of memory. archive_read_free(). */
struct archive *layer_reader(void) MUST_USE;

/* Goes through an open archive to its end. Negative with *err: the name that failed, and why. */
int layer_unpack(struct image_target *target, struct archive *archive, enum layer_pass pass, struct err *err) MUST_USE;
