// SPDX-License-Identifier: BSD-2-Clause
/*
 * jobs.c - see jobs.h.
 *
 * Two lists under one mutex: waiting (loop -> thread) and finished (thread -> loop); an eventfd
 * tells the loop that finished is not empty. `n` counts everything from submit to done, so that the
 * bound also covers results nobody fetched yet.
 */
#include "daemon/jobs.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#define JOBS_MAX 64

struct job {
	struct job *next;
	job_run_fn run;
	job_done_fn done;
	void *arg;
	int result;
};

struct job_list {
	struct job *head;
	struct job **tail;
};

struct jobs {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct job_list waiting;
	struct job_list finished;
	unsigned int n;
	bool stop;
	int fd;
	sd_event_source *source;
};

static void list_init(struct job_list *l)
{
	l->head = NULL;
	l->tail = &l->head;
}

static void list_push(struct job_list *l, struct job *job)
{
	job->next = NULL;
	*l->tail = job;
	l->tail = &job->next;
}

static struct job *list_pop(struct job_list *l)
{
	struct job *job = l->head;

	if (job) {
		l->head = job->next;
		if (!l->head)
			l->tail = &l->head;
	}
	return job;
}

static void *jobs_thread(void *userdata)
{
	struct jobs *j = userdata;
	const uint64_t one = 1;

	pthread_mutex_lock(&j->lock);
	while (!j->stop) {
		struct job *job = list_pop(&j->waiting);

		if (!job) {
			pthread_cond_wait(&j->wake, &j->lock);
			continue;
		}
		pthread_mutex_unlock(&j->lock);
		job->result = job->run(job->arg);
		pthread_mutex_lock(&j->lock);
		list_push(&j->finished, job);
		/* Fails only when the counter would overflow; then the loop is awake anyway. */
		(void)!write(j->fd, &one, sizeof(one));
	}
	pthread_mutex_unlock(&j->lock);
	return NULL;
}

static void finish_all(struct jobs *j, struct job_list *l, const int *result)
{
	struct job *job;

	for (;;) {
		pthread_mutex_lock(&j->lock);
		job = list_pop(l);
		if (job)
			j->n--;
		pthread_mutex_unlock(&j->lock);
		if (!job)
			return;
		job->done(job->arg, result ? *result : job->result);
		free(job);
	}
}

static int on_finished(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct jobs *j = userdata;
	uint64_t count;

	(void)source;
	(void)revents;
	(void)!read(fd, &count, sizeof(count));
	finish_all(j, &j->finished, NULL);
	return 0;
}

int jobs_new(sd_event *event, struct jobs **ret)
{
	sigset_t all, old;
	struct jobs *j = calloc(1, sizeof(*j));
	int r;

	if (!j)
		return -ENOMEM;
	list_init(&j->waiting);
	list_init(&j->finished);
	pthread_mutex_init(&j->lock, NULL);
	pthread_cond_init(&j->wake, NULL);
	j->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (j->fd < 0) {
		r = -errno;
		goto fail;
	}
	r = sd_event_add_io(event, &j->source, j->fd, EPOLLIN, on_finished, j);
	if (r < 0)
		goto fail;

	/* Signals are the loop's; the thread takes none. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = -pthread_create(&j->thread, NULL, jobs_thread, j);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r < 0)
		goto fail;
	pthread_setname_np(j->thread, "iot-jobs");
	*ret = j;
	return 0;
fail:
	sd_event_source_disable_unref(j->source);
	if (j->fd >= 0)
		close(j->fd);
	free(j);
	return r;
}

int jobs_submit(struct jobs *j, job_run_fn run, job_done_fn done, void *arg)
{
	struct job *job = calloc(1, sizeof(*job));

	if (!job)
		return -ENOMEM;
	job->run = run;
	job->done = done;
	job->arg = arg;
	pthread_mutex_lock(&j->lock);
	assert(!j->stop);
	if (j->n >= JOBS_MAX) {
		pthread_mutex_unlock(&j->lock);
		free(job);
		return -EBUSY;
	}
	j->n++;
	list_push(&j->waiting, job);
	pthread_cond_signal(&j->wake);
	pthread_mutex_unlock(&j->lock);
	return 0;
}

struct jobs *jobs_free(struct jobs *j)
{
	static const int canceled = -ECANCELED;

	if (!j)
		return NULL;
	pthread_mutex_lock(&j->lock);
	j->stop = true;
	pthread_cond_signal(&j->wake);
	pthread_mutex_unlock(&j->lock);
	pthread_join(j->thread, NULL);
	finish_all(j, &j->finished, NULL);
	finish_all(j, &j->waiting, &canceled);
	sd_event_source_disable_unref(j->source);
	close(j->fd);
	pthread_cond_destroy(&j->wake);
	pthread_mutex_destroy(&j->lock);
	free(j);
	return NULL;
}
