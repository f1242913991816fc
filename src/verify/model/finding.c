/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/model/finding.h"

const char *const class_names[CLASS_COUNT] = {
	[CLASS_UNKNOWN] = "unknown", [CLASS_DESTRUCTIVE] = "destructive", [CLASS_EXFILTRATE] = "exfiltrate",
	[CLASS_PERSIST] = "persist", [CLASS_PRIVILEGE] = "privilege", [CLASS_EXHAUST] = "exhaust",
	[CLASS_OBFUSCATE] = "obfuscate", [CLASS_SUPPLY_CHAIN] = "supply-chain", [CLASS_EVADE] = "evade",
};

const char *const severity_names[SEVERITY_COUNT] = { "low", "medium", "high", "critical" };

const char *const confidence_names[CONFIDENCE_COUNT] = { "possible", "likely", "certain" };
