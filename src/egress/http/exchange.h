/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One intercepted HTTP/1.1 connection: requests from the sandbox and responses from the server, paired, one
 * at a time (a request that is pipelined waits, so that no answer is ever taken for another's), each request
 * judged by itself before a byte of it goes out. Bytes in, bytes out; sockets and TLS are the caller's. Runs in
 * atoll-egress.
 */

#include "egress/http/pace.h"
#include "egress/http/progress.h"
#include "egress/message/http1.h"
#include "egress/record/answer.h"
#include "egress/record/recording.h"
#include "http/target.h"
#include "policy/limit-text.h"

enum { EXCHANGE_REFUSAL_MAX = 8 << 10 };

/* A secret, or what stands for one, where it has no business to be. All zero: there was none. */
struct leak {
	const char *secret;                  /* its name, borrowed */
	const char *where;                   /* static: "the URL" */
	bool is_placeholder, is_refused;     /* not refused: let go, or masked, as the policy says */
};

/* What was seen of one request: what is marked * when it is about to go out, the rest when it is over. */
struct exchange_record {
	const char *method;                  /* * borrowed */
	/* * Borrowed: the reading of the path that the decision is about; "" when the request was malformed. */
	const char *path;
	const struct target *target;         /* * borrowed; NULL when the request was malformed */
	struct decision decision;            /* * */
	uint64_t started_ns;                 /* * when its head had come; CLOCK_MONOTONIC. 0: it was malformed */
	unsigned status;                     /* 0: no answer came */
	uint64_t bytes_out, bytes_in;        /* of the bodies */
	bool is_waiting;                     /* for the answer to a question that ask() has put */
	uint32_t asked;                      /* ask()'s own: which question that was, or the last one */
	uint32_t readings_asked;             /* readings of the path that were asked about, as bits */
	bool is_replayed, is_not_recorded;   /* answered from a recording; refused, for it has no answer */
	const char *problem;                 /* static: why it broke off, or was refused where no rule did that; NULL */
	/* outgoing() refused for now: the answer is 429 and says to come back after so long; 0: it is 502 */
	uint32_t wait_s;
	char limit_rule[NET_LIMIT_KEY_SIZE]; /* id of the rule whose limit that is; "": the session's */
	uint32_t secrets;                    /* that outgoing() put in, as bits */
	uint32_t parts;                      /* of secrets that outgoing() or body() found a long part of, as bits */
	struct leak leak;                    /* that outgoing() or body() found */
	void *own;                           /* what outgoing() left for the other hooks; NULL before */
};

enum exchange_way { EXCHANGE_OUT, EXCHANGE_IN, EXCHANGE_WAY_COUNT };

/* The next bytes of the body of a request or of its answer; or none, where it pauses or ends. */
struct exchange_content {
	enum exchange_way way;
	const void *bytes;
	size_t size;
	enum http1_moment moment;
	bool is_of_burst;      /* pace_is_burst() */
};

/* Any of them may be NULL. */
struct exchange_hooks {
	/*
	 * The policy asks a person about this request, by the form in record->path. True: it waits until
	 * exchange_answered(), unless forget() is called or the request is over; nothing is read of it meanwhile but
	 * its head. False: it is refused, and record->decision says why.
	 */
	bool (*ask)(void *context, struct exchange_record *record);
	void (*forget)(void *context, struct exchange_record *record);
	/*
	 * A request that the policy allows is about to go out: credentials are put in here. target is what was judged;
	 * *ret_owned is given to inject_free() when the head is out. False refuses it instead; why says
	 * record->decision, where that is no longer to allow it, else *ret_problem (static), and record->wait_s for how
	 * long.
	 */
	bool (*outgoing)(void *context, struct exchange_record *record, struct http1_head *head,
			 const struct target *target, char **ret_owned, const char **ret_problem);
	/*
	 * Appends to out what of this content may go on; what it keeps back comes with a later call, at the latest when
	 * the body pauses, and nothing more after the end: the number of bytes stays. False: nothing of the body may
	 * go on any more, and record->decision says why.
	 */
	bool (*body)(void *context, struct exchange_record *record, const struct exchange_content *content,
		     struct buf *out);
	/* The head of an answer (also an interim one), or its trailers, which have no reason, are about to go in. */
	void (*incoming)(void *context, struct exchange_record *record, struct http1_head *head);
	/* Once for each request, also for one that was refused, malformed or broke off. */
	void (*over)(void *context, const struct exchange_record *record);
	void *context;
	struct recording *recording;   /* borrowed: what requests are recorded to, or answered from; NULL */
};

struct exchange {
	struct http1 request, response;
	struct target_server server;         /* host borrowed */
	const struct policy *policy;         /* borrowed */
	struct exchange_hooks hooks;
	struct target target;
	struct exchange_record record;
	char method[HTTP1_METHOD_SIZE];
	struct recorded *recorded;                   /* NULL: not on a recording */
	struct answer rule_answer;
	struct answer_source given;          /* what stands in for the server's answer */
	int phase;
	bool request_is_over, is_closing;
	uint64_t heads;          /* that were whole, from 1 */
	uint64_t requests;       /* of them */
	struct progress sent, received; /* of the bodies of the last one */
	struct pace paces[EXCHANGE_WAY_COUNT];
	const char *unreachable; /* lives as long; set: the server is not to be had, and every request is told why */
};

enum exchange_state {
	EXCHANGE_OPEN,
	/* Nothing more will be sent to the client or the server: flush what is there, then close both. */
	EXCHANGE_ENDED,
};

/* Why a request that waited for a person is refused, though nobody said no. */
extern const char exchange_server_left[];

/* Of a request that outgoing() refused for now: what it is told to do. */
extern const char exchange_wait_hint[];

/* Which limit that was, as the log names it. */
void exchange_limit_key(const struct exchange_record *record, char out[NET_LIMIT_KEY_SIZE]);

/* Why a request is given up whose body, or whose answer's, comes too slowly (progress.h). */
extern const char exchange_slow_request[], exchange_slow_answer[];

/* The JSON that a refused request is answered with. rule and hint may be NULL. */
void exchange_put_reason(const char *reason, const char *rule, const char *hint, struct buf *out);

/* Whether a request that was decided so does not go out: a rule answers it, or a recording. */
bool exchange_is_kept(const struct decision *decision, const struct recording *recording);

/*
 * The decision about a request by every reading of its path; the one in record->path. Called again with the answer,
 * where record->is_waiting was set: a yes (VERDICT_ALLOW) is for the reading that was asked about, and the next one may
 * be asked about then. answer NULL: the first time.
 */
struct decision exchange_judge(const struct exchange_hooks *hooks, struct exchange_record *record,
			       const struct target *target, const struct policy *policy,
			       const struct target_server *server, const struct decision *answer);

/* The decision about a request that a replay has no answer for. problem: static. */
struct decision exchange_not_recorded(const char *problem);

/* Ready for the first request; copies hooks, borrows server->host and policy until exchange_done(). */
void exchange_init(struct exchange *exchange, const struct target_server *server, const struct policy *policy,
		   const struct exchange_hooks *hooks);

/* A request that is under way is over with it. */
void exchange_done(struct exchange *exchange);

/*
 * Bytes from the sandbox. Those that may not be looked at yet (an earlier request waits for its answer) stay
 * unused: give them again after the next exchange_from_server(). Appends to to_server, and to to_client what
 * atoll answers itself.
 */
enum exchange_state exchange_from_client(struct exchange *exchange, const uint8_t *bytes, size_t size, size_t *ret_used,
					 struct buf *to_server, struct buf *to_client);

/* Bytes from the server; all are used, or the connection is over. */
enum exchange_state exchange_from_server(struct exchange *exchange, const uint8_t *bytes, size_t size,
					 struct buf *to_client);

/*
 * How many heads of requests and answers were whole, where the next one has begun to come; 0: no head is on its way. A
 * head that takes too long is given up by exchange_time_out(), since whoever sends it byte by byte only holds on to us;
 * and so is whatever does not move at all.
 */
uint64_t exchange_head_on_its_way(const struct exchange *exchange);
enum exchange_state exchange_time_out(struct exchange *exchange, struct buf *to_client);

/*
 * Once in a while (progress.h); is_held_up: bytes on their way to the server, to the client wait for it to read. NULL,
 * or why the exchange is to be given up: a static text for exchange_give_up(), which tells the client where it still
 * can be told.
 */
const char *exchange_look(struct exchange *exchange, bool out_is_held_up, bool in_is_held_up);
enum exchange_state exchange_give_up(struct exchange *exchange, const char *why, struct buf *to_client);

/*
 * What is held back of bodies goes on where nothing has come for a moment (pace.h); to be called after each time that
 * bytes were given, and after *ret_wait_ns (0: there is no need). in_is_held_up: it is us who read nothing more from
 * the server, since the client does not read, or a limit holds.
 */
enum exchange_state exchange_settle(struct exchange *exchange, bool in_is_held_up, uint64_t now_ns,
				    struct buf *to_server, struct buf *to_client, uint64_t *ret_wait_ns);

/* Whether nothing is asked for, nor begun to be; whether the connection is another protocol's by now. */
bool exchange_is_idle(const struct exchange *exchange);
bool exchange_has_switched(const struct exchange *exchange);

/* Whether an answer is being given that stands in for the server's. */
bool exchange_is_giving(const struct exchange *exchange);

/*
 * The next bytes of such an answer, until to_client has max bytes or more. When it is over, bytes of the client that
 * stayed unused may be given again.
 */
enum exchange_state exchange_take(struct exchange *exchange, struct buf *to_client, size_t max);

/* Whether a request waits for a person; and the answer. Bytes of the client that stayed unused may be given again. */
bool exchange_is_waiting(const struct exchange *exchange);
enum exchange_state exchange_answered(struct exchange *exchange, const struct decision *answer, struct buf *to_server,
				      struct buf *to_client);

/* One side has ended its stream: what can never become whole is given up, and its answer is what came until then. */
enum exchange_state exchange_client_ended(struct exchange *exchange);
enum exchange_state exchange_server_ended(struct exchange *exchange, struct buf *to_client);
