#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The core of the tests on another machine: elsewhere.sh arm64|s390x|i386|armhf|riscv64|windows [pytest's arguments]
# A cross compiler builds the C++ tests and the module. A Debian of that machine runs them in a chroot, below an emulator
# where the processor needs one. For Windows, all but the module is compiled and linked, and nothing runs.
# Needs the apt of Debian or Ubuntu, the right to make a user namespace, and Linux 6.7, which registers emulators for one
# namespace alone. Root installs the programs that are missing. What is unpacked and built stays in build/elsewhere.
set -euo pipefail
cd "$(dirname "$0")/.."

machine=${1-}
emulator=
case $machine in
  arm64) target=aarch64-linux-gnu processor=aarch64 emulator=qemu-aarch64 ;;
  s390x) target=s390x-linux-gnu processor=s390x emulator=qemu-s390x ;;
  i386) target=i686-linux-gnu processor=i686 ;;
  armhf) target=arm-linux-gnueabihf processor=arm emulator=qemu-arm ;;
  riscv64) target=riscv64-linux-gnu processor=riscv64 emulator=qemu-riscv64 ;;
  windows) target=x86_64-w64-mingw32 processor=AMD64 ;;
  *) echo "elsewhere.sh: '$machine' is no machine, expected arm64, s390x, i386, armhf, riscv64 or windows" >&2; exit 2 ;;
esac
shift

if [ "$machine" = windows ]; then
  compiler=$target-g++-posix
  programs=("$compiler")
  packages=(g++-mingw-w64-x86-64-posix)
else
  compiler=$target-g++
  programs=("$compiler" mmdebstrap ${emulator:+"$emulator-static"})
  packages=("g++-$target" mmdebstrap debian-archive-keyring ${emulator:+qemu-user-static})
fi
if [ "$(type -P "${programs[@]}" | wc -l)" -lt ${#programs[@]} ]; then
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
fi

directory=$PWD/build/elsewhere/$machine
mkdir -p "$directory/include"
[ -d build/elsewhere/environment ] || python3 -m venv build/elsewhere/environment
. build/elsewhere/environment/bin/activate
pip install --quiet cmake ninja pybind11

options=(-DCMAKE_SYSTEM_PROCESSOR="$processor" -DCMAKE_CXX_COMPILER="$compiler" -DFASTPE_TESTS=ON -DFASTPE_WERROR=ON)
if [ "$machine" = windows ]; then
  options+=(-DCMAKE_SYSTEM_NAME=Windows -DFASTPE_PYTHON=OFF)
else
  root=$directory/root
  if [ ! -e "$directory/unpacked" ]; then
    # Nothing is installed: no package's script runs below the emulator. A mirror may be out of date.
    mmdebstrap --quiet --variant=extract --architectures="$machine" --aptopt='Acquire::Check-Valid-Until "false"' \
      --setup-hook='mkdir "$1/usr" "$1/usr/bin" "$1/usr/lib" "$1/proc"; ln -s usr/bin usr/lib "$1"; ln -s dash "$1/bin/sh"' \
      --include=coreutils,dash,util-linux,libgomp1,libpython3-dev,python3-numpy,python3-ml-dtypes,python3-mpmath \
      --include=libatomic1,python3-pytest,python3-pytest-xdist,python3-hypothesis \
      "${ELSEWHERE_RELEASE:-forky}" "$root" http://deb.debian.org/debian
    touch "$directory/unpacked"
  fi
  python=$(basename "$(readlink -f "$root/bin/python3")")
  libraries=$(basename "$(dirname "$root"/usr/include/*/"$python")")  # of Debian: i386-linux-gnu, for example
  # Python's headers for this machine, without the C library's beside them.
  ln -sfn "$root/usr/include/$libraries" "$directory/include/$libraries"
  runner=${emulator:+"$emulator-static;-L;$root"}
  runner=${runner:-"$root/lib/ld-linux.so.2;--library-path;$root/lib/$libraries"}
  options+=(-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_CROSSCOMPILING_EMULATOR="$runner"
    -DCMAKE_CXX_FLAGS="-I$directory/include" -DPYBIND11_USE_CROSSCOMPILING=ON -DSKBUILD_PROJECT_VERSION=0
    -Dpybind11_DIR="$(python -m pybind11 --cmakedir)"
    -DPython_ROOT_DIR="$root/usr" -DPython_INCLUDE_DIR="$root/usr/include/$python")
fi
cmake --fresh -G Ninja -S . -B "$directory/core" "${options[@]}" >"$directory/said" || { cat "$directory/said"; exit 1; }
cmake --build "$directory/core" >"$directory/said" || { cat "$directory/said"; exit 1; }
[ "$machine" != windows ] || { echo "compiled and linked: $(cd "$directory/core/tests/cpp" && echo *.exe)"; exit; }

rm -rf "$directory/site"
cp -r python "$directory/site"
cmake --install "$directory/core" --prefix "$directory/site" >/dev/null

# In the namespaces: the emulator is registered, and the checkout is seen at its own path.
cat >"$directory/inside" <<'INSIDE'
set -eu
root=$1 emulator=$2
shift 2
if [ -n "$emulator" ]; then
  mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
  cat "/usr/lib/binfmt.d/$emulator.conf" >/proc/sys/fs/binfmt_misc/register
fi
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/tmp"
mkdir -p "$root$PWD"
mount --rbind "$PWD" "$root$PWD"
exec chroot "$root" env --ignore-environment --chdir="$PWD" PATH=/bin HOME=/tmp LANG=C.UTF-8 "$@"
INSIDE
inside() { unshare --map-root-user --mount --pid --fork --kill-child sh "$directory/inside" "$root" "$emulator" "$@"; }
ctest --test-dir "$directory/core" --output-on-failure
[ $# -gt 0 ] || set -- tests/values tests/arrays tests/conventions tests/rotary \
  tests/reliability/test_bad_input.py tests/reliability/test_callbacks.py
inside LD_LIBRARY_PATH="/usr/lib/$libraries/blas:/usr/lib/$libraries/lapack" PYTHONPATH="$directory/site" \
  PYTHONPYCACHEPREFIX="$directory/bytecode" sh -euc '
    python3 tools/check_package.py
    exec python3 -m pytest -q -p no:cacheprovider -n auto "$@"' sh "$@"
