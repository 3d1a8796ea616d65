// SPDX-License-Identifier: BSD-2-Clause
/*
 * fuzz-control.c - any bytes as what a client sends: parsed, dispatched, answered.
 *
 * The first byte chooses the peer's rights and whether operations fail. Beyond not crashing: every
 * call has one outcome, a reply is a message the other side reads back as the same, and whoever may
 * not change anything never reaches an operation that does.
 */
#include "tests/unit/fake-control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "fuzz-control: %s\n", what);
	abort();
}

static void check_reply(struct json_object *reply)
{
	struct json_object *back = NULL;
	char *text = NULL;
	size_t len, used;

	check(control_format(reply, &text, &len) == 0, "a reply cannot be written");
	check(control_parse(text, len, CONTROL_MAX_REPLY, &back, &used) == 0,
	      "a reply cannot be read");
	check(used == len, "a reply has something behind it");
	check(json_object_equal(reply, back), "a reply reads back as something else");
	json_object_put(back);
	free(text);
}

static void one_request(struct json_object *request, const struct control_peer *peer, int error)
{
	struct fake_control fake = {.error = error};
	struct json_object *reply = NULL;
	int r = control_dispatch(&fake_ops, &fake, peer, 1, request, &reply);

	check(r == 0 || r == CONTROL_PENDING, "no outcome");
	check(peer->may_change || fake.n_changes == 0, "changed without the right to");
	check((r == CONTROL_PENDING) == (fake.n_changes == 1), "pending without an operation");
	if (r == CONTROL_PENDING)
		check(!reply, "a reply before the end");
	else if (reply)
		check_reply(reply);
	else
		check(control_is_oneway(request), "no reply");
	json_object_put(reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct control_peer peer;
	size_t len, pos = 0, used;
	char *buf;
	int r;

	if (size < 1)
		return 0;
	peer.may_change = data[0] & 1;
	len = size - 1;
	/* Exactly as long as the input, so that reading past it is seen. */
	buf = malloc(len ? len : 1);
	if (!buf)
		abort();
	memcpy(buf, data + 1, len);
	for (;;) {
		struct json_object *request = NULL;

		r = control_parse(buf + pos, len - pos, CONTROL_MAX_REQUEST, &request, &used);
		if (r != 0) {
			check(!request, "refused and returned");
			check(r == CONTROL_MORE || r == -EBADMSG || r == -E2BIG || r == -ELOOP,
			      "an undocumented error");
			break;
		}
		check(used > 0 && used <= len - pos, "consumed more than there was");
		pos += used;
		one_request(request, &peer, data[0] & 2 ? -EIO : 0);
		json_object_put(request);
	}
	free(buf);
	return 0;
}
