#!/bin/sh
# Installs, on Debian and its kin, the programs that some tests talk to: a PostgreSQL server, a browser, a load generator.
set -eu
missing=""
command -v chromium >/dev/null || missing="$missing chromium"
command -v wrk >/dev/null || missing="$missing wrk"
command -v postgres >/dev/null || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || missing="$missing postgresql"
[ -z "$missing" ] && exit 0
if ! command -v apt-get >/dev/null; then
    echo "These programs are missing, and there is no apt-get to install them with:$missing" >&2
    exit 1
fi
[ "$(id -u)" = 0 ] && as_root="" || as_root="sudo"
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -qq
# shellcheck disable=SC2086
$as_root apt-get install -y -qq --no-install-recommends $missing
