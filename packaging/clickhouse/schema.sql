-- SPDX-License-Identifier: BSD-2-Clause
--
-- Where a fleet's segments are analysed: ClickHouse, from 18.16 (Debian's) on. One table of requests, one of segments, which
-- says what the record proves; packaging/clickhouse/load.sh fills both from an archive.
--
-- The columns of requests are those of `iotracectl export --format=clickhouse` (RowBinary), in that order. What is not
-- known is NULL, never 0; iotracectl(1) says what each field means. Several servers: distributed.sql.

CREATE DATABASE IF NOT EXISTS iotraced;

CREATE TABLE IF NOT EXISTS iotraced.requests_local (
	host String,
	capture String,
	seq UInt64,
	time DateTime,
	realtime_ns Nullable(UInt64),
	id Nullable(UInt64),
	dev String,
	disk Nullable(String),
	part Nullable(String),
	op String,
	flags Array(String),
	sector Nullable(UInt64),
	bytes UInt32,
	bytes_done UInt32,
	error Nullable(Int32),
	status UInt32,
	swap Nullable(String),
	unswapped_bytes UInt32,
	start_ns Nullable(UInt64),
	insert_ns Nullable(UInt64),
	issue_ns Nullable(UInt64),
	issue_last_ns Nullable(UInt64),
	complete_ns Nullable(UInt64),
	queue_latency_ns Nullable(UInt64),
	device_latency_ns Nullable(UInt64),
	pid Nullable(UInt32),
	tgid Nullable(UInt32),
	comm Nullable(String),
	cgroup Nullable(UInt64),
	cgroup_by Nullable(String),
	ino Nullable(UInt64),
	fsdev Nullable(String),
	file_by Nullable(String),
	origin Nullable(String),
	reclaim Nullable(String),
	issue_cpu Nullable(UInt32),
	cpu Nullable(UInt32),
	hwq Nullable(UInt16),
	requeues UInt16,
	merges UInt16,
	segments UInt16
) ENGINE = MergeTree
PARTITION BY toYYYYMMDD(time)
ORDER BY (host, capture, seq, time);

-- As `iotracectl --json segments` says it. A segment has its row here when all of its requests are in the other table: a sum
-- over requests is as complete as the verdicts of their segments. A segment whose row is missing was being loaded.
CREATE TABLE IF NOT EXISTS iotraced.segments_local (
	host String,
	capture String,
	seq UInt64,
	stream String,
	name String,
	reason String,
	first_ns UInt64,
	last_ns UInt64,
	records UInt64,
	in_flight UInt64,
	ledger_entries UInt64,
	verdict String,
	reasons Array(String)
) ENGINE = MergeTree
PARTITION BY tuple()
ORDER BY (host, capture, seq);

-- One server is a cluster of its own.
CREATE VIEW IF NOT EXISTS iotraced.requests AS SELECT * FROM iotraced.requests_local;
CREATE VIEW IF NOT EXISTS iotraced.segments AS SELECT * FROM iotraced.segments_local;
