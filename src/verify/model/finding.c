/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/model/finding.h"

#include "base/names.h"

static const char *const class_names[CLASS_COUNT] = {
	[CLASS_UNKNOWN] = "unknown", [CLASS_DESTRUCTIVE] = "destructive", [CLASS_EXFILTRATE] = "exfiltrate",
	[CLASS_PERSIST] = "persist", [CLASS_PRIVILEGE] = "privilege", [CLASS_EXHAUST] = "exhaust",
	[CLASS_OBFUSCATE] = "obfuscate", [CLASS_SUPPLY_CHAIN] = "supply-chain", [CLASS_EVADE] = "evade",
};

static const char *const severity_names[SEVERITY_COUNT] = { "low", "medium", "high", "critical" };

static const char *const confidence_names[CONFIDENCE_COUNT] = { "possible", "likely", "certain" };

const char *class_name(enum finding_class class)
{
	return names_get(class_names, CLASS_COUNT, class);
}

const char *severity_name(enum severity severity)
{
	return names_get(severity_names, SEVERITY_COUNT, severity);
}

const char *confidence_name(enum confidence confidence)
{
	return names_get(confidence_names, CONFIDENCE_COUNT, confidence);
}

int class_from_name(const char *text)
{
	return names_find(class_names, CLASS_COUNT, text);
}

int severity_from_name(const char *text)
{
	return names_find(severity_names, SEVERITY_COUNT, text);
}

int confidence_from_name(const char *text)
{
	return names_find(confidence_names, CONFIDENCE_COUNT, text);
}
