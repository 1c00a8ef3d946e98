#!/bin/sh
# Lets systemd forget the unit. The user, /etc/mcpd and /var/lib/mcpd stay.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
