// SPDX-License-Identifier: BSD-2-Clause
/*
 * parse-time.c - times as people write them.
 *
 *   now, today, yesterday           -5m, +1h (relative to now)
 *   @1764417600[.fraction]          HH:MM[:SS[.fraction]], today
 *   YYYY-MM-DD[(T| )HH:MM[:SS[.fraction]]][Z| UTC|(+|-)HH[:MM]]
 *
 * Local time unless the text says otherwise. The whole string must be understood, and a date must
 * be in the calendar: February 30 is refused, not moved.
 */
#include <ctype.h>
#include <time.h>

#include "daemon/ctl/ctl-util.h"

#define NSEC_PER_SEC 1000000000ULL

/* Exactly n digits at *s; advances. */
static bool take_digits(const char **s, int n, int *ret)
{
	int v = 0;

	for (int i = 0; i < n; i++, (*s)++) {
		if (!isdigit((unsigned char)**s))
			return false;
		v = v * 10 + (**s - '0');
	}
	*ret = v;
	return true;
}

/* ".123" at *s, up to nine digits; absent is 0. */
static bool take_fraction(const char **s, uint64_t *ret_ns)
{
	uint64_t v = 0, unit = NSEC_PER_SEC;

	*ret_ns = 0;
	if (**s != '.' && **s != ',')
		return true;
	(*s)++;
	if (!isdigit((unsigned char)**s))
		return false;
	for (; isdigit((unsigned char)**s); (*s)++) {
		unit /= 10; /* reaches 0 behind nanoseconds: further digits add nothing */
		v += unit * (uint64_t)(**s - '0');
	}
	*ret_ns = v;
	return true;
}

/* "HH:MM[:SS[.frac]]" at *s. */
static bool take_clock(const char **s, struct tm *tm, uint64_t *ret_ns)
{
	*ret_ns = 0;
	if (!take_digits(s, 2, &tm->tm_hour) || *(*s)++ != ':' || !take_digits(s, 2, &tm->tm_min))
		return false;
	tm->tm_sec = 0;
	if (**s == ':') {
		(*s)++;
		if (!take_digits(s, 2, &tm->tm_sec) || !take_fraction(s, ret_ns))
			return false;
	}
	return tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec <= 60;
}

/* "", "Z" or "+HH[:]MM" at s: *ret_utc says whether there was one. */
static bool take_zone(const char *s, bool *ret_utc, int *ret_offset_sec)
{
	int sign, hours, minutes = 0;

	*ret_utc = false;
	*ret_offset_sec = 0;
	if (!*s)
		return true;
	*ret_utc = true;
	if (strcmp(s, "Z") == 0 || strcmp(s, " UTC") == 0)
		return true;
	if (*s != '+' && *s != '-')
		return false;
	sign = *s++ == '-' ? -1 : 1;
	if (!take_digits(&s, 2, &hours))
		return false;
	if (*s == ':')
		s++;
	if (*s && !take_digits(&s, 2, &minutes))
		return false;
	*ret_offset_sec = sign * (hours * 3600 + minutes * 60);
	return !*s && hours < 24 && minutes < 60;
}

static int from_tm(struct tm *tm, bool utc, int offset_sec, uint64_t frac_ns, uint64_t *ret_ns)
{
	int mday = tm->tm_mday, mon = tm->tm_mon;
	time_t t;

	tm->tm_isdst = -1;
	t = utc ? timegm(tm) : mktime(tm);
	/* The library turns February 30 into March 2: a date that is not in the calendar. */
	if (t == (time_t)-1 || (tm->tm_sec < 60 && (tm->tm_mday != mday || tm->tm_mon != mon)))
		return -EINVAL;
	t -= offset_sec;
	if (t < 0 || (uint64_t)t > UINT64_MAX / NSEC_PER_SEC - 1)
		return -ERANGE;
	*ret_ns = (uint64_t)t * NSEC_PER_SEC + frac_ns;
	return 0;
}

static int parse_relative(const char *s, uint64_t now_ns, uint64_t *ret_ns)
{
	uint64_t d;
	int r;

	r = iot_parse_duration(s + 1, &d);
	if (r < 0)
		return r;
	if (*s == '-' ? d > now_ns : d > UINT64_MAX - now_ns)
		return -ERANGE;
	*ret_ns = *s == '-' ? now_ns - d : now_ns + d;
	return 0;
}

static int parse_epoch(const char *s, uint64_t *ret_ns)
{
	uint64_t sec = 0, frac;

	if (!isdigit((unsigned char)*s))
		return -EINVAL;
	for (; isdigit((unsigned char)*s); s++) {
		sec = sec * 10 + (uint64_t)(*s - '0');
		if (sec > UINT64_MAX / NSEC_PER_SEC - 1)
			return -ERANGE;
	}
	if (!take_fraction(&s, &frac) || *s)
		return -EINVAL;
	*ret_ns = sec * NSEC_PER_SEC + frac;
	return 0;
}

int ctl_parse_time(const char *s, uint64_t now_ns, uint64_t *ret_ns)
{
	time_t now = (time_t)(now_ns / NSEC_PER_SEC);
	struct tm tm;
	uint64_t frac = 0;
	int offset = 0, year, mon;
	bool utc = false;

	if (*s == '@')
		return parse_epoch(s + 1, ret_ns);
	if (*s == '-' || *s == '+')
		return parse_relative(s, now_ns, ret_ns);
	if (strcmp(s, "now") == 0) {
		*ret_ns = now_ns;
		return 0;
	}
	if (!localtime_r(&now, &tm))
		return -ERANGE;
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	if (strcmp(s, "today") == 0)
		return from_tm(&tm, false, 0, 0, ret_ns);
	if (strcmp(s, "yesterday") == 0) {
		/* Noon minus a day is yesterday whatever the clocks were set to. */
		now = (tm.tm_hour = 12, mktime(&tm)) - 86400;
		if (!localtime_r(&now, &tm))
			return -ERANGE;
		tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
		return from_tm(&tm, false, 0, 0, ret_ns);
	}
	if (strlen(s) >= 3 && s[2] == ':') {
		if (!take_clock(&s, &tm, &frac) || *s)
			return -EINVAL;
		return from_tm(&tm, false, 0, frac, ret_ns);
	}
	if (!take_digits(&s, 4, &year) || *s++ != '-' || !take_digits(&s, 2, &mon) || *s++ != '-' ||
	    !take_digits(&s, 2, &tm.tm_mday))
		return -EINVAL;
	if (mon < 1 || mon > 12 || tm.tm_mday < 1 || tm.tm_mday > 31)
		return -EINVAL;
	tm.tm_year = year - 1900;
	tm.tm_mon = mon - 1;
	if (*s == 'T' || (*s == ' ' && isdigit((unsigned char)s[1]))) {
		s++;
		if (!take_clock(&s, &tm, &frac))
			return -EINVAL;
	}
	if (!take_zone(s, &utc, &offset))
		return -EINVAL;
	return from_tm(&tm, utc, offset, frac, ret_ns);
}
