-- SPDX-License-Identifier: BSD-2-Clause
--
-- For several servers, on each of them after schema.sql: tables over the cluster `iotraced` (<remote_servers> in the servers'
-- configuration) in place of the views. Rows are placed by host, so that what belongs together is on one server.

DROP TABLE IF EXISTS iotraced.requests;
DROP TABLE IF EXISTS iotraced.segments;

CREATE TABLE IF NOT EXISTS iotraced.requests AS iotraced.requests_local
ENGINE = Distributed(iotraced, iotraced, requests_local, cityHash64(host));

CREATE TABLE IF NOT EXISTS iotraced.segments AS iotraced.segments_local
ENGINE = Distributed(iotraced, iotraced, segments_local, cityHash64(host));
