/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * packet-scene.h - packet 77 in the second of three segments, what may be spoiled about it in more than one
 * test, and the table that says which verdict must follow.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/packet-fixture.h"

#define LIFE_FIRST (2 * FIX_SPAN_NS + 100 * FIX_SEC_NS)
#define LIFE_LAST (LIFE_FIRST + 4 * FIX_STEP_NS)
#define FAR_NS (20 * FIX_SEC_NS) /* beyond every slack around a packet */

static inline void whole(struct fix_capture *c)
{
	fix_path(c, 1, 77, LIFE_FIRST, 1, 5);
}

/* Without the record of hop 5, which is its end. */
static inline void unended(struct fix_capture *c)
{
	fix_path(c, 1, 77, LIFE_FIRST, 1, 4);
}

static inline void lose_hop(struct fix_capture *c, uint32_t hop)
{
	struct iot_packet p = fix_packet(77, LIFE_FIRST, hop);

	(void)fix_lose(c, 1, &p);
}

static inline void change(struct fix_capture *c, uint16_t set, uint16_t clear)
{
	for (size_t i = 0; i < c->n_records; i++)
		if (c->records[i].p.id == 77)
			c->records[i].p.flags = (uint16_t)((c->records[i].p.flags | set) & ~clear);
}

static inline void not_selected(struct fix_capture *c)
{
	struct iot_packet p = fix_packet(77, LIFE_FIRST, 1);

	p.probe = FIX_KFREE;
	p.flags = IOT_PACKET_NOT_SELECTED | IOT_PACKET_END;
	fix_record(c, 1, &p);
	fix_unattributed(c, 1, FIX_KFREE, LIFE_FIRST, LIFE_LAST, 1);
}

static inline void no_ledger(struct fix_capture *c) /* of a version that has none */
{
	struct iot_packet p = fix_packet(78, LIFE_FIRST, 2);

	whole(c);
	(void)fix_lose(c, 1, &p);
	c->s[1].f.n_losses = 0;
}

static inline void torn_tail(struct fix_capture *c)
{
	whole(c);
	c->no_footer[1] = true;
}

static inline void torn_tail_later(struct fix_capture *c)
{
	whole(c);
	c->no_footer[2] = true;
}

static inline void nothing(struct fix_capture *c)
{
	(void)c;
}

struct scene_row {
	const char *name;
	void (*spoil)(struct fix_capture *c);
	enum iot_packet_verdict want;
	const char *why; /* part of a reason; NULL = there is none */
};

static inline bool mentions(const struct iot_verdict *v, const char *text)
{
	for (size_t i = 0; i < v->n_reasons; i++)
		if (strstr(v->reasons[i], text))
			return true;
	return false;
}

static inline struct fix_capture *capture(void (*spoil)(struct fix_capture *c))
{
	struct fix_capture *c = malloc(sizeof(*c));

	assert_non_null(c);
	fix_init(c, 3);
	spoil(c);
	return c;
}

static inline void scene_run(const struct scene_row *rows, size_t n)
{
	unsigned int failed = 0;

	for (size_t i = 0; i < n; i++) {
		const struct scene_row *row = &rows[i];
		struct fix_capture *c = capture(row->spoil);
		struct iot_packet_life l = fix_life(c, 77);
		struct iot_packet_ruling r, quick;
		struct iot_verdict why;
		struct iot_doubts *d;

		assert_int_equal(fix_doubts(c, &d), 0);
		iot_doubts_judge(d, &l, &r, &why);
		iot_doubts_judge(d, &l, &quick, NULL);
		if (r.verdict != row->want ||
		    (row->why ? !mentions(&why, row->why) : why.n_reasons)) {
			print_error("%s: %s (%s)\n", row->name, iot_packet_verdict_name(r.verdict),
				    why.n_reasons ? why.reasons[0] : "no reason");
			failed++;
		}
		assert_memory_equal(&quick, &r, sizeof(r));
		assert_true(r.verdict != IOT_PVERDICT_UNKNOWN || r.doubtful);
		assert_int_equal(r.truncated_start, r.verdict != IOT_PVERDICT_LOST_ENTIRELY &&
							    !(l.flags & IOT_PACKET_FROM_START));
		iot_doubts_free(d);
		free(c);
	}
	assert_int_equal(failed, 0);
}
