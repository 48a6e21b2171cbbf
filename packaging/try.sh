#!/usr/bin/env bash
# Installs packages for this machine without a compiler, and asks each for an answer: try.sh DIRECTORY VERSION
set -euo pipefail

out=$1 version=$2
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
mkdir "$room/home"

answers() {
    local what=$1
    shift
    local began=$SECONDS
    if ! env -i HOME="$room/home" PATH="$PATH" "$@" run -m demo "look around" 2>/dev/null | grep -q "scripted demo"; then
        echo "$what: no answer" >&2
        exit 1
    fi
    echo "$what: an answer after $((SECONDS - began)) s"
}

mkdir "$room/deb" "$room/tar" "$room/oci"
tar -xzf "$out/agent-$version-x86_64-unknown-linux-musl.tar.gz" -C "$room/tar"
answers "the archive" "$room/tar/agent"
dpkg-deb --info "$out/agent_${version}_amd64.deb" >/dev/null
dpkg-deb -x "$out/agent_${version}_amd64.deb" "$room/deb"
answers "the .deb" "$room/deb/usr/bin/agent"
man -l "$room/deb/usr/share/man/man1/agent.1.gz" >/dev/null 2>&1 || gzip -t "$room/deb/usr/share/man/man1/agent.1.gz"
if command -v npm >/dev/null; then
    (cd "$room" && npm install --offline --no-audit --no-fund --ignore-scripts --silent \
        "$out/agent-cli-linux-x64-$version.tgz" "$out/agent-cli-$version.tgz")
    answers "the npm packages" "$room/node_modules/.bin/agent"
else
    echo "SKIPPED: npm is not here, so its packages were not installed."
fi
tar -xf "$out/agent-$version-amd64.oci.tar" -C "$room/oci"
layer=$(python3 - "$room/oci" <<'END'
import json, sys
root = sys.argv[1]
def blob(about): return f"{root}/blobs/{about['digest'].replace(':', '/')}"
manifest = json.load(open(blob(json.load(open(f"{root}/index.json"))["manifests"][0])))
print(blob(manifest["layers"][0]))
END
)
mkdir "$room/image"
tar -xzf "$layer" -C "$room/image"
if [ "$(id -u)" = 0 ] && command -v chroot >/dev/null; then
    chroot "$room/image" /usr/bin/agent --version
    # With /proc and /dev, as containers have them. There is no program in it that a command could run: the answer says so.
    mkdir "$room/image/proc" "$room/image/dev"
    said=$(unshare -m sh -c 'mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && exec env -i HOME=/home PATH="$PATH" chroot "$1" \
        /usr/bin/agent -C /work run -m demo "look around"' - "$room/image" 2>/dev/null || true)
    grep -q "scripted demo" <<<"$said"
    echo "the image: an answer, with nothing in it but the program and certificates"
else
    echo "SKIPPED: the image is tried by root alone."
fi
