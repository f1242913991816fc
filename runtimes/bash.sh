# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Driver of a bash context of the code interpreter: runs the cells that it reads, and says what came of them (python.py
# has how). Requests come by descriptor 3, each ended by a NUL: its number, the code, and NAME=value of each variable of
# this cell, as quoted words. Its lines stand in frames in 4 and 5, which are standard output and error. The names of
# this file begin with __driver, since the code runs in the same shell.

__driver_mark=$2
__driver_count=0

# Lines are short and ASCII: one frame each, which is one write.
__driver_say() {
	local line
	printf -v line '{"id":%s,"type":%s}\n' "$__driver_id" "$1"
	printf '\x1e%s%04x%s\n' "$__driver_mark" "${#line}" "${line%$'\n'}"
}

__driver_set() {
	local word name
	__driver_before=()
	for word in "$@"; do
		name=${word%%=*}
		[[ $name =~ ^[A-Za-z_][A-Za-z0-9_]*$ ]] || continue
		if [ -n "${!name+set}" ]; then
			__driver_before+=("$name=${!name}")
		else
			__driver_before+=("$name")
		fi
		export "$word"
	done
}

__driver_unset() {
	local word
	for word in "${__driver_before[@]}"; do
		if [[ $word == *=* ]]; then
			export "$word"
		else
			unset "$word"
		fi
	done
}

# An interrupt ends the command that runs, and not this shell.
trap : INT
while IFS= read -r -d '' __driver_request <&3; do
	eval "__driver_words=($__driver_request)"
	__driver_id=${__driver_words[0]}
	__driver_count=$((__driver_count + 1))
	__driver_say "\"number_of_executions\",\"execution_count\":$__driver_count" >&4
	__driver_set "${__driver_words[@]:2}"
	eval "${__driver_words[1]}" 3<&- 4>&- 5>&-
	__driver_status=$?
	__driver_unset
	if [ "$__driver_status" -ne 0 ]; then
		__driver_say "\"error\",\"name\":\"ExitStatus\",\"value\":\"$__driver_status\",\"traceback\":\"\"" >&4
	fi
	__driver_say '"end"' >&5
	__driver_say '"end"' >&4
done
