# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Where this host gets its Debian packages from, for tests that make machines of them.

# The archive's address as the host's own sources have it ($1: a pattern of release names). apt parses
# every style of source entry for us; entries which are known to be Debian's come first.
# shellcheck disable=SC2016 # the $(...) are apt's own
mirror() {
	apt-get indextargets 'Created-By: Packages' \
		--format '$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)' 2>/dev/null |
		awk -v want="$1" '
			$NF == "main" && $(NF - 1) ~ want {
				uri = $(NF - 2)
				if (NF == 4 && $1 == "Debian")
					known = known ? known : uri
				else
					other = other ? other : uri
			}
			END { print known ? known : other }'
}
