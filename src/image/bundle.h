/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What an image consists of: an OCI image layout (image-spec, image-layout.md), as a directory or a tarball of one, or
 * what `docker save` writes, which is a tarball with a manifest.json. Or it is no image: a tarball of files, or a
 * directory of them.
 */

#include "base/err.h"
#include "image/target.h"

enum { IMAGE_LAYERS_MAX = 256 };

/* Unpacks what fd is open on (O_RDONLY; a regular file or a directory). The number of layers, or negative with *err. */
int bundle_unpack(struct image_target *target, int fd, struct err *err) MUST_USE;
