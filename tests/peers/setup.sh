#!/bin/sh
# Installs the peers: ripgrep and fd, pytest, a browser, node_modules here (the conformance suite, clients, servers) and a Python virtual environment in
# <repository>/target/peers/venv. Does nothing where the manifests have not changed since the last success, so it can run every time.
# Says what is missing and exits non-zero where it cannot.
set -eu
cd "$(dirname "$0")"
target=$(cd ../.. && pwd)/target/peers
venv=$target/venv
stamp=$target/installed

missing() {
  echo "setup.sh: $1" >&2
  exit 1
}

# What `grep` and `glob` are compared with.
if ! command -v rg >/dev/null || ! command -v fdfind >/dev/null; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo 'setup.sh: ripgrep or fd is missing, installing them' >&2
    apt-get update -qq || echo 'setup.sh: apt-get update failed, using the existing package lists' >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq ripgrep fd-find >&2 || missing "apt-get could not install ripgrep and fd-find"
  fi
  command -v rg >/dev/null || missing "ripgrep is missing: on Debian: apt-get install ripgrep"
  command -v fdfind >/dev/null || missing "fd is missing under its Debian name fdfind: on Debian: apt-get install fd-find"
fi

# What ordinary work in the sandbox is tried with.
if ! /usr/bin/python3 -m pytest --version >/dev/null 2>&1; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo 'setup.sh: pytest is missing, installing it' >&2
    apt-get update -qq || echo 'setup.sh: apt-get update failed, using the existing package lists' >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-pytest >&2 || missing "apt-get could not install python3-pytest"
  fi
  /usr/bin/python3 -m pytest --version >/dev/null 2>&1 || missing "pytest is missing for /usr/bin/python3: on Debian: apt-get install python3-pytest"
fi

# The browser: either of Debian's two packages, or all packages that TEST_BROWSERS lists.
wanted=
for browser in ${TEST_BROWSERS:-}; do
  command -v "$browser" >/dev/null || wanted="${wanted:+$wanted }$browser"
done
if [ -z "$wanted" ] && ! command -v chromium-headless-shell >/dev/null && ! command -v chromium >/dev/null; then
  wanted=chromium-headless-shell
fi
if [ -n "$wanted" ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "setup.sh: a browser is missing, installing $wanted" >&2
    apt-get update -qq || echo 'setup.sh: apt-get update failed, using the existing package lists' >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $wanted >&2 || missing "apt-get could not install $wanted"
  fi
  for browser in $wanted; do
    command -v "$browser" >/dev/null || missing "a browser is missing: on Debian: apt-get install $browser"
  done
fi

hash=$(cat package.json package-lock.json .npmrc requirements.txt | sha256sum | cut -d ' ' -f 1)
# The folders are asked for too: either may have been cleaned without the other.
if [ "$(cat "$stamp" 2>/dev/null)" = "$hash" ] && [ -x node_modules/.bin/conformance ] && [ -x "$venv/bin/python" ]; then
  exit 0
fi
mkdir -p "$target"
rm -f "$stamp"

command -v node >/dev/null || missing "node is missing: install Node 20 or newer (Node 22 itself comes as a package), on Debian: apt-get install nodejs npm"
command -v npm >/dev/null || missing "npm is missing: on Debian: apt-get install npm"
command -v python3 >/dev/null || missing "python3 is missing: install Python 3.10 or newer, on Debian: apt-get install python3 python3-venv"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || missing "$(python3 --version) is too old: Python 3.10 or newer is needed"

# Debian ships `venv` without the pip that it puts into the environment, in a package of its own.
if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo 'setup.sh: python3-venv is missing, installing it' >&2
    apt-get update -qq || echo 'setup.sh: apt-get update failed, using the existing package lists' >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >&2 || missing "apt-get could not install python3-venv"
  fi
  python3 -c 'import venv, ensurepip' 2>/dev/null || missing "Python's venv is missing: as root: apt-get install python3-venv"
fi

# Under a Node older than 22 npm warns about engines; the scripts run under the Node that it installs.
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error || missing "npm ci failed"
PATH=$PWD/node_modules/.bin:$PATH
node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 22 ? 0 : 1)' ||
  missing "the conformance suite needs Node 22 or newer; this platform has no package for it and its own is $(node --version)"
node_modules/.bin/conformance --version >/dev/null || missing "the conformance suite does not start"

rm -rf "$venv"
python3 -m venv "$venv" || missing "python3 -m venv failed"
"$venv/bin/pip" install --quiet --disable-pip-version-check -r requirements.txt || missing "pip install failed"
"$venv/bin/python" -c 'import mcp' || missing "the Python SDK does not load"

echo "$hash" >"$stamp"
echo "setup.sh: peers are installed"
