#!/bin/sh
# Creates the system user, and lets systemd use the new unit and program.
set -e
if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers mcpd.conf
elif ! id mcpd >/dev/null 2>&1; then
	if command -v useradd >/dev/null; then
		useradd --system --user-group --no-create-home --home-dir /var/lib/mcpd --shell /usr/sbin/nologin mcpd
	else # BusyBox
		addgroup -S mcpd
		adduser -S -D -H -h /var/lib/mcpd -s /sbin/nologin -G mcpd mcpd
	fi
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart mcpd.service
fi
