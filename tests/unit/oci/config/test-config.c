/* SPDX-License-Identifier: Apache-2.0 */

/* config.json: a whole one is read as it is, and each field that is wrong is named. */

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/str.h"
#include "oci/config/config.h"

static const char whole[] =
	"{\"ociVersion\":\"1.0.2\",\"root\":{\"path\":\"rootfs\",\"readonly\":true},\"hostname\":\"h\","
	"\"process\":{\"cwd\":\"/\",\"args\":[\"sh\",\"-c\",\"1\"],\"env\":[\"A=b\"],\"user\":{\"uid\":7,\"gid\":8,"
	"\"additionalGids\":[9]},\"rlimits\":[{\"type\":\"RLIMIT_NOFILE\",\"hard\":18446744073709551615,\"soft\":5}],"
	"\"capabilities\":{\"bounding\":[\"CAP_CHOWN\"]},\"oomScoreAdj\":3},"
	"\"mounts\":[{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\",\"options\":[\"ro\"]}],"
	"\"hooks\":{\"poststop\":[{\"path\":\"/bin/true\",\"timeout\":3}]},\"annotations\":{\"a\":\"b\"},"
	"\"linux\":{\"namespaces\":[{\"type\":\"mount\"},{\"type\":\"uts\"},{\"type\":\"ipc\"}],"
	"\"sysctl\":{\"kernel.shmmax\":\"5\"},"
	"\"resources\":{\"memory\":{\"limit\":77},\"pids\":{\"limit\":5},\"cpu\":{\"cpus\":\"0\"},\"devices\":"
	"[{\"allow\":false,\"access\":\"rwm\"}],\"blockIO\":{}},\"seccomp\":{\"defaultAction\":\"SCMP_ACT_ALLOW\","
	"\"syscalls\":[{\"names\":[\"mkdir\"],\"action\":\"SCMP_ACT_ERRNO\",\"args\":[{\"index\":1,\"value\":2,"
	"\"op\":\"SCMP_CMP_EQ\"}]}]},\"devices\":[{\"type\":\"c\",\"path\":\"/dev/x\",\"major\":1,\"minor\":3}],"
	"\"maskedPaths\":[\"/proc/keys\"]}}";

static void whole_one_is_read(void **state)
{
	struct oci_config config;
	struct err err = { 0 };
	const struct oci_rlimit *limit;

	assert_int_equal(oci_config_parse(&config, whole, strlen(whole), &err), 0);
	assert_string_equal(config.root_path, "rootfs");
	assert_true(config.is_root_readonly);
	assert_int_equal(config.process.user.uid, 7);
	assert_true(config.process.user.umask == FIELD_NONE);
	assert_int_equal(config.process.oom_score_adj, 3);
	assert_int_equal(config.process.args.count, 3);
	assert_null(config.process.args.items[3]);
	limit = config.process.rlimits.items;
	assert_true(limit->hard == INT64_MAX);
	assert_int_equal(config.linux_part.resources.memory_limit, 77);
	assert_true(config.linux_part.resources.memory_swap == FIELD_NONE);
	assert_int_equal(config.linux_part.resources.pids_limit, 5);
	assert_int_equal(config.hooks[OCI_HOOK_POSTSTOP].count, 1);
	assert_non_null(oci_config_namespace(&config, CLONE_NEWUTS));
	assert_null(oci_config_namespace(&config, CLONE_NEWPID));
	oci_config_done(&config);
}

