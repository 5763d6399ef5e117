#!/bin/sh
# Builds the program and measures it on this machine's GPU: whole binds at 128, 256, 512 and 1024, each stage by the device's
# own clock, and bandwidth against a plain copy.
#
#   sh scripts/gpu_bench.sh [mesh skeleton]            on a mesh of your own: .glb, .gltf or .obj, and .json
#   METHOD=voxel-heat RESOLUTIONS=64,128 RUNS=3 DEVICE=name sh scripts/gpu_bench.sh
#
# The method is geodesic where none is named: all of its stages are timed alone.
#
# The program is one file that needs nothing beside it but the system's C library and a Vulkan driver (Metal or DirectX on
# other systems), which it loads when it runs: copy it to another machine and run the command that is printed.
set -eu
here=$PWD
cd "$(dirname "$0")/.."

cargo build --release --bin skinbind
program=${CARGO_TARGET_DIR:-$PWD/target}/release/skinbind
cd "$here"

case $# in
    0)
        echo "no mesh was given: this is the built-in body, with 38 bones" >&2
        set --
        ;;
    2) set -- "$1" -s "$2" ;;
    *)
        echo "usage: sh scripts/gpu_bench.sh [mesh skeleton]" >&2
        exit 2
        ;;
esac
set -- "$program" bench "$@" --method "${METHOD:-geodesic}" --resolution "${RESOLUTIONS:-128,256,512,1024}" --runs "${RUNS:-5}" --device "${DEVICE:-gpu}"
echo "program: $program" >&2
echo "command: $*" >&2
"$program" devices
echo
exec "$@"
