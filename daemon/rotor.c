// SPDX-License-Identifier: BSD-2-Clause
/* rotor.c - see rotor.h. */
#include <assert.h>
#include <signal.h>
#include <sys/eventfd.h>

#include "daemon/rotor.h"

static void *rotor_main(void *arg)
{
	struct rotor *r = arg;

	pthread_mutex_lock(&r->lock);
	while (!r->stop || (r->fn && !r->finished)) {
		rotor_fn fn = r->fn;
		int result;

		if (!fn || r->finished) {
			pthread_cond_wait(&r->cond, &r->lock);
			continue;
		}
		pthread_mutex_unlock(&r->lock);
		result = fn(r->arg);
		pthread_mutex_lock(&r->lock);
		r->result = result;
		r->finished = true;
		(void)eventfd_write(r->event_fd, 1);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

int rotor_start(struct rotor *r, int event_fd)
{
	sigset_t all, old;
	int q;

	*r = (struct rotor){.event_fd = event_fd};
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->cond, NULL);
	/* Signals are the main thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	q = pthread_create(&r->thread, NULL, rotor_main, r);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (q != 0)
		return -q;
	(void)pthread_setname_np(r->thread, "iot-rotor");
	r->running = true;
	return 0;
}

void rotor_stop(struct rotor *r)
{
	if (!r->running)
		return;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_cond_signal(&r->cond);
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
	pthread_cond_destroy(&r->cond);
	pthread_mutex_destroy(&r->lock);
	r->running = false;
}

void rotor_submit(struct rotor *r, rotor_fn fn, void *arg)
{
	pthread_mutex_lock(&r->lock);
	assert(!r->fn);
	r->fn = fn;
	r->arg = arg;
	r->finished = false;
	pthread_cond_signal(&r->cond);
	pthread_mutex_unlock(&r->lock);
}

bool rotor_take(struct rotor *r, int *ret_result)
{
	bool taken = false;

	pthread_mutex_lock(&r->lock);
	if (r->fn && r->finished) {
		*ret_result = r->result;
		r->fn = NULL;
		taken = true;
	}
	pthread_mutex_unlock(&r->lock);
	return taken;
}
