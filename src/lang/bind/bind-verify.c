/* SPDX-License-Identifier: Apache-2.0 */
#include "base/names.h"
#include "lang/bind/bind-external.h"
#include "lang/bind/bind.h"

/* What findings lead to: one word for a severity, or one for each confidence; what is not said is noted. */

static bool bind_action(struct binder *binder, const struct node *node, unsigned sureness, uint64_t *packed)
{
	int action = node->kind == NODE_SCALAR ? names_find(verify_action_names, VERIFY_ACTION_COUNT, node->text) : -1;

	if (action < 0) {
		bind_expected(binder, node, "one of off, note, dry-run, ask, deny");
		return false;
	}
	*packed = (*packed & ~((uint64_t)0xff << 8 * sureness)) | (uint64_t)action << 8 * sureness;
	return true;
}

static bool bind_each(struct binder *binder, const struct node *node, uint64_t *packed)
{
	for (const struct node *key = node->first; key; key = key->next) {
		int sureness = names_find(verify_sureness_names, VERIFY_SURENESS_COUNT, key->text);

		if (sureness < 0) {
			diag_add(binder->diags, key->place,
				"\"%.60s\" is no confidence; there are possible, likely and certain",
				 key->text);
			return false;
		}
		if (!key->value || !bind_action(binder, key->value, (unsigned)sureness, packed))
			return false;
	}
	return true;
}

static void bind_finding(struct binder *binder, const struct key *key, const struct node *node)
{
	static const char *const ids[VERIFY_ROW_COUNT] = { "verify.low", "verify.medium", "verify.high",
							   "verify.critical", "verify.unknown", "verify.contained" };
	uint64_t packed = VERIFY_NOTE * 0x010101;
	bool is_good = node->kind != NODE_LIST;

	if (node->kind == NODE_MAP)
		is_good = bind_each(binder, node, &packed);
	for (unsigned sureness = 0; node->kind != NODE_MAP && is_good && sureness < VERIFY_SURENESS_COUNT; sureness++)
		is_good = bind_action(binder, node, sureness, &packed);
	if (node->kind == NODE_LIST)
		bind_expected(binder, node, "an action, or a mapping of possible, likely and certain to actions");
	if (is_good)
		binder->scalars[key->value] = (struct draft_scalar){
			.is_set = true, .value = packed, .place = node->place, .id = ids[key->value - SCALAR_VERIFY],
			.text = node->kind == NODE_SCALAR ? node->text : "",
		};
}

const struct key verify_keys[] = {
	{ "low", KEY_ANY, bind_finding, .value = SCALAR_VERIFY + VERIFY_LOW },
	{ "medium", KEY_ANY, bind_finding, .value = SCALAR_VERIFY + VERIFY_MEDIUM },
	{ "high", KEY_ANY, bind_finding, .value = SCALAR_VERIFY + VERIFY_HIGH },
	{ "critical", KEY_ANY, bind_finding, .value = SCALAR_VERIFY + VERIFY_CRITICAL },
	{ "unknown", KEY_ANY, bind_finding, .value = SCALAR_VERIFY + VERIFY_UNKNOWN },
	{ "contained", KEY_ANY, bind_finding, .value = SCALAR_VERIFY + VERIFY_CONTAINED },
	{ "external", KEY_FREE, bind_external },
};
const size_t verify_key_count = ARRAY_SIZE(verify_keys);
