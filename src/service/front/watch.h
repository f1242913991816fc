/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Directories that clients watch: by a stream, or by asking again and again (watchers). Both end with their client, a
 * watcher when nobody asked for a while; what nobody takes in time is bounded and then lost, and they hear of that.
 * Run by atoll-front.
 */

#include <stdint.h>

#include "wire/service.h"

struct front;

/* Events of the launcher: something changed; some were lost; a sandbox has gone. */
void watch_on_change(struct front *front, const struct service_message *event);
void watch_on_lost(struct front *front, const struct service_message *event);
void watch_on_gone(struct front *front, const char *sandbox);

/* Signs of life, and watchers that nobody asks any more. */
void watch_tick(struct front *front);