static const struct {
	const char *old, *new, *named;
} wrong[] = {
	{ "\"ociVersion\":\"1.0.2\",", "", "ociVersion is missing" },
	{ "\"1.0.2\"", "\"2.0.0\"", "ociVersion" },
	{ "\"1.0.2\"", "7", "ociVersion must be a string" },
	{ "{\"path\":\"rootfs\",\"readonly\":true}", "[]", "root must be an object" },
	{ "\"path\":\"rootfs\",", "", "root.path is missing" },
	{ "\"readonly\":true", "\"readonly\":1", "root.readonly must be true or false" },
	{ "\"cwd\":\"/\"", "\"cwd\":\"a\"", "process.cwd" },
	{ "\"args\":[\"sh\",\"-c\",\"1\"]", "\"args\":[]", "process.args" },
	{ "\"args\":[\"sh\",\"-c\",\"1\"]", "\"args\":[3]", "process.args must be an array of strings" },
	{ "\"sh\"", "\"s\\u0000h\"", "" },
	{ "\"A=b\"", "\"A\"", "process.env" },
	{ "\"uid\":7", "\"uid\":-1", "process.user.uid must be a whole number from 0" },
	{ "\"uid\":7", "\"uid\":4294967295", "process.user.uid" },
	{ "\"uid\":7", "\"uid\":\"7\"", "process.user.uid must be a whole number" },
	{ "[9]", "[\"9\"]", "process.user.additionalGids" },
	{ "RLIMIT_NOFILE", "RLIMIT_X", "process.rlimits" },
	{ "18446744073709551615", "4", "soft limit above" },
	{ "[\"CAP_CHOWN\"]", "\"CAP_CHOWN\"", "process.capabilities.bounding" },
	{ "\"oomScoreAdj\":3", "\"oomScoreAdj\":1001", "process.oomScoreAdj" },
	{ "\"destination\":\"/proc\"", "\"destination\":\"proc\"", "mounts: destination" },
	{ "\"destination\":\"/proc\",", "", "mounts[0].destination is missing" },
	{ "\"options\":[\"ro\"]", "\"options\":\"ro\"", "mounts[0].options" },
	{ "\"/bin/true\"", "\"true\"", "hooks: path" },
	{ "\"timeout\":3", "\"timeout\":0", "hooks.poststop[0].timeout" },
	{ "{\"a\":\"b\"}", "{\"a\":1}", "annotations" },
	{ "{\"type\":\"mount\"},", "", "mount namespace" },
	{ "\"mount\"", "\"mounts\"", "linux.namespaces" },
	{ "{\"type\":\"mount\"}", "{\"type\":\"mount\"},{\"type\":\"mount\"}", "twice" },
	{ "{\"type\":\"mount\"}", "{\"type\":\"mount\"},{\"type\":\"user\"}", "linux.uidMappings" },
	{ "{\"type\":\"uts\"},", "", "uts namespace" },
	{ ",{\"type\":\"ipc\"}", "", "linux.sysctl" },
	{ "kernel.shmmax", "kernel.core_pattern", "not in a separate kernel namespace" },
	{ "kernel.shmmax", "net.ipv4.ip_forward", "linux.sysctl" },
	{ "\"limit\":77", "\"limit\":-2", "linux.resources.memory.limit" },
	{ "\"cpus\":\"0\"", "\"cpus\":0", "linux.resources.cpu.cpus" },
	{ "\"blockIO\":{}", "\"blockIO\":{\"weight\":10}", "linux.resources.blockIO is not supported" },
	{ "\"access\":\"rwm\"", "\"access\":7", "linux.resources.devices[0].access" },
	{ "\"defaultAction\":\"SCMP_ACT_ALLOW\",", "", "linux.seccomp.defaultAction is missing" },
	{ "\"index\":1", "\"index\":6", "linux.seccomp.syscalls[0].args[0].index" },
	{ "\"value\":2", "\"value\":18446744073709551615", "linux.seccomp.syscalls[0].args[0].value" },
	{ "\"type\":\"c\"", "\"type\":\"x\"", "linux.devices: type" },
	{ "\"/dev/x\"", "\"dev/x\"", "linux.devices: path" },
	{ "\"/proc/keys\"", "\"proc/keys\"", "linux.maskedPaths" },
	{ "\"h\",", "\"h\"", "" },
	{ "\"hostname\":\"h\"", "\"hostname\":\"h\",\"hostname\":\"i\"", "" },
};

static void each_wrong_field_is_named(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		const char *at = strstr(whole, wrong[i].old);
		cleanup_free char *text = NULL;
		struct oci_config config;
		struct err err = { 0 };

		assert_non_null(at);
		text = str_printf("%.*s%s%s", (int)(at - whole), whole, wrong[i].new, at + strlen(wrong[i].old));
		assert_non_null(text);
		if (oci_config_parse(&config, text, strlen(text), &err) != -EINVAL ||
		    !strstr(err.message, wrong[i].named))
			fail_msg("%s for %s: %s", wrong[i].new, wrong[i].old, err.message);
		oci_config_done(&config);
	}
}

static void every_cut_text_is_refused(void **state)
{
	for (size_t size = 0; size + 1 < sizeof whole; size++) {
		struct oci_config config;
		struct err err = { 0 };

		assert_int_equal(oci_config_parse(&config, whole, size, &err), -EINVAL);
		oci_config_done(&config);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_one_is_read),
		cmocka_unit_test(each_wrong_field_is_named),
		cmocka_unit_test(every_cut_text_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
