/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "verify/library/library.h"

/* Arguments of requests that carry what is sent, in whatever library. */
static const char *const data_keywords[] = {
	"body", "data", "files", "json", "content", "attachments", "Body"
};

static bool is_given(const struct value *value)
{
	return value && (value->kind != VALUE_UNKNOWN || value->name || value->origins.count || value->flags);
}

static bool is_method_of_sending(struct script *script, const struct value *method)
{
	static const char *const sending[] = { "POST", "PUT", "PATCH", "post", "put", "patch" };
	uint32_t size;

	return value_is_exact(method) &&
	       names_find(sending, ARRAY_SIZE(sending), value_chars(script->arena, method, &size)) >= 0;
}

/* {hostname: h, path: p}, as http.request() takes them. */
static const struct value *url_of(struct script *script, const struct value *target)
{
	static const char *const names[] = { "socketPath", "url", "uri", "href", "baseURL", "hostname", "host" };
	const struct value *host = NULL, *path = value_item(target, "path");

	for (size_t i = 0; i < ARRAY_SIZE(names) && !host; i++)
		host = value_item(target, names[i]);
	if (!host)
		return target->kind == VALUE_UNKNOWN && target->subject ? target->subject : target;
	return path && host != value_item(target, "socketPath") ? value_concat(script->arena, host, path) : host;
}

/* What says who asks: not what is sent, though it is sent too. */
static bool is_credential(const char *keyword)
{
	static const char *const keywords[] = { "Authorization", "auth", "cert", "cookies", "headers" };

	return keyword && names_find(keywords, ARRAY_SIZE(keywords), keyword) >= 0;
}

/* Only single variables of the environment: an API's key, and no file, nor all that there is. */
static bool are_variables(const struct script *script, const struct origins *origins)
{
	for (uint32_t i = 0; i < origins->count; i++) {
		const struct operation *from = operations_get(script->walk->operations, origins->at[i]);
		const struct word *path = from ? operation_word(from, 0) : NULL;

		if (!path || from->kind != OP_READ || path->text[0] != '$' || strcmp(path->text, "$*") == 0)
			return false;
	}
	return !origins->is_cut;
}

static void send_argument(struct script *script, const struct value *argument, uint32_t index,
			  struct origins *credentials)
{
	if (argument->kind != VALUE_MAP || argument->other) {
		script_add_flow(script, argument, index);
		return;
	}
	operations_add_flows(script->walk->operations, &argument->origins, index);
	for (uint32_t i = 0; i < argument->count; i++) {
		if (is_credential(argument->keys[i]))
			value_origins(argument->items[i], credentials);
		else
			script_add_flow(script, argument->items[i], index);
	}
}

/*
 * Everything that the call is given goes into the request. A key of the environment that stands where keys of clients
 * stand (headers, the client itself) is in a request of its own, which sends nothing else: every client of an API
 * looks like that.
 */
static void send_arguments(struct script *script, struct call *call, const struct value *url, uint32_t index)
{
	const struct operation *made = operations_get(script->walk->operations, index);
	struct origins credentials = { 0 };
	uint32_t traits = made ? made->traits : 0, asking = index;

	for (size_t i = 0; i < call->count; i++) {
		if (is_credential(call->keywords[i]))
			value_origins(call->arguments[i], &credentials);
		else
			send_argument(script, call->arguments[i], index, &credentials);
	}
	if (call->self)
		value_origins(call->self, &credentials);
	if (!credentials.count && !credentials.is_cut)
		return;
	if (traits & TRAIT_SENDS && are_variables(script, &credentials))
		asking = script_add(script, call, OP_NETWORK, url, traits & ~(uint32_t)TRAIT_SENDS);
	operations_add_flows(script->walk->operations, &credentials, asking);
}

/* axios.create({baseURL: u}).post("/x") */
static const struct value *below_base(struct script *script, const struct call *call, const struct value *url)
{
	static const char *const names[] = { "baseURL", "baseUrl", "base_url", "prefixUrl" };
	const struct value *made = call->self ? call->self->subject : NULL, *base = NULL;

	if (!made || !value_is_exact(url) || !url->size || url->text[0] != '/')
		return url;
	for (size_t i = 0; i < ARRAY_SIZE(names) && !base; i++)
		base = value_item(made, names[i]);
	return base ? value_concat(script->arena, base, url) : url;
}

