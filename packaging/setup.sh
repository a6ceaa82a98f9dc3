# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
#
# What ./quickstart and ./check share: packages, configure, build, install into dist/. Sourced by them from the top of
# the tree, with set -euo pipefail.

PACKAGES=(g++ cmake ninja-build python3 pkg-config libhwy-dev libfmt-dev nlohmann-json3-dev libcli11-dev libgtest-dev
          liblapack-dev libblas-dev)
ARM64_PACKAGES=(g++-aarch64-linux-gnu qemu-user libhwy-dev:arm64 libfmt-dev:arm64 libgtest-dev:arm64
                liblapack-dev:arm64 libblas-dev:arm64)
FUZZ_PACKAGES=(clang-14 libclang-rt-14-dev)

if [[ -t 1 ]]; then BOLD=$'\e[1m' PLAIN=$'\e[0m'; else BOLD= PLAIN=; fi
step() { printf '%s==> %s%s  (%d s)\n' "$BOLD" "$*" "$PLAIN" "$SECONDS"; }
stop() { printf '\n%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

# Cores this process may use: affinity (nproc) and the container's quota.
cores() {
  local cores quota period
  cores=$(nproc)
  if read -r quota period 2>/dev/null </sys/fs/cgroup/cpu.max && [[ $quota != max ]]; then
    local allowed=$(((quota + period - 1) / period))
    ((allowed < cores)) && cores=$allowed
  fi
  echo "$cores"
}
JOBS=$(cores)

missing_packages() {
  local name
  for name in "${PACKAGES[@]}"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}\n' "$name" 2>/dev/null | head -n 1) == installed ]] || echo "$name"
  done
}

install_packages() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    step "Packages: no apt here; looking for what is needed while configuring"
    return
  fi
  local missing as_root=""
  mapfile -t missing < <(missing_packages)
  if ((${#missing[@]} == 0)); then
    step "Packages: all ${#PACKAGES[@]} present"
    return
  fi
  local foreign=""
  [[ " ${missing[*]}" != *:arm64* ]] || foreign="dpkg --add-architecture arm64"
  local line="${foreign:+$foreign && }apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
  if ((EUID != 0)); then
    # With a terminal sudo may ask for the password, without one it must not need it.
    if command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
      as_root=sudo
    else
      stop "some packages are missing and there is no right to install them. As root, run
    $line
and then this command again."
    fi
  fi
  step "Packages: installing ${missing[*]}"
  [[ -z $foreign ]] || $as_root $foreign
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q </dev/null >/dev/null ||
    stop "apt-get update failed (see above). The packages needed: ${missing[*]}"
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" </dev/null ||
    stop "apt-get could not install the packages (see above). The line was
    $line"
}

# configure FOLDER OPTIONS...: quiet unless it fails.
configure() {
  local folder=$1 log
  shift
  step "Configuring $folder"
  mkdir -p "$folder"
  log="$folder/configure.log"
  if [[ -z ${CMAKE_CXX_COMPILER_LAUNCHER-} ]] && command -v ccache >/dev/null; then
    set -- "$@" -DCMAKE_CXX_COMPILER_LAUNCHER=ccache
  fi
  # Warnings are errors with the compiler we test with; other versions warn about other things.
  local werror=OFF
  [[ $("${CXX:-c++}" -dumpversion 2>/dev/null) == 12* ]] && werror=ON
  if ! cmake -S . -B "$folder" -G Ninja -DANYACL_WERROR=$werror "$@" >"$log" 2>&1; then
    cat "$log" >&2
    stop "configuring failed (see above; also in $log). A folder left by another compiler or place? rm -rf $folder"
  fi
  sed -n 's/^-- \(CUDA plug-in: .*\)/    \1/p' "$log"
}

# build FOLDER [TARGETS...]
build() {
  local folder=$1
  shift
  step "Building $folder with $JOBS jobs"
  NINJA_STATUS='[%f/%t] ' cmake --build "$folder" -j "$JOBS" ${1:+--target "$@"} ||
    stop "building failed (see above). To try again: cmake --build $folder"
}

# install_dist FOLDER: dist/ always is exactly what this build installs.
install_dist() {
  step "Installing into dist/"
  rm -rf dist.new
  cmake --install "$1" --prefix "$PWD/dist.new" >"$1/install.log" || stop "installing failed, see $1/install.log"
  python3 packaging/wheel.py dist.new dist.new/python "$(dist.new/bin/anyacl-config --version)" >>"$1/install.log" ||
    stop "the Python wheel could not be made (see above)"
  rm -rf dist
  mv dist.new dist
}
