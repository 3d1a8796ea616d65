// SPDX-License-Identifier: BSD-2-Clause
/*
 * export-jsonl.c - JSON Lines: exactly the lines of `cat --json`, as a file with its sidecar.
 *
 * One object a line, no header, no trailer; the fields are documented in format/render.c and only
 * grow. Loaders of DuckDB and ClickHouse take it as it is.
 */
#include "daemon/ctl/export.h"

size_t export_jsonl_line(char *buf, const struct iot_request *r, const struct iot_render *ctx)
{
	return iot_render_json(buf, r, ctx);
}
