# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
#
# Prepares a csh or tcsh:  source <prefix>/set_env.csh

# The shell has no name for the file it is reading, but it keeps it open.
set _anyacl_root = "`ls -l /proc/$$/fd | sed -n 's|.* -> \(/.*\)/set_env\.csh"\$"|\1|p' | tail -n 1`"
if ("$_anyacl_root" == "") then
  echo "set_env.csh: cannot find out where it lies; set ASCEND_HOME_PATH, PATH and LD_LIBRARY_PATH by hand"
else
  foreach _anyacl_row (PATH=bin LD_LIBRARY_PATH=lib64 PYTHONPATH=python/site-packages CMAKE_PREFIX_PATH=lib64/cmake PKG_CONFIG_PATH=lib64/pkgconfig)
    set _anyacl_name = `echo $_anyacl_row | sed 's|=.*||'`
    set _anyacl_dir = "$_anyacl_root/`echo $_anyacl_row | sed 's|.*=||'`"
    set _anyacl_rest = "`printenv $_anyacl_name | tr ':' '\n' | grep -vxF -e "\""$_anyacl_dir"\"" | grep . | paste -sd: -`"
    if ("$_anyacl_rest" == "") then
      setenv $_anyacl_name "$_anyacl_dir"
    else
      setenv $_anyacl_name "${_anyacl_dir}:$_anyacl_rest"
    endif
  end
  setenv ASCEND_HOME_PATH "$_anyacl_root"
  setenv ASCEND_TOOLKIT_HOME "$_anyacl_root"
  setenv ASCEND_OPP_PATH "$_anyacl_root/opp"
  setenv ASCEND_AICPU_PATH "$_anyacl_root"
  setenv TOOLCHAIN_HOME "$_anyacl_root/toolkit"
  unset _anyacl_row _anyacl_name _anyacl_dir _anyacl_rest
endif
unset _anyacl_root
