// SPDX-License-Identifier: BSD-2-Clause
/*
 * verb-config.c - the configuration in effect, as YAML that could be a configuration file.
 */
#include "daemon/ctl/live.h"

int verb_config(struct ctl *c, int argc, char **argv)
{
	struct json_object *reply;
	const char *yaml;
	int r;

	r = live_no_operands(argc, argv);
	if (r == CTL_OK)
		r = ctl_call(c, CONTROL_INTERFACE ".Config", NULL, &reply);
	if (r != CTL_OK)
		return r;
	if (c->json)
		return ctl_json_print(reply);
	yaml = live_str(reply, "yaml");
	if (yaml)
		fputs(yaml, stdout);
	else
		r = ctl_fail(CTL_ERROR, "the daemon sent no configuration");
	json_object_put(reply);
	return r;
}
