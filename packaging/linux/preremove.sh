#!/bin/sh
# Stops and disables the service when the package is removed, but not for an upgrade:
# dpkg calls this with "upgrade" then, and rpm with 1.
set -e
case "${1:-}" in
upgrade | failed-upgrade | 1) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
	systemctl disable --now mcpd.service
fi
