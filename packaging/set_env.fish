# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
#
# Prepares a fish shell:  source <prefix>/set_env.fish

set -l root (dirname (readlink -f (status filename)))
for row in PATH=bin LD_LIBRARY_PATH=lib64 PYTHONPATH=python/site-packages \
        CMAKE_PREFIX_PATH=lib64/cmake PKG_CONFIG_PATH=lib64/pkgconfig
    set -l part (string split = $row)
    set -l folder $root/$part[2]
    set -l name $part[1]
    set -l rest
    for entry in (string split : -- (string join : -- $$name))
        if test -n "$entry" -a "$entry" != "$folder"
            set -a rest $entry
        end
    end
    if test $name = PATH
        set -gx PATH $folder $rest
    else
        set -gx $name (string join : -- $folder $rest)
    end
end
set -gx ASCEND_HOME_PATH $root
set -gx ASCEND_TOOLKIT_HOME $root
set -gx ASCEND_OPP_PATH $root/opp
set -gx ASCEND_AICPU_PATH $root
set -gx TOOLCHAIN_HOME $root/toolkit
