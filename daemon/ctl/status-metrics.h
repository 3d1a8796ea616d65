/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include "daemon/ctl/live.h"
#include "daemon/ctl/metrics.h"

/* The reply of Status; NULL: no daemon answered, which is a number, too. */
void status_metrics(struct metrics *m, struct json_object *status);
