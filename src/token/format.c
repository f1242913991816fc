/* SPDX-License-Identifier: Apache-2.0 */
#include "token/format.h"

#include <sodium.h>
#include <string.h>

#include "base/str.h"
#include "base/view.h"
#include "token/right.h"

/*
 * Everything is little-endian. A token: version, flags, number of blocks; the issuer's key; the blocks; the proof. A
 * block: size of the payload, payload, next key, signature. A payload: fields of tag, size and value, by ascending
 * tags; limits and rights may stand several times, limits by ascending numbers. Texts have their NUL with them, so
 * that they can be used where they lie.
 */

enum { VERSION = 1, FLAG_SEALED = 1, RIGHT_BELOW = 1, BASE64 = sodium_base64_VARIANT_URLSAFE_NO_PADDING };

enum tag {
	TAG_SERIAL = 1, TAG_NOT_BEFORE, TAG_EXPIRES, TAG_USES, TAG_PROJECT, TAG_AGENT, TAG_LIMIT, TAG_RIGHT, TAG_END,
};

static const char prefix[] = "atoll1.";

/* ---- reading ---- */

/* A size and as many bytes, the last one the only NUL; size 0 is NULL. */
static const char *take_text(struct view *cursor)
{
	size_t size = (size_t)view_take_le(cursor, 2);
	const uint8_t *bytes = size ? view_take(cursor, size) : NULL;

	if (!bytes)
		return NULL;
	if (size > TOKEN_STRING_MAX || memchr(bytes, 0, size) != bytes + size - 1) {
		cursor->is_bad = true;
		return NULL;
	}
	return (const char *)bytes;
}

static void take_right(struct view *cursor, struct token_right *right)
{
	uint64_t flags;

	*right = (struct token_right){ .kind = (enum token_kind)view_take_le(cursor, 1) };
	flags = view_take_le(cursor, 1);
	right->is_below = flags & RIGHT_BELOW;
	right->port = (uint16_t)view_take_le(cursor, 2);
	right->word_count = (size_t)view_take_le(cursor, 1);
	right->subject = take_text(cursor);
	right->method = take_text(cursor);
	right->path = take_text(cursor);
	if (flags & ~(uint64_t)RIGHT_BELOW || right->word_count > TOKEN_WORDS_MAX)
		cursor->is_bad = true;
	for (size_t i = 0; !cursor->is_bad && i < right->word_count; i++) {
		right->words[i] = take_text(cursor);
		if (!right->words[i])
			cursor->is_bad = true;
	}
	if (cursor->is_bad || cursor->left || !token_right_is_valid(right))
		cursor->is_bad = true;
}

static int add_right(struct token_block *block, struct view *value)
{
	if (block->right_count == TOKEN_RIGHTS_MAX)
		return -EBADMSG;
	if (!block->rights)
		block->rights = calloc(TOKEN_RIGHTS_MAX, sizeof *block->rights);
	if (!block->rights)
		return -ENOMEM;
	take_right(value, &block->rights[block->right_count++]);
	return 0;
}

static void take_limit(struct view *value, struct token_block *block, unsigned *last_limit)
{
	unsigned limit = (unsigned)view_take_le(value, 1);
	uint64_t amount = view_take_le(value, 8);

	if (limit >= TOKEN_LIMIT_COUNT || amount == UINT64_MAX || limit + 1 <= *last_limit) {
		value->is_bad = true;
		return;
	}
	block->limits[limit] = amount;
	*last_limit = limit + 1;
}

static void take_serial(struct view *value, struct token_block *block)
{
	const uint8_t *serial = view_take(value, TOKEN_SERIAL_SIZE);

	if (serial)
		memcpy(block->serial, serial, TOKEN_SERIAL_SIZE);
}

/* Left out where it says nothing, so that there is one way to write a block. */
static void require_said(struct view *value, bool is_said)
{
	if (!is_said)
		value->is_bad = true;
}

/* A text that is the whole of a field, with a NUL behind it. */
static const char *take_rest(struct view *value)
{
	size_t size = value->left;
	const uint8_t *bytes = view_take(value, size);

	require_said(value, bytes && size > 1 && size <= TOKEN_STRING_MAX &&
			    memchr(bytes, 0, size) == bytes + size - 1);
	return (const char *)bytes;
}

static int take_field(enum tag tag, struct view *value, struct token_block *block, unsigned *last_limit)
{
	int r = 0;

	if (tag == TAG_SERIAL)
		take_serial(value, block);
	else if (tag == TAG_NOT_BEFORE)
		require_said(value, (block->not_before_s = view_take_le(value, 8)));
	else if (tag == TAG_EXPIRES)
		require_said(value, (block->expires_s = view_take_le(value, 8)));
	else if (tag == TAG_USES)
		require_said(value, (block->uses = (uint32_t)view_take_le(value, 4)));
	else if (tag == TAG_PROJECT)
		block->project = take_rest(value);
	else if (tag == TAG_AGENT)
		block->agent = take_rest(value);
	else if (tag == TAG_LIMIT)
		take_limit(value, block, last_limit);
	else
		r = add_right(block, value);
	return r < 0 ? r : value->is_bad || value->left ? -EBADMSG : 0;
}

