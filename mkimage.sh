#!/bin/sh
# Makes everything a machine starts from, in dist/. `./mkimage.sh --help` lists the files and the flags.
set -eu
start=$PWD
cd "$(dirname "$0")"
bun=node_modules/.bin/bun
if [ ! -x "$bun" ]; then
	if command -v bun >/dev/null; then
		bun=bun
	elif command -v npm >/dev/null; then
		npm install --no-save --no-audit --no-fund "bun@$(sed -n 's/.*"bun": "\([0-9.]*\)".*/\1/p' package.json)" >&2
	else
		echo 'error: neither bun nor npm is here: install Bun (https://bun.sh) or Node.js' >&2
		exit 1
	fi
	"$bun" install --frozen-lockfile >&2
	bun=node_modules/.bin/bun
fi
bun=$(command -v "$bun" || echo "$bun")
case $bun in /*) ;; *) bun=$PWD/$bun ;; esac
root=$PWD
cd "$start"
exec "$bun" "$root/rootfs/image.ts" "$@"
