-- SPDX-License-Identifier: BSD-2-Clause
--
-- A fleet's archive in DuckDB: views over the files that packaging/duckdb/load.sh made, to be read in their directory. What is
-- not known is NULL, never 0; iotracectl(1) says what each field means. A sum over requests is as complete as the
-- verdicts of their segments:
--
--   SELECT verdict, count(*), sum(records) FROM segments GROUP BY verdict;
--   SELECT host, disk, op, count(*), sum(bytes_done), quantile_cont(device_latency_ns, 0.99) FROM requests GROUP BY ALL;
--
-- For a large archive, once, in columns: COPY (SELECT * FROM requests) TO 'parquet' (FORMAT parquet, PARTITION_BY (host, day));

CREATE VIEW segments AS
SELECT * FROM read_json('segments.json', format = 'newline_delimited', columns = {
	host: 'VARCHAR', capture: 'VARCHAR', seq: 'UBIGINT', name: 'VARCHAR', reason: 'VARCHAR', first_ns: 'UBIGINT',
	last_ns: 'UBIGINT', records: 'UBIGINT', in_flight: 'UBIGINT', ledger_entries: 'UBIGINT', verdict: 'VARCHAR',
	reasons: 'VARCHAR[]'
});

CREATE VIEW requests AS
SELECT s.host, s.seq, s.verdict, make_timestamp_ns(r.realtime_ns::BIGINT) AS time, make_timestamp_ns(r.realtime_ns::BIGINT)::DATE AS day,
	r.* EXCLUDE (filename),
	CASE WHEN coalesce(start_ns, insert_ns) <= coalesce(issue_last_ns, issue_ns)
		THEN coalesce(issue_last_ns, issue_ns) - coalesce(start_ns, insert_ns) END AS queue_latency_ns,
	CASE WHEN coalesce(issue_last_ns, issue_ns) <= complete_ns
		THEN complete_ns - coalesce(issue_last_ns, issue_ns) END AS device_latency_ns
FROM read_json('**/*.jsonl', format = 'newline_delimited', filename = true, hive_partitioning = false, columns = {
	id: 'UBIGINT', dev: 'VARCHAR', disk: 'VARCHAR', part: 'VARCHAR', op: 'VARCHAR', flags: 'VARCHAR[]', sector: 'UBIGINT',
	bytes: 'UBIGINT', bytes_done: 'UBIGINT', error: 'INTEGER', swap: 'VARCHAR', start_ns: 'UBIGINT', insert_ns: 'UBIGINT',
	issue_ns: 'UBIGINT', complete_ns: 'UBIGINT', pid: 'UBIGINT', tgid: 'UBIGINT', comm: 'VARCHAR', cgroup: 'UBIGINT',
	ino: 'UBIGINT', fsdev: 'VARCHAR', origin: 'VARCHAR', cpu: 'UBIGINT', requeues: 'UBIGINT', merges: 'UBIGINT',
	segments: 'UBIGINT', issue_last_ns: 'UBIGINT', issue_cpu: 'UBIGINT', hwq: 'UBIGINT', status: 'UBIGINT',
	submitter: 'VARCHAR', swap_rule: 'VARCHAR', realtime_ns: 'UBIGINT', capture: 'VARCHAR', file_by: 'VARCHAR',
	cgroup_by: 'VARCHAR', reclaim: 'VARCHAR', unswapped_bytes: 'UBIGINT'
}) r
JOIN segments s ON r.capture = s.capture AND parse_filename(r.filename, true) = regexp_replace(s.name, '\.iot$', '');