static int parse_block(struct view *payload, struct token_block *block)
{
	unsigned last_limit = 0, last_tag = 0;
	int r = 0;

	while (r == 0 && payload->left) {
		unsigned tag = (unsigned)view_take_le(payload, 1);
		size_t size = (size_t)view_take_le(payload, 2);
		struct view value = { view_take(payload, size), size, payload->is_bad };
		bool may_repeat = tag == TAG_LIMIT || tag == TAG_RIGHT;

		if (payload->is_bad || tag >= TAG_END || tag < last_tag || (tag == last_tag && !may_repeat) ||
		    (!last_tag && tag != TAG_SERIAL))
			return -EBADMSG;
		last_tag = tag;
		r = take_field((enum tag)tag, &value, block, &last_limit);
	}
	return r < 0 ? r : last_tag ? 0 : -EBADMSG;
}

int token_block_parse(const uint8_t *bytes, size_t size, struct token_block *ret_block)
{
	struct view payload = { bytes, size, size > TOKEN_PAYLOAD_MAX };
	struct token_block block = { .rights = NULL };
	int r;

	for (int i = 0; i < TOKEN_LIMIT_COUNT; i++)
		block.limits[i] = UINT64_MAX;
	r = payload.is_bad ? -EBADMSG : parse_block(&payload, &block);
	if (r < 0) {
		free(block.rights);
		return r;
	}
	*ret_block = block;
	return 0;
}

static int parse_link(struct view *cursor, struct token_link *link)
{
	link->payload_size = (size_t)view_take_le(cursor, 2);
	link->payload = view_take(cursor, link->payload_size);
	link->next = view_take(cursor, TOKEN_KEY_SIZE);
	link->signature = view_take(cursor, TOKEN_SIGNATURE_SIZE);
	return cursor->is_bad ? -EBADMSG : token_block_parse(link->payload, link->payload_size, &link->block);
}

static int parse(struct token *token)
{
	struct view cursor = { token->bytes, token->size, false };
	uint64_t version = view_take_le(&cursor, 1), flags = view_take_le(&cursor, 1), count = view_take_le(&cursor, 1);
	int r;

	if (cursor.is_bad || version != VERSION || flags & ~(uint64_t)FLAG_SEALED || !count || count > TOKEN_BLOCKS_MAX)
		return -EBADMSG;
	token->is_sealed = flags & FLAG_SEALED;
	token->issuer = view_take(&cursor, TOKEN_KEY_SIZE);
	for (size_t i = 0; i < count; i++) {
		r = parse_link(&cursor, &token->links[i]);
		if (r < 0)
			return r;
		token->count++;
	}
	token->proof = view_take(&cursor, token->is_sealed ? TOKEN_SIGNATURE_SIZE : TOKEN_KEY_SIZE);
	/* Without an end a token would be for ever. */
	return cursor.is_bad || cursor.left || !token->links[0].block.expires_s ? -EBADMSG : 0;
}

void token_done(struct token *token)
{
	for (size_t i = 0; i < token->count; i++)
		free(token->links[i].block.rights);
	if (token->bytes)
		sodium_memzero(token->bytes, token->size);
	free(token->bytes);
	*token = (struct token){ 0 };
}

int token_parse(struct token *ret_token, const uint8_t *bytes, size_t size)
{
	struct token token = { .size = size };
	int r;

	if (!size || size > TOKEN_BYTES_MAX)
		return -EBADMSG;
	token.bytes = malloc(size);
	if (!token.bytes)
		return -ENOMEM;
	memcpy(token.bytes, bytes, size);
	r = parse(&token);
	if (r < 0) {
		token_done(&token);
		return r;
	}
	*ret_token = token;
	return 0;
}

bool token_is_text(const char *text)
{
	return strncmp(text, prefix, sizeof prefix - 1) == 0;
}

int token_parse_text(struct token *ret_token, const char *text, size_t size)
{
	static const char blanks[] = " \t\r\n";
	uint8_t bytes[TOKEN_BYTES_MAX];
	size_t used;
	int r;

	while (size && memchr(blanks, *text, sizeof blanks - 1))
		text++, size--;
	while (size && memchr(blanks, text[size - 1], sizeof blanks - 1))
		size--;
	if (size < sizeof prefix || memcmp(text, prefix, sizeof prefix - 1) != 0 ||
	    sodium_base642bin(bytes, sizeof bytes, text + sizeof prefix - 1, size - (sizeof prefix - 1), NULL, &used,
			      NULL, BASE64) != 0)
		return -EBADMSG;
	r = token_parse(ret_token, bytes, used);
	sodium_memzero(bytes, sizeof bytes);
	return r;
}

