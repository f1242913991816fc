/* SPDX-License-Identifier: Apache-2.0 */
#include "detect/noise.h"

#include <errno.h>

#include "build/stage-query.h"

int noise_look(const struct run_request *request, struct noise_count *ret_count)
{
	struct noise_count count = { 0 };
	int r = stage_query(request, "noise", STAGE_QUERY_MS, &count, sizeof count);

	if (r == 0 && (count.sampled > NOISE_FILES_MAX || count.scrambled > count.sampled))
		r = -EBADMSG;
	if (r == 0)
		*ret_count = count;
	return r;
}
