// SPDX-License-Identifier: BSD-2-Clause
/*
 * control.c - see control.h.
 *
 * A client is in one of three states:
 *   reading	EPOLLIN; a whole request in `in` moves it on
 *   waiting	an operation runs under its token; no events wanted, no deadline (the operation has its own)
 *   writing	EPOLLOUT until `out` is taken; then closing ones are freed, others read again
 * The deadline is set on each change of state and not by bytes: a client that sends a byte now and
 * then holds its place no longer than a silent one.
 */
#include "daemon/control.h"

#include <assert.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

#include "daemon/control-socket.h"
#include "daemon/log.h"

struct client {
	struct client *next;
	struct control *control;
	uint64_t token;
	int fd;
	sd_event_source *io;
	sd_event_source *deadline;
	struct control_peer peer;
	char *in;
	size_t in_len;
	char *out;
	size_t out_len, out_pos;
	bool waiting;
	bool oneway;  /* the waiting call wants no reply */
	bool closing; /* close once out is taken */
};

struct control {
	sd_event *event;
	struct control_socket socket;
	sd_event_source *listen;
	sd_event_source *resume;
	const struct control_ops *ops;
	void *userdata;
	uint64_t idle_usec;
	gid_t admin_gid;
	struct client *clients;
	unsigned int n_clients;
	uint64_t next_token;
	struct log_limit limit;
};

static struct client *client_free(struct client *cl)
{
	if (!cl)
		return NULL;
	for (struct client **p = &cl->control->clients; *p; p = &(*p)->next) {
		if (*p == cl) {
			*p = cl->next;
			cl->control->n_clients--;
			break;
		}
	}
	sd_event_source_disable_unref(cl->io);
	sd_event_source_disable_unref(cl->deadline);
	close(cl->fd);
	free(cl->in);
	free(cl->out);
	free(cl);
	return NULL;
}

