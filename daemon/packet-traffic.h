/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * packet-traffic.h - a little network of our own, for as long as it takes to send a few hundred packets.
 *
 * A child process has two network namespaces, between them a veth pair (with receive offload, where the kernel has
 * that), and is both ends of: UDP, fragmented UDP, TCP (in bulk, request and response, merged on receipt), ICMP, over that pair
 * and over a loopback, beside a packet socket. No packet of it leaves the child's namespaces, which go
 * with the child; whatever happens, that is soon: it is killed with its parent and by an alarm.
 *
 * It needs the right to make network namespaces; a user namespace of its own gives it, where that is allowed.
 */
#pragma once

#include <sys/types.h>

#include "format/base.h"

struct packet_traffic {
	pid_t pid; /* 0: none */
	int fd;
	uint32_t netns[2];   /* inode numbers of its namespaces */
	unsigned int n_sent; /* datagrams and the like, each a packet at least; when it is done */
};

/* Returns when the namespaces are there and nothing has been sent in them. what: the step that failed. */
int packet_traffic_start(struct packet_traffic *t, char *what, size_t size) IOT_MUST_CHECK;
/* Waits so long for the end of all sending: 0 all that was sent has been received and the sockets are closed. */
#define PACKET_TRAFFIC_RUNS 1
int packet_traffic_wait(struct packet_traffic *t, int timeout_ms, char *what,
			size_t size) IOT_MUST_CHECK;
/* The child and its namespaces go, whatever it does. */
void packet_traffic_stop(struct packet_traffic *t);
