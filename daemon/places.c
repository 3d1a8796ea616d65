// SPDX-License-Identifier: BSD-2-Clause
/* places.c - see places.h. */
#include "daemon/places.h"

#include <sys/random.h>

#define N_SLOTS (2 * PLACES_MAX)
_Static_assert((N_SLOTS & (N_SLOTS - 1)) == 0, "slots are masked");

int places_init(struct places *p)
{
	uint32_t session = 0;

	/* Untouched pages cost nothing: most kernels show a few dozen places. */
	*p = (struct places){
		.addresses = calloc(PLACES_MAX, sizeof(*p->addresses)),
		.slots = calloc(N_SLOTS, sizeof(*p->slots)),
	};
	(void)!getrandom(&session, sizeof(session), GRND_NONBLOCK);
	p->base = (uint64_t)(session >> 1) * 2 * PLACES_MAX;
	if (p->addresses && p->slots)
		return 0;
	places_done(p);
	return -ENOMEM;
}

void places_done(struct places *p)
{
	free(p->addresses);
	free(p->slots);
	*p = (struct places){};
}

uint64_t places_number(struct places *p, uint64_t address)
{
	uint32_t at = (uint32_t)(address * 0x9e3779b97f4a7c15ULL >> 32) & (N_SLOTS - 1);

	if (!address)
		return 0;
	while (p->slots[at] && p->addresses[p->slots[at] - 1] != address)
		at = (at + 1) & (N_SLOTS - 1);
	if (!p->slots[at]) {
		if (p->n == PLACES_MAX)
			return 0;
		p->addresses[p->n++] = address;
		p->slots[at] = p->n;
	}
	return p->base + p->slots[at];
}

uint64_t places_address(const struct places *p, uint64_t number)
{
	return number > p->base && number - p->base <= PLACES_MAX
		       ? p->addresses[number - p->base - 1]
		       : 0;
}