/* get(url, params={…}): what is asked stands behind the URL, where it comes from somewhere. */
static const struct value *with_parameters(struct script *script, const struct call *call, const struct value *url)
{
	const struct value *parameters = call_argument(call, TARGET_NONE, "params");
	struct origins origins = { 0 };

	if (!parameters || !value_is_exact(url))
		return url;
	value_origins(parameters, &origins);
	if (!origins.count)
		return url;
	url = value_concat(script->arena, url, value_text(script->arena, "?", 1, 0));
	return value_concat(script->arena, url, value_taint(script->arena, parameters));
}

static const struct value *do_network(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *target = library_target(call, effect), *url = url_of(script, target);
	const struct value *method = call_argument(call, TARGET_NONE, "method");
	uint32_t traits = effect->traits, index = OPERATION_NONE;

	if (is_given(library_second(call, effect)) || (method && is_method_of_sending(script, method)))
		traits |= TRAIT_SENDS;
	for (size_t i = 0; i < ARRAY_SIZE(data_keywords); i++)
		if (is_given(call_argument(call, TARGET_NONE, data_keywords[i])))
			traits |= TRAIT_SENDS;
	if (target->name && str_has_suffix(target->name, "Request()") && target->number)
		traits |= TRAIT_SENDS;
	url = with_parameters(script, call, below_base(script, call, url));
	for (const struct value *one = url; one; one = one->other) {
		index = script_add(script, call, OP_NETWORK, one, traits);
		send_arguments(script, call, one, index);
		if (effect->detail)
			operations_add_text(script->walk->operations, index, effect->detail);
		else if (method && value_is_exact(method))
			script_add_word(script, call, index, method);
	}
	return library_result(script, call, index, url);
}

/* What is asked for is in the subject; whether something is sent, in the number. */
static const struct value *do_request(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *result =
		library_result(script, call, OPERATION_NONE, library_target(call, effect));
	struct value *request = value_new(script->arena, VALUE_UNKNOWN);

	if (!request)
		return result;
	*request = *result;
	request->number = is_given(library_second(call, effect));
	return request;
}

static const struct value *do_download(struct script *script, struct call *call, const struct effect *effect)
{
	uint32_t from = script_add(script, call, OP_NETWORK, library_target(call, effect), TRAIT_FETCHES),
		 to;
	const struct value *path = library_second(call, effect);

	if (is_given(path)) {
		to = script_add(script, call, OP_WRITE, path, 0);
		operations_add_flow(script->walk->operations, from, to);
	}
	return library_result(script, call, from, path);
}

static const struct value *do_upload(struct script *script, struct call *call, const struct effect *effect)
{
	uint32_t from = script_add(script, call, OP_READ, library_second(call, effect), 0);
	uint32_t to = script->connection;

	if (effect->target != TARGET_NONE || to == OPERATION_NONE)
		to = script_add(script, call, OP_NETWORK, library_target(call, effect), TRAIT_SENDS);
	operations_add_traits(script->walk->operations, to, TRAIT_SENDS);
	operations_add_flow(script->walk->operations, from, to);
	return &value_nothing;
}

/* "host:port" of a pair, a map, or two arguments in either order. */
static const struct value *address_of(struct script *script, const struct call *call,
				      const struct effect *effect)
{
	const struct value *target = library_target(call, effect), *second = library_second(call, effect);
	const struct value *host = target, *port = NULL, *swapped;

	if (target->kind == VALUE_LIST && target->count >= 2) {
		host = target->items[0];
		port = target->items[1];
	} else if (target->kind == VALUE_MAP) {
		host = value_item(target, "host");
		port = value_item(target, "port");
	} else if (is_given(second)) {
		port = second;
		if (target->kind == VALUE_NUMBER) {
			swapped = port;
			port = host;
			host = swapped;
		}
	}
	if (host && host->kind == VALUE_NUMBER && !port)
		port = host;
	if (!host || host->kind == VALUE_NUMBER)
		host = value_text(script->arena, "localhost", strlen("localhost"), 0);
	if (!port || port->kind == VALUE_FUNCTION)
		return host;
	return value_concat(script->arena,
			    value_concat(script->arena, host, value_text(script->arena, ":", 1, 0)), port);
}

