/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is done to the network of a sandbox where something was seen in it: by the network gate, which detect/ knows
 * nothing of. Filled in by box/. Run by atoll-box.
 */

struct reactions {
	/*
	 * Nothing goes out any more. 0: under way, or there is no network; -EBUSY: not now; another negative: it cannot
	 * be.
	 */
	int (*close_network)(void *context);
	/* 0: the network can get another policy; 1: there is none; -EBUSY: it gets one already. */
	int (*can_change_network)(void *context);
	/* snapshot_fd (borrowed): a sealed memfd. 0: under way; negative: it cannot be. After the one above. */
	int (*change_network)(void *context, int snapshot_fd);
	void *context;
};
