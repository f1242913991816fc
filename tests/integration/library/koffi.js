// SPDX-License-Identifier: Apache-2.0
// libatoll from node, by koffi: a command in a sandbox, its output and its end. koffi.js KOFFI LIBRARY POLICY PROJECT
"use strict";
const koffi = require(process.argv[2]);
const lib = koffi.load(process.argv[3]);
const CONTEXT = 1, POLICY = 2, SANDBOX = 3, OUTPUT = 4, END = 17;
const AtollError = koffi.struct("atoll_error", {
    size: "uint32_t", code: "int32_t", errnum: "int32_t", where: koffi.array("char", 32), what: koffi.array("char", 480),
    why: koffi.array("char", 160), hint: koffi.array("char", 320),
});
const error = [{ size: koffi.sizeof(AtollError), code: 0, errnum: 0, where: "", what: "", why: "", hint: "" }];
const fail = ", _Inout_ atoll_error *error)";
const record_new = lib.func("void *atoll_record_new(uint32_t kind)");
const record_free = lib.func("void atoll_record_free(void *record)");
const sandbox_free = lib.func("void atoll_sandbox_free(void *sandbox)");
const set_string = lib.func("int atoll_set_string(void *record, const char *key, const char *text" + fail);
const set_strings = lib.func("int atoll_set_strings(void *record, const char *key, const char **list" + fail);
const get_u64 = lib.func("int atoll_get_u64(void *record, const char *key, _Out_ uint64_t *ret)");
const get_bytes = lib.func("int atoll_get_bytes(void *record, const char *key, _Out_ void **ret, _Out_ size_t *size)");
const default_places = lib.func("int atoll_default_places(void *record, const char **environment" + fail);
const context_new = lib.func("int atoll_context_new(void *record, _Out_ void **ret" + fail);
const policy_load = lib.func("int atoll_policy_load(void *context, void *record, _Out_ void **ret" + fail);
const create = lib.func("int atoll_create(void *context, void *policy, void *record, _Out_ void **ret" + fail);
const wait = lib.func("int atoll_wait(void *sandbox, int timeout_ms, _Out_ void **ret" + fail);

function check(code) {
    if (code < 0)
        throw new Error(`${code}: ${error[0].what}; ${error[0].hint}`);
    return code;
}

function made(call, ...words) {
    const ret = [null];
    check(call(...words, ret, error));
    return ret[0];
}

const places = record_new(CONTEXT);
check(default_places(places, [...Object.entries(process.env).map(([name, value]) => `${name}=${value}`), null], error));
const context = made(context_new, places);
const rules = record_new(POLICY);
check(set_string(rules, "policy", process.argv[4], error));
check(set_string(rules, "project", process.argv[5], error));
const policy = made(policy_load, context, rules);
const what = record_new(SANDBOX);
check(set_string(what, "project", process.argv[5], error));
check(set_string(what, "streams", "capture", error));
check(set_strings(what, "argv", ["echo", "from node", null], error));
check(set_strings(what, "env", ["PATH=/usr/bin:/bin", null], error));
const sandbox = made(create, context, policy, what);
for (let kind = 0; kind !== END;) {
    const event = [null], number = [0n], bytes = [null], size = [0];
    if (check(wait(sandbox, 20000, event, error)) === 0)
        throw new Error("nothing comes");
    get_u64(event[0], "event", number);
    kind = Number(number[0]);
    if (kind === OUTPUT && get_bytes(event[0], "bytes", bytes, size) === 1)
        process.stdout.write(Buffer.from(koffi.decode(bytes[0], koffi.array("uint8_t", Number(size[0])))));
    if (kind === END && get_u64(event[0], "status", number) === 1)
        console.log("end", Number(number[0]));
    record_free(event[0]);
}
sandbox_free(sandbox);