static const struct value *do_connect(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *address = address_of(script, call, effect), *result;

	for (const struct value *one = address; one; one = one->other)
		script->connection = script_add(script, call, OP_NETWORK, one, effect->traits);
	result = library_result(script, call, script->connection, address);
	return result;
}

/* SimpleHTTPRequestHandler gives away the folder that it is in, or is told. */
static void serve_folder(struct script *script, const struct call *call, const struct value *handler)
{
	const struct value *made = handler->kind == VALUE_MAP && handler->subject ? handler->subject : handler;
	const struct value *folder = value_item(handler, "directory");
	uint32_t read;

	if (!made->name || !strstr(made->name, "SimpleHTTPRequestHandler"))
		return;
	read = script_add(script, call, OP_READ, folder ? folder : value_text(script->arena, ".", 1, 0),
			   TRAIT_RECURSIVE);
	operations_add_flow(script->walk->operations, read, script->connection);
}

static const struct value *do_listen(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *address = address_of(script, call, effect),
			   *target = library_target(call, effect);

	if (target->kind == VALUE_NUMBER)
		address = value_concat(script->arena, value_text(script->arena, ":", 1, 0), target);
	script->connection = script_add(script, call, OP_NETWORK, address, TRAIT_LISTENS);
	for (size_t i = 0; i < call->count; i++)
		serve_folder(script, call, call->arguments[i]);
	return value_with_origin(script->arena, value_taint(script->arena, call->self), script->connection);
}

static const struct value *do_receive(struct script *script, struct call *call, const struct effect *effect)
{
	operations_add_traits(script->walk->operations, script->connection, TRAIT_FETCHES);
	return library_result(script, call, script->connection, NULL);
}

/* Into one operation: what is fed. A connection sends it. */
static void feed(struct script *script, uint32_t node, const struct value *data, uint32_t index)
{
	const struct operation *operation = operations_get(script->walk->operations, index);

	if (!operation)
		return;
	script_add_flow(script, data, index);
	if (operation->kind == OP_WRITE) {
		script_note_written(script, node, data->kind == VALUE_TEXT      ? data->size
						  : data->kind == VALUE_UNKNOWN ? data->number
										: 0);
		library_keep_content(script, data, index);
	}
	if (operation->kind == OP_NETWORK)
		operations_get(script->walk->operations, index)->context |= script_context(script, OP_NETWORK) &
									      CONTEXT_ENDLESS;
	operation = operations_get(script->walk->operations, index);
	if (operation->kind == OP_NETWORK && is_given(data))
		operations_add_traits(script->walk->operations, index, TRAIT_SENDS);
}

static bool takes_data(const struct script *script, uint32_t index)
{
	const struct operation *operation = operations_get(script->walk->operations, index);

	return operation && (operation->kind == OP_NETWORK || operation->kind == OP_WRITE ||
			     operation->kind == OP_COMMAND);
}

/* A socket knows where it is connected only since it was: the last connection is its own. */
static const struct value *connected(struct script *script, const struct value *value)
{
	static const char *const kinds[] = { "ocket", "SSHClient", "SMTP", "Transport" };
	bool is_one = false;

	for (size_t i = 0; value && value->name && i < ARRAY_SIZE(kinds); i++)
		is_one |= strstr(value->name, kinds[i]) != NULL;
	for (uint32_t i = 0; value && i < value->origins.count; i++) {
		const struct operation *from = operations_get(script->walk->operations, value->origins.at[i]);

		is_one &= !from || from->kind == OP_CALL;
	}
	if (!value || !is_one)
		return value ? value : &value_nothing;
	return value_with_origin(script->arena, value, script->connection);
}

/* file.write(x), request.end(x), socket.send(x), process.stdin.write(x) */
static const struct value *do_feed(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *self = connected(script, call->self);
	bool is_fed = false;

	/* A request's method and path are no data. */
	if (effect->second >= 0 && !is_given(library_second(call, effect)))
		return self;
	for (size_t i = 0; i < call->count; i++) {
		for (uint32_t k = 0; k < self->origins.count; k++) {
			if (!takes_data(script, self->origins.at[k]))
				continue;
			feed(script, call->node, call->arguments[i], self->origins.at[k]);
			if (call->arguments[i]->kind == VALUE_MAP)
				library_named_files(script, call, self->origins.at[k]);
			is_fed = true;
		}
	}
	return is_fed ? self : NULL;
}

