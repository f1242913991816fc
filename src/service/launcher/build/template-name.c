/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/build/template-name.h"

#include <string.h>

#include "base/str.h"
#include "service/launcher/call/access.h"

void template_name_fail_database(struct call *call, int r)
{
	call_fail(call, call_unwritten_status(r), NULL, "the database cannot be used: %s",
		  database_problem(call->daemon->store));
}

bool template_name_is_word(const char *text)
{
	return *text && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == strlen(text);
}

bool template_name_read(const char *text, struct template_name *out)
{
	const char *colon = strrchr(text, ':');
	size_t length = colon ? (size_t)(colon - text) : strlen(text);

	*out = (struct template_name){ .name = "" };
	if (length >= sizeof out->name || (colon && str_copy(out->tag, sizeof out->tag, colon + 1) < 0))
		return false;
	memcpy(out->name, text, length);
	return template_name_is_word(out->name) && (!colon || template_name_is_word(out->tag));
}

struct search {
	const struct call *call;
	const char *template;            /* id or name */
	bool own;                        /* of the key's owner alone */
	struct template_row *found;
	bool is_found;
};

/* Those that were built have no session of their own: their builds have. */
static int match(void *context, const struct template_row *row)
{
	struct search *search = context;
	const struct caller *caller = &search->call->caller;
	bool is_own = str_equal(row->owner, caller->key.owner);

	if (row->session[0] || (search->own && !is_own) || !access_means(caller, row, search->template))
		return 0;
	*search->found = *row;
	search->is_found = true;
	return 0;
}

int template_name_find(const struct call *call, const char *template, bool own, struct template_row *ret_row)
{
	struct search search = { call, template, own, ret_row, false };
	int r = database_each_template(call->daemon->store, match, &search);

	return r < 0 ? r : search.is_found;
}

int template_name_find_build(const struct call *call, const char *template, struct build_row *ret_build)
{
	struct template_row row;
	struct build_tag tag;
	struct template_name name;
	int r = template_name_read(template, &name) ? template_name_find(call, name.name, false, &row) : 0;

	if (r == 1)
		r = builds_get_tag(call->daemon->store, row.id, name.tag[0] ? name.tag : TAG_DEFAULT, &tag);
	if (r == 1)
		r = builds_get(call->daemon->store, tag.build, ret_build);
	if (r == 1 && ret_build->state != BUILD_READY)
		r = 0;
	return r;
}

bool template_name_get(struct call *call, const char *named, struct template_row *ret_row)
{
	struct template_name name;
	int r = template_name_read(named, &name) ? template_name_find(call, name.name, false, ret_row) : 0;

	if (r < 0)
		template_name_fail_database(call, r);
	else if (r == 0)
		call_fail(call, 404, NULL, "template '%s' not found", named);
	return r == 1;
}