static void client_arm(struct client *cl, uint32_t events, bool deadline)
{
	if (sd_event_source_set_io_events(cl->io, events) < 0)
		log_debug("control: epoll refused an event mask");
	if (deadline)
		sd_event_source_set_time_relative(cl->deadline, cl->control->idle_usec);
	sd_event_source_set_enabled(cl->deadline, deadline ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

/* Sends what is there. 0 goes on, negative: the client is gone or refuses. */
static int client_write(struct client *cl)
{
	while (cl->out_pos < cl->out_len) {
		ssize_t n = send(cl->fd, cl->out + cl->out_pos, cl->out_len - cl->out_pos,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return errno == EAGAIN ? 0 : -errno;
		}
		cl->out_pos += (size_t)n;
	}
	free(cl->out);
	cl->out = NULL;
	cl->out_len = cl->out_pos = 0;
	return cl->closing ? -ESHUTDOWN : 0;
}

/* Queues a message and starts sending it. Takes msg. Negative: free the client. */
static int client_send(struct client *cl, struct json_object *msg)
{
	struct json_object *error;
	int r;

	assert(!cl->out);
	r = msg ? control_format(msg, &cl->out, &cl->out_len) : -ENOMEM;
	json_object_put(msg);
	if (r < 0)
		return r;
	if (cl->out_len > CONTROL_MAX_REPLY) {
		free(cl->out);
		cl->out = NULL;
		r = control_failed(CONTROL_INTERFACE ".Failed", "the reply is too large", &error);
		if (r < 0)
			return r;
		r = control_format(error, &cl->out, &cl->out_len);
		json_object_put(error);
		if (r < 0)
			return r;
	}
	r = client_write(cl);
	if (r < 0)
		return r;
	client_arm(cl, cl->out ? EPOLLOUT : EPOLLIN, true);
	return 0;
}

static int client_refuse(struct client *cl, const char *text)
{
	struct json_object *reply;
	int r;

	cl->closing = true;
	/* What it still sends is answered with EPIPE instead of being kept in the socket. */
	shutdown(cl->fd, SHUT_RD);
	r = control_failed(CONTROL_INTERFACE ".Failed", text, &reply);
	return r < 0 ? r : client_send(cl, reply);
}

static const char *parse_problem(int r)
{
	switch (r) {
	case -E2BIG:
		return "the request is larger than 64 KiB";
	case -ELOOP:
		return "the request is nested deeper than 8";
	default:
		return "not a JSON object ended by a NUL byte";
	}
}

/* Handles at most one request that is whole in `in`. Negative: free the client. */
static int client_next(struct client *cl)
{
	struct json_object *request, *reply = NULL;
	size_t used;
	int r;

	r = control_parse(cl->in, cl->in_len, CONTROL_MAX_REQUEST, &request, &used);
	if (r == CONTROL_MORE)
		return 0;
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return client_refuse(cl, parse_problem(r));
	cl->in_len -= used;
	memmove(cl->in, cl->in + used, cl->in_len);

	/* Set before, since an operation may be finished while it is being started. */
	cl->token = cl->control->next_token++;
	cl->oneway = control_is_oneway(request);
	cl->waiting = true;
	r = control_dispatch(cl->control->ops, cl->control->userdata, &cl->peer, cl->token, request,
			     &reply);
	json_object_put(request);
	if (r == CONTROL_PENDING) {
		client_arm(cl, 0, false);
		return 0;
	}
	cl->waiting = false;
	if (r < 0)
		return r;
	if (!reply) {
		client_arm(cl, EPOLLIN, true);
		return 0;
	}
	return client_send(cl, reply);
}

/*
 * Handles one request that is already here. Further ones wait for the next turn of the loop, which
 * a writable socket gives at once: a client that sends a thousand calls in one go does not keep the
 * loop from its timers.
 */
static int client_pump(struct client *cl)
{
	int r;

	if (cl->waiting || cl->out || cl->closing || cl->in_len == 0)
		return 0;
	r = client_next(cl);
	if (r < 0)
		return r;
	if (cl->waiting || cl->out || cl->closing)
		return 0;
	if (cl->in_len == 0) {
		free(cl->in);
		cl->in = NULL;
	} else if (memchr(cl->in, '\0', cl->in_len)) {
		client_arm(cl, EPOLLOUT, true);
	}
	return 0;
}

static int client_read(struct client *cl)
{
	ssize_t n;

	if (!cl->in) {
		cl->in = malloc(CONTROL_MAX_REQUEST);
		if (!cl->in)
			return -ENOMEM;
	}
	n = recv(cl->fd, cl->in + cl->in_len, CONTROL_MAX_REQUEST - cl->in_len, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	cl->in_len += (size_t)n;
	return client_pump(cl);
}

static int on_client(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct client *cl = userdata;
	int r = 0;

	(void)source;
	(void)fd;
	if (cl->waiting) {
		/* Hung up, which epoll reports unasked: the operation goes on without it. */
		if (revents & (EPOLLHUP | EPOLLERR))
			client_free(cl);
		return 0;
	}
	if (cl->out) {
		r = client_write(cl);
		if (r == 0 && !cl->out) {
			client_arm(cl, EPOLLIN, true);
			r = client_pump(cl);
		} else if (r == 0 && (revents & (EPOLLHUP | EPOLLERR))) {
			r = -EPIPE;
		}
	} else if (revents & EPOLLOUT) {
		client_arm(cl, EPOLLIN, true);
		r = client_pump(cl);
	} else {
		r = client_read(cl);
	}
	if (r < 0)
		client_free(cl);
	return 0;
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct client *cl = userdata;

	(void)source;
	(void)usec;
	/* One that does not take its reply is not going to take a reason either. */
	if (cl->out || client_refuse(cl, "no whole request for too long, closing") < 0)
		client_free(cl);
	return 0;
}

static int client_new(struct control *c, int fd)
{
	struct client *cl = calloc(1, sizeof(*cl));
	int r;

	if (!cl) {
		close(fd);
		return -ENOMEM;
	}
	cl->control = c;
	cl->fd = fd;
	cl->peer.may_change = control_peer_may_change(fd, c->admin_gid);
	cl->next = c->clients;
	c->clients = cl;
	c->n_clients++;
	r = sd_event_add_io(c->event, &cl->io, fd, EPOLLIN, on_client, cl);
	if (r >= 0)
		r = sd_event_add_time_relative(c->event, &cl->deadline, CLOCK_MONOTONIC,
					       c->idle_usec, 0, on_deadline, cl);
	if (r < 0) {
		client_free(cl);
		return r;
	}
	/* The collector's own events come first. */
	sd_event_source_set_priority(cl->io, SD_EVENT_PRIORITY_IDLE);
	return 0;
}

static void turn_away(int fd)
{
	struct json_object *error;
	char *text;
	size_t len;

	if (control_failed(CONTROL_INTERFACE ".Busy", "too many clients", &error) == 0) {
		if (control_format(error, &text, &len) == 0) {
			(void)!send(fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT);
			free(text);
		}
		json_object_put(error);
	}
	close(fd);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static int on_resume(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct control *c = userdata;

	(void)source;
	(void)usec;
	sd_event_source_set_enabled(c->listen, SD_EVENT_ON);
	return 0;
}

static int on_connect(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct control *c = userdata;
	unsigned int more;
	int client, r;

	(void)revents;
	client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (client < 0) {
		r = errno;
		if (r == EAGAIN || r == EINTR || r == ECONNABORTED)
			return 0;
		/* No descriptors or memory: the connection stays pending, and so would the event. */
		sd_event_source_set_enabled(source, SD_EVENT_OFF);
		sd_event_source_set_time_relative(c->resume, 1000 * 1000);
		sd_event_source_set_enabled(c->resume, SD_EVENT_ONESHOT);
		if (log_limit_pass(&c->limit, now_ns(), &more))
			log_warning("control socket: accept: %s; waiting a second", strerror(r));
		return 0;
	}
	if (c->n_clients >= CONTROL_MAX_CLIENTS) {
		turn_away(client);
		if (log_limit_pass(&c->limit, now_ns(), &more))
			log_warning("control socket: %d clients connected, turning others away",
				    CONTROL_MAX_CLIENTS);
		return 0;
	}
	r = client_new(c, client);
	if (r < 0 && log_limit_pass(&c->limit, now_ns(), &more))
		log_warning("control socket: client refused: %s", strerror(-r));
	return 0;
}

int control_open(const struct control_options *opts, struct control **ret, struct iot_error *err)
{
	struct control *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return iot_error_set(err, -ENOMEM, "out of memory");
	c->socket.fd = -EBADF;
	c->event = sd_event_ref(opts->event);
	c->ops = opts->ops;
	c->userdata = opts->userdata;
	c->idle_usec = opts->idle_usec ? opts->idle_usec : CONTROL_IDLE_USEC;
	c->next_token = 1;
	c->limit = (struct log_limit){.interval_ns = 60000000000ULL, .burst = 5};
	if (control_group_id(CONTROL_ADMIN_GROUP, &c->admin_gid) < 0)
		c->admin_gid = (gid_t)-1;

	r = control_socket_open(opts->path, opts->group, &c->socket, err);
	if (r < 0)
		goto fail;
	r = sd_event_add_io(c->event, &c->listen, c->socket.fd, EPOLLIN, on_connect, c);
	if (r >= 0)
		r = sd_event_add_time_relative(c->event, &c->resume, CLOCK_MONOTONIC, 0, 0,
					       on_resume, c);
	if (r < 0) {
		iot_error_set(err, r, "control socket: %s", strerror(-r));
		goto fail;
	}
	sd_event_source_set_enabled(c->resume, SD_EVENT_OFF);
	sd_event_source_set_priority(c->listen, SD_EVENT_PRIORITY_IDLE);
	*ret = c;
	return 0;
fail:
	control_close(c);
	return r;
}

void control_finish(struct control *c, uint64_t token, struct json_object *reply)
{
	for (struct client *cl = c->clients; cl; cl = cl->next) {
		int r;

		if (!cl->waiting || cl->token != token)
			continue;
		cl->waiting = false;
		if (cl->oneway) {
			json_object_put(reply);
			client_arm(cl, EPOLLIN, true);
			r = 0;
		} else {
			r = client_send(cl, reply);
		}
		if (r == 0)
			r = client_pump(cl);
		if (r < 0)
			client_free(cl);
		return;
	}
	json_object_put(reply);
}

unsigned int control_n_pending(const struct control *c)
{
	unsigned int n = 0;

	for (const struct client *cl = c->clients; cl; cl = cl->next)
		n += cl->waiting;
	return n;
}

struct control *control_close(struct control *c)
{
	if (!c)
		return NULL;
	while (c->clients)
		client_free(c->clients);
	sd_event_source_disable_unref(c->listen);
	sd_event_source_disable_unref(c->resume);
	control_socket_done(&c->socket);
	sd_event_unref(c->event);
	free(c);
	return NULL;
}
