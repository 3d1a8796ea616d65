/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * places.h - numbers for code addresses of the running kernel, so that no address gets into a file: one
 * would undo its address randomisation for whoever reads the archive, and means nothing on the next boot.
 * What a number stands for is said by the segment's table of symbols (net-names.h).
 *
 * A daemon may go on with the capture, and the file, of one that died, whose numbers nobody can name any
 * more: so each daemon's begin elsewhere.
 *
 * Numbers are given by one thread (the worker) and go to another (the rotor) with an epoch's books, which
 * is what orders the two: an entry that was given out never changes, and nothing moves.
 */
#pragma once

#include "format/base.h"

#define PLACES_MAX 16384U /* a kernel has some thousand places that drop packets */

struct places {
	uint64_t base;	     /* numbers follow it; below 2^47, so that none looks like an address */
	uint64_t *addresses; /* [number - base - 1] */
	uint32_t *slots;     /* number - base, 0 = free; twice PLACES_MAX, open addressing */
	uint32_t n;
};

int places_init(struct places *p) IOT_MUST_CHECK;
void places_done(struct places *p);
/* The same for the same address; 0: address 0, or there is no room. */
uint64_t places_number(struct places *p, uint64_t address);
/* Of a number that was given; 0 for any other. */
uint64_t places_address(const struct places *p, uint64_t number);
