#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# An S3-compatible server on the loopback interface: OpenStack Swift with its s3api, one process per service, one device
# without replicas, everything in one directory. What serves the API is started again when it has ended: the test cuts
# the connection by killing it.
#
# usage: swift.sh DIRECTORY PORT	serves on PORT (and three above it) until it is ended; DIRECTORY/proxy.pid
# Access key test:tester, secret testing.

set -u
dir=$1 port=$2
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; wait' EXIT
trap 'exit 0' TERM INT
mkdir -p "$dir/srv/d1" "$dir/etc"
user=$(id -un)
n=0
for service in account container object; do
	n=$((n + 1))
	(cd "$dir/etc" && swift-ring-builder $service.builder create 2 1 0 &&
		swift-ring-builder $service.builder add "r1z1-127.0.0.1:$((port + n))/d1" 1 &&
		swift-ring-builder $service.builder rebalance) >"$dir/rings.log" 2>&1
	[ -e "$dir/etc/$service.ring.gz" ] || { cat "$dir/rings.log" >&2; exit 1; }
	cat >"$dir/etc/$service.conf" <<-END
		[DEFAULT]
		bind_ip = 127.0.0.1
		bind_port = $((port + n))
		workers = 0
		user = $user
		swift_dir = $dir/etc
		devices = $dir/srv
		mount_check = false
		fallocate_reserve = 0
		[pipeline:main]
		pipeline = $service-server
		[app:$service-server]
		use = egg:swift#$service
	END
done
cat >"$dir/etc/proxy.conf" <<-END
	[DEFAULT]
	bind_ip = 127.0.0.1
	bind_port = $port
	workers = 0
	user = $user
	swift_dir = $dir/etc
	[pipeline:main]
	pipeline = catch_errors cache s3api tempauth proxy-server
	[app:proxy-server]
	use = egg:swift#proxy
	account_autocreate = true
	[filter:catch_errors]
	use = egg:swift#catch_errors
	# tempauth answers 500 without a cache, though what it knows of S3's keys is in this file. Nobody is at that port,
	# which costs look-ups.
	[filter:cache]
	use = egg:swift#memcache
	memcache_servers = 127.0.0.1:9
	[filter:s3api]
	use = egg:swift#s3api
	location = us-east-1
	[filter:tempauth]
	use = egg:swift#tempauth
	user_test_tester = testing .admin
END
for service in account container object; do
	"swift-$service-server" "$dir/etc/$service.conf" >>"$dir/$service.log" 2>&1 &
	pids+=($!)
done
while :; do
	swift-proxy-server "$dir/etc/proxy.conf" >>"$dir/proxy.log" 2>&1 &
	pids[3]=$!
	echo "${pids[3]}" >"$dir/proxy.pid"
	wait "${pids[3]}"
done
