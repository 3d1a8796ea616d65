/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control-proto.h - the Varlink wire form both ends of the control socket speak: one JSON object,
 * one NUL. Pure: buffers and json-c objects, no sockets. Used by daemon/control.c and the ctl.
 *
 * Interface io.iotraced.Control (text in control-proto.c, returned by GetInterfaceDescription):
 *   Status() -> (status: object)          InFlight() -> (requests: []object, total: int)
 *   Rotate(stream: ?string) -> (segments: []string)   Flush() -> ()
 *   Probes() -> (probes: []object)        Config() -> (yaml: string, source: string)
 *   Follow(...) with `more` is issue 7's.
 * Errors: org.varlink.service.{MethodNotFound,InvalidParameter,...}, io.iotraced.Control.
 * {PermissionDenied, Busy, Failed(message)}.
 */
#pragma once

#include <json-c/json.h>

#include "format/base.h"

#define CONTROL_INTERFACE "io.iotraced.Control"
#define CONTROL_SOCKET "/run/iotraced/control.sock" /* = IOT_SOCKET, which the ctl must not see */
#define CONTROL_MAX_REQUEST (64 * 1024)
#define CONTROL_MAX_REPLY (16 * 1024 * 1024)
#define CONTROL_MAX_DEPTH 8

extern const char control_interface_description[];

/*
 * Takes one message from buf. Positive CONTROL_MORE: not whole yet. *ret_used bytes were consumed.
 * -EBADMSG not JSON or not an object, -E2BIG larger than max, -ELOOP nested too deep.
 */
#define CONTROL_MORE 1
int control_parse(const char *buf, size_t len, size_t max, struct json_object **ret,
		  size_t *ret_used) IOT_MUST_CHECK;
/* Serialised with its NUL. Caller frees. */
int control_format(struct json_object *msg, char **ret, size_t *ret_len) IOT_MUST_CHECK;

/* {"method": m, "parameters": p}; takes p (may be NULL). */
int control_call(const char *method, struct json_object *parameters,
		 struct json_object **ret) IOT_MUST_CHECK;
int control_reply(struct json_object *parameters, bool continues,
		  struct json_object **ret) IOT_MUST_CHECK;
int control_error(const char *error, struct json_object *parameters,
		  struct json_object **ret) IOT_MUST_CHECK;

/* u64 as a decimal string: jq 1.6 and JavaScript round numbers above 2^53. */
struct json_object *control_u64(uint64_t v);
