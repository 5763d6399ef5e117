#!/bin/sh
# Puts SwiftShader, a second software Vulkan driver beside Mesa's, into target/swiftshader, and prints the file that
# VK_DRIVER_FILES must name to use it:
#
#   VK_DRIVER_FILES=$(sh scripts/swiftshader.sh) SKINBIND_REQUIRE_GPU=1 cargo test --test gpu_crawl
#
# It is a part of Debian's package chromium-common, which is unpacked here and not installed.
set -eu
cd "$(dirname "$0")/.."

folder=$PWD/target/swiftshader
library=/usr/lib/chromium/libvk_swiftshader.so
[ -e "$library" ] || library=$folder/usr/lib/chromium/libvk_swiftshader.so
mkdir -p "$folder"
if [ ! -e "$library" ]; then
    if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
        echo "SwiftShader is taken from a Debian package: apt-get and dpkg-deb are needed." >&2
        exit 1
    fi
    # Package lists may be missing or too old.
    (cd "$folder" && { apt-get download chromium-common || { apt-get update && apt-get download chromium-common; }; }) >&2
    for package in "$folder"/chromium-common_*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar -x -C "$folder" ./usr/lib/chromium/libvk_swiftshader.so
        rm "$package"
    done
fi
printf '{"file_format_version": "1.0.0", "ICD": {"library_path": "%s", "api_version": "1.0.5"}}\n' "$library" >"$folder/icd.json"
echo "$folder/icd.json"