int token_format_text(const struct token *token, struct buf *out)
{
	size_t size = sodium_base64_encoded_len(token->size, BASE64);
	char *text;

	buf_put(out, prefix, sizeof prefix - 1);
	text = buf_reserve(out, size);
	if (!text)
		return buf_error(out);
	sodium_bin2base64(text, size, token->bytes, token->size, BASE64);
	out->size--; /* its NUL */
	return buf_error(out);
}

/* ---- writing ---- */

static void put_number(struct buf *out, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		buf_put_char(out, (char)(value >> 8 * i));
}

static void put_field(struct buf *out, enum tag tag, const void *value, size_t size)
{
	put_number(out, tag, 1);
	put_number(out, size, 2);
	buf_put(out, value, size);
}

static void put_number_field(struct buf *out, enum tag tag, uint64_t value, size_t size)
{
	if (!value)
		return;
	put_number(out, tag, 1);
	put_number(out, size, 2);
	put_number(out, value, size);
}

static void put_text_field(struct buf *out, enum tag tag, const char *text)
{
	if (text)
		put_field(out, tag, text, strlen(text) + 1);
}

static void put_text(struct buf *out, const char *text)
{
	put_number(out, text ? strlen(text) + 1 : 0, 2);
	if (text)
		buf_put(out, text, strlen(text) + 1);
}

static void put_right(struct buf *out, const struct token_right *right)
{
	char memory[TOKEN_PAYLOAD_MAX];
	struct buf value;

	buf_init_fixed(&value, memory, sizeof memory);
	put_number(&value, right->kind, 1);
	put_number(&value, right->is_below ? RIGHT_BELOW : 0, 1);
	put_number(&value, right->port, 2);
	put_number(&value, right->word_count, 1);
	put_text(&value, right->subject);
	put_text(&value, right->method);
	put_text(&value, right->path);
	for (size_t i = 0; i < right->word_count; i++)
		put_text(&value, right->words[i]);
	if (buf_error(&value))
		out->error = buf_error(&value);
	else
		put_field(out, TAG_RIGHT, value.bytes, value.size);
}

int token_block_format(const struct token_block *block, struct buf *out)
{
	size_t start = out->size;
	struct token_block again;
	int r;

	put_field(out, TAG_SERIAL, block->serial, TOKEN_SERIAL_SIZE);
	put_number_field(out, TAG_NOT_BEFORE, block->not_before_s, 8);
	put_number_field(out, TAG_EXPIRES, block->expires_s, 8);
	put_number_field(out, TAG_USES, block->uses, 4);
	put_text_field(out, TAG_PROJECT, block->project);
	put_text_field(out, TAG_AGENT, block->agent);
	for (int i = 0; i < TOKEN_LIMIT_COUNT; i++)
		if (block->limits[i] != UINT64_MAX) {
			put_number(out, TAG_LIMIT, 1);
			put_number(out, 9, 2);
			put_number(out, (uint64_t)i, 1);
			put_number(out, block->limits[i], 8);
		}
	for (size_t i = 0; i < block->right_count; i++)
		put_right(out, &block->rights[i]);
	if (buf_error(out))
		return -EINVAL;
	/* What we would not take from others we do not write. */
	r = token_block_parse(out->bytes + start, out->size - start, &again);
	if (r == 0)
		free(again.rights);
	return r == -EBADMSG ? -EINVAL : r;
}

int token_assemble(const struct token_parts *parts, struct token *ret_token)
{
	cleanup_buf struct buf out;
	int r;

	buf_init(&out, TOKEN_BYTES_MAX);
	put_number(&out, VERSION, 1);
	put_number(&out, parts->is_sealed ? FLAG_SEALED : 0, 1);
	put_number(&out, parts->count, 1);
	buf_put(&out, parts->issuer, TOKEN_KEY_SIZE);
	for (size_t i = 0; i < parts->count; i++) {
		const struct token_link *link = &parts->links[i];

		put_number(&out, link->payload_size, 2);
		buf_put(&out, link->payload, link->payload_size);
		buf_put(&out, link->next, TOKEN_KEY_SIZE);
		buf_put(&out, link->signature, TOKEN_SIGNATURE_SIZE);
	}
	buf_put(&out, parts->proof, parts->is_sealed ? TOKEN_SIGNATURE_SIZE : TOKEN_KEY_SIZE);
	r = buf_error(&out);
	if (r == 0)
		r = token_parse(ret_token, out.bytes, out.size);
	if (out.bytes)
		sodium_memzero(out.bytes, out.size);
	return r;
}
