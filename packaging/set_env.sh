# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
#
# Prepares a shell for programs that use this installation:  source <prefix>/set_env.sh   (bash, zsh; sh from inside
# the prefix). Sourcing it twice changes nothing; shell options stay as they are.

# _anyacl_prepend NAME FOLDER: puts FOLDER first in the colon list NAME, once.
_anyacl_prepend() {
  eval "_anyacl_rest=\":\${$1-}:\""
  while :; do
    case "$_anyacl_rest" in
      *":$2:"*) _anyacl_rest="${_anyacl_rest%%":$2:"*}:${_anyacl_rest#*":$2:"}" ;;
      *) break ;;
    esac
  done
  _anyacl_rest="${_anyacl_rest#:}"
  _anyacl_rest="${_anyacl_rest%:}"
  eval "export $1=\"\$2\${_anyacl_rest:+:\$_anyacl_rest}\""
}

if [ -n "${BASH_SOURCE:-}" ]; then
  _anyacl_root="$BASH_SOURCE"
elif [ -n "${ZSH_VERSION:-}" ]; then
  eval '_anyacl_root="${(%):-%x}"'
else
  _anyacl_root="./set_env.sh"
fi
_anyacl_root="$(dirname "$(readlink -f "$_anyacl_root")")"

if [ -f "$_anyacl_root/lib64/libanyacl.so" ]; then
  _anyacl_prepend PATH "$_anyacl_root/bin"
  _anyacl_prepend LD_LIBRARY_PATH "$_anyacl_root/lib64"
  _anyacl_prepend PYTHONPATH "$_anyacl_root/python/site-packages"
  _anyacl_prepend CMAKE_PREFIX_PATH "$_anyacl_root/lib64/cmake"
  _anyacl_prepend PKG_CONFIG_PATH "$_anyacl_root/lib64/pkgconfig"
  export ASCEND_HOME_PATH="$_anyacl_root"
  export ASCEND_TOOLKIT_HOME="$_anyacl_root"
  export ASCEND_OPP_PATH="$_anyacl_root/opp"
  export ASCEND_AICPU_PATH="$_anyacl_root"
  export TOOLCHAIN_HOME="$_anyacl_root/toolkit"
  unset -f _anyacl_prepend
  unset _anyacl_root _anyacl_rest
else
  echo "set_env.sh: no AnyACL in '$_anyacl_root'. In a plain sh, change into the prefix first: . ./set_env.sh" >&2
  unset -f _anyacl_prepend
  unset _anyacl_root
  return 1
fi
