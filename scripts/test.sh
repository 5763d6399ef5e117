#!/bin/sh
# Runs all tests. The GPU tests need a Vulkan driver (a software one will do); without one they show as ignored.
#
#   sh scripts/test.sh [--install] [arguments for cargo test]
#
# Where no driver is found, the command that installs a software one is printed, and run with --install or CI=true.
set -eu
cd "$(dirname "$0")/.."

install=${CI:-false}
if [ "${1:-}" = "--install" ]; then
    install=true
    shift
fi

have_vulkan() {
    case "$(uname -s)" in
        Linux) ;;
        *) return 0 ;; # Metal and DirectX come with the system
    esac
    [ -n "${VK_DRIVER_FILES:-}${VK_ICD_FILENAMES:-}" ] && return 0
    for icd in /usr/share/vulkan/icd.d/*.json /etc/vulkan/icd.d/*.json /usr/local/share/vulkan/icd.d/*.json; do
        [ -e "$icd" ] && return 0
    done
    return 1
}

install_command() {
    as_root=""
    [ "$(id -u)" = 0 ] || as_root="sudo "
    if command -v apt-get >/dev/null; then
        echo "${as_root}apt-get update && ${as_root}apt-get install -y --no-install-recommends mesa-vulkan-drivers libvulkan1"
    elif command -v dnf >/dev/null; then
        echo "${as_root}dnf install -y mesa-vulkan-drivers vulkan-loader"
    elif command -v pacman >/dev/null; then
        echo "${as_root}pacman -S --noconfirm vulkan-swrast vulkan-icd-loader"
    elif command -v apk >/dev/null; then
        echo "${as_root}apk add mesa-vulkan-swrast vulkan-loader"
    fi
}

if ! have_vulkan; then
    command=$(install_command)
    echo "No Vulkan driver was found: the GPU tests will show as ignored." >&2
    if [ -z "$command" ]; then
        echo "Install your system's software Vulkan driver (Mesa's lavapipe) to run them." >&2
    elif [ "$install" = true ]; then
        echo "Installing a software one: $command" >&2
        sh -c "$command" >&2
    else
        echo "This installs a software one (or run: sh scripts/test.sh --install):" >&2
        echo "    $command" >&2
    fi
fi

exec cargo test "$@"
