// SPDX-License-Identifier: Apache-2.0

// libatoll from Go: a command in a sandbox, its output and its end. cgo POLICY PROJECT, places from the environment.
package main

/*
#include <stdlib.h>
#include <atoll.h>
*/
import "C"

import (
	"fmt"
	"os"
	"unsafe"
)

func check(code C.int, failure *C.struct_atoll_error) C.int {
	if code < 0 {
		fmt.Fprintln(os.Stderr, C.GoString(&failure.what[0]), C.GoString(&failure.hint[0]))
		os.Exit(1)
	}
	return code
}

// A NULL-terminated array, for as long as the program runs.
func list(values []string) **C.char {
	array := (*[1 << 16]*C.char)(C.calloc(C.size_t(len(values)+1), C.size_t(unsafe.Sizeof(uintptr(0)))))
	for index, value := range values {
		array[index] = C.CString(value)
	}
	return &array[0]
}

func main() {
	var failure C.struct_atoll_error
	var context *C.atoll_context
	var policy *C.atoll_policy
	var sandbox *C.atoll_sandbox
	failure.size = C.uint32_t(unsafe.Sizeof(failure))

	text := func(record *C.atoll_record, key string, value string) {
		check(C.atoll_set_string(record, C.CString(key), C.CString(value), &failure), &failure)
	}
	places := C.atoll_record_new(C.ATOLL_CONTEXT)
	check(C.atoll_default_places(places, list(os.Environ()), &failure), &failure)
	check(C.atoll_context_new(places, &context, &failure), &failure)
	rules := C.atoll_record_new(C.ATOLL_POLICY)
	text(rules, "policy", os.Args[1])
	text(rules, "project", os.Args[2])
	check(C.atoll_policy_load(context, rules, &policy, &failure), &failure)
	what := C.atoll_record_new(C.ATOLL_SANDBOX)
	text(what, "project", os.Args[2])
	text(what, "streams", "capture")
	check(C.atoll_set_strings(what, C.CString("argv"), list([]string{"echo", "from go"}), &failure), &failure)
	check(C.atoll_set_strings(what, C.CString("env"), list([]string{"PATH=/usr/bin:/bin"}), &failure), &failure)
	check(C.atoll_create(context, policy, what, &sandbox, &failure), &failure)
	for {
		var event *C.atoll_record
		var kind, status C.uint64_t
		var bytes unsafe.Pointer
		var size C.size_t

		if check(C.atoll_wait(sandbox, 20000, &event, &failure), &failure) == 0 {
			os.Exit(2)
		}
		C.atoll_get_u64(event, C.CString("event"), &kind)
		if kind == C.ATOLL_EVENT_OUTPUT && C.atoll_get_bytes(event, C.CString("bytes"), &bytes, &size) == 1 {
			os.Stdout.Write(C.GoBytes(bytes, C.int(size)))
		}
		C.atoll_get_u64(event, C.CString("status"), &status)
		C.atoll_record_free(event)
		if kind == C.ATOLL_EVENT_END {
			C.atoll_sandbox_free(sandbox)
			fmt.Println("end", status)
			return
		}
	}
}
