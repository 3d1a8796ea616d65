#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# A ClickHouse server of Debian's on the loopback interface, everything of it in one directory, one of the two of a
# cluster `iotraced`.
#
# usage: clickhouse.sh DIRECTORY PORT OTHER-PORT	serves on PORT until it is ended

set -eu
dir=$1 port=$2 other=$3
mkdir -p "$dir"
cat >"$dir/users.xml" <<-END
	<yandex>
		<profiles><default/></profiles>
		<quotas><default/></quotas>
		<users><default>
			<password></password>
			<networks><ip>127.0.0.1</ip></networks>
			<profile>default</profile>
			<quota>default</quota>
		</default></users>
	</yandex>
END
shard() { echo "<shard><replica><host>127.0.0.1</host><port>$1</port></replica></shard>"; }
cat >"$dir/config.xml" <<-END
	<yandex>
		<logger><level>warning</level><log>$dir/log</log><errorlog>$dir/errors</errorlog></logger>
		<listen_host>127.0.0.1</listen_host>
		<tcp_port>$port</tcp_port>
		<path>$dir/data/</path>
		<tmp_path>$dir/tmp/</tmp_path>
		<users_config>$dir/users.xml</users_config>
		<default_profile>default</default_profile>
		<default_database>default</default_database>
		<mark_cache_size>67108864</mark_cache_size>
		<timezone>UTC</timezone>
		<remote_servers><iotraced>$(shard "$port")$(shard "$other")</iotraced></remote_servers>
	</yandex>
END
exec clickhouse-server --config-file="$dir/config.xml"