void library_take_in(struct script *script, const struct call *call)
{
	const struct value *self = connected(script, call->self);
	struct origins origins = { 0 };

	for (size_t i = 0; i < call->count; i++)
		value_origins(call->arguments[i], &origins);
	for (uint32_t k = 0; k < self->origins.count; k++) {
		const struct operation *to = operations_get(script->walk->operations, self->origins.at[k]);

		if (to && to->kind == OP_NETWORK && to->traits & TRAIT_SENDS)
			library_named_files(script, call, self->origins.at[k]);
		to = operations_get(script->walk->operations, self->origins.at[k]);
		if (to && to->kind == OP_NETWORK && origins.count && !(to->traits & TRAIT_FETCHES)) {
			operations_add_flows(script->walk->operations, &origins, self->origins.at[k]);
			operations_add_traits(script->walk->operations, self->origins.at[k], TRAIT_SENDS);
		}
	}
}

static const struct value *do_feed_last(struct script *script, struct call *call, const struct effect *effect)
{
	for (size_t i = 0; i < call->count; i++)
		feed(script, call->node, call->arguments[i], script->connection);
	return &value_nothing;
}

static const struct value *do_sendto(struct script *script, struct call *call, const struct effect *effect)
{
	uint32_t index = script_add(script, call, OP_NETWORK, address_of(script, call, effect), TRAIT_SENDS);

	for (size_t i = 0; i < call->count; i++)
		script_add_flow(script, call->arguments[i], index);
	return &value_nothing;
}

static const struct value *do_pipeline(struct script *script, struct call *call, const struct effect *effect)
{
	for (size_t i = 0; i + 1 < call->count; i++)
		for (uint32_t k = 0; k < call->arguments[i + 1]->origins.count; k++)
			if (takes_data(script, call->arguments[i + 1]->origins.at[k]))
				feed(script, call->node, call->arguments[i], call->arguments[i + 1]->origins.at[k]);
	return &value_nothing;
}

/* connect(…, function () { this.pipe(sh.stdin); }): who is told that a connection is there is called on it. */
static const struct value *connected_this(struct script *script, const struct value *value, uint32_t node)
{
	if (value->name || value->origins.count || !node || script->syntax.nodes[node].kind != NODE_THIS)
		return connected(script, value);
	return value_with_origin(script->arena, value, script->connection);
}

static const struct value *do_pipe(struct script *script, struct call *call, const struct effect *effect)
{
	const struct syntax *syntax = &script->syntax;
	uint32_t function = syntax_child(syntax, call->node, FIELD_FUNCTION);
	uint32_t arguments = syntax_child(syntax, call->node, FIELD_ARGUMENTS);
	const struct value *self = call->self ? call->self : &value_nothing;
	const struct value *to = connected_this(script, library_target(call, effect),
						arguments ? syntax->nodes[arguments].first : 0),
			   *from = connected_this(script, self,
						  function ? syntax_child(syntax, function, FIELD_VALUE) : 0);

	for (uint32_t k = 0; k < to->origins.count; k++)
		if (takes_data(script, to->origins.at[k]))
			feed(script, call->node, from, to->origins.at[k]);
	return value_also_from(script->arena, to, from);
}

static const struct value *do_wire(struct script *script, struct call *call, const struct effect *effect)
{
	script->is_wired |= script->connection != OPERATION_NONE;
	return &value_nothing;
}

const library_handler library_network_handlers[EFFECT_KIND_COUNT] = {
	[EFFECT_NETWORK] = do_network,	 [EFFECT_CONNECT] = do_connect, [EFFECT_LISTEN] = do_listen,
	[EFFECT_RECEIVE] = do_receive,	 [EFFECT_FEED] = do_feed,	[EFFECT_FEED_LAST] = do_feed_last,
	[EFFECT_PIPELINE] = do_pipeline, [EFFECT_REQUEST] = do_request, [EFFECT_DOWNLOAD] = do_download,
	[EFFECT_UPLOAD] = do_upload,	 [EFFECT_SENDTO] = do_sendto,	[EFFECT_PIPE] = do_pipe,
	[EFFECT_WIRE] = do_wire,
};
