/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a rule found at one place of a text: how bad it would be, how sure it is, and what to do instead. Made by the
 * engine (rules.c), read by whoever shows or decides.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "verify/model/operation.h"

enum { FINDINGS_MAX = 200 };

enum finding_class {
	CLASS_UNKNOWN,     /* what could not be understood */
	CLASS_DESTRUCTIVE,
	CLASS_EXFILTRATE,
	CLASS_PERSIST,
	CLASS_PRIVILEGE,
	CLASS_EXHAUST,
	CLASS_OBFUSCATE,
	CLASS_SUPPLY_CHAIN,
	CLASS_EVADE,       /* hides what was done: history, logs, monitors */
	CLASS_COUNT,
};

enum severity { SEVERITY_LOW, SEVERITY_MEDIUM, SEVERITY_HIGH, SEVERITY_CRITICAL, SEVERITY_COUNT };

enum confidence {
	CONFIDENCE_POSSIBLE, /* the words that matter are mostly unknown */
	CONFIDENCE_LIKELY,   /* partly */
	CONFIDENCE_CERTAIN,  /* all of them are exact */
	CONFIDENCE_COUNT,
};

struct finding {
	const char *id;      /* "destructive.remove-home" */
	enum finding_class class;
	enum severity severity;
	enum confidence confidence;
	struct span span;
	uint32_t line, column;         /* of span.start, from 1; columns are bytes */
	uint32_t end_line, end_column; /* of span.end */
	const char *reason, *instead;  /* one sentence each; instead may be "" */
	bool leaves;                   /* the deed is done elsewhere: on another machine, by a service */
};

/* "destructive", "critical", "certain": what rules, reports and options call them. */
extern const char *const class_names[CLASS_COUNT];
extern const char *const severity_names[SEVERITY_COUNT];
extern const char *const confidence_names[CONFIDENCE_COUNT];
