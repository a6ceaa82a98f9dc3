# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
#
# The installed tree: the toolkit's layout, relocatable, self-contained. include/ and lib64/ are real folders, every
# other path that programs know is a relative link to them.

if(NOT TARGET anyacl)
  return()
endif()

set(packaging ${PROJECT_SOURCE_DIR}/packaging)
set(generated ${PROJECT_BINARY_DIR}/package)
set(arch_folder ${CMAKE_SYSTEM_PROCESSOR}-linux)

# What `cmake --install` needs, without the tests.
add_custom_target(anyacl_dist DEPENDS anyacl ${ANYACL_FILTERS})

# --- libraries and programs -----------------------------------------------------------------------------------------
install(TARGETS anyacl ${ANYACL_FILTERS} LIBRARY DESTINATION lib64)
if(TARGET anyacl_cuda)
  add_dependencies(anyacl_dist anyacl_cuda)
  install(TARGETS anyacl_cuda LIBRARY DESTINATION lib64)
endif()
if(TARGET anyacl_verify)
  add_dependencies(anyacl_dist anyacl_verify)
  install(TARGETS anyacl_verify LIBRARY DESTINATION lib64)
endif()
if(TARGET anyacl_tool)
  add_dependencies(anyacl_dist anyacl_tool)
  set_target_properties(anyacl_tool PROPERTIES OUTPUT_NAME anyacl INSTALL_RPATH "$ORIGIN/../lib64:$ORIGIN/../lib64/anyacl")
  install(TARGETS anyacl_tool RUNTIME DESTINATION bin)
endif()

# Bundled libraries are out of the way of LD_LIBRARY_PATH: other programs of the shell keep their own.
foreach(library IN ITEMS hwy::hwy)
  get_target_property(type ${library} TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    install(FILES $<TARGET_FILE:${library}> DESTINATION lib64/anyacl
            RENAME $<TARGET_SONAME_FILE_NAME:${library}>)
  endif()
endforeach()

# --- headers --------------------------------------------------------------------------------------------------------
install(DIRECTORY include/ DESTINATION include FILES_MATCHING PATTERN "*.h")
file(REMOVE_RECURSE ${generated}/level2)
foreach(header IN LISTS operators)
  get_filename_component(header ${header} NAME)
  file(CONFIGURE OUTPUT ${generated}/level2/${header} CONTENT "#include \"../${header}\"\n" @ONLY)
endforeach()
install(DIRECTORY ${generated}/level2 DESTINATION include/aclnnop OPTIONAL)

string(REGEX MATCH "([0-9]+)\\.([0-9]+)\\.([0-9]+)" ignored ${ANYACL_CANN_VERSION})
set(CANN_MAJOR ${CMAKE_MATCH_1})
set(CANN_MINOR ${CMAKE_MATCH_2})
set(CANN_PATCH ${CMAKE_MATCH_3})
math(EXPR CANN_NUMBER "${CANN_MAJOR} * 10000000 + ${CANN_MINOR} * 100000 + ${CANN_PATCH} * 1000")
foreach(package IN ITEMS cann runtime)
  string(TOUPPER ${package} PACKAGE_UPPER)
  configure_file(${packaging}/cann_version.h.in ${generated}/${package}_version.h @ONLY)
  install(FILES ${generated}/${package}_version.h DESTINATION include/version)
endforeach()
configure_file(${packaging}/version.info.in ${generated}/version.info @ONLY)
configure_file(${packaging}/ascend_toolkit_install.info.in ${generated}/ascend_toolkit_install.info @ONLY)
install(FILES ${generated}/ascend_toolkit_install.info DESTINATION ${arch_folder})
foreach(package IN ITEMS runtime opbase ops-nn ops-math ops-cv ops-transformer)
  install(FILES ${generated}/version.info DESTINATION share/info/${package})
endforeach()

# --- for the user's shell and build ---------------------------------------------------------------------------------
install(FILES ${packaging}/set_env.sh ${packaging}/set_env.csh ${packaging}/set_env.fish DESTINATION .)
configure_file(${packaging}/anyacl-config.in ${generated}/anyacl-config @ONLY)
install(PROGRAMS ${generated}/anyacl-config ${packaging}/anyacl-c++ DESTINATION bin)
configure_file(${packaging}/anyacl.pc.in ${generated}/anyacl.pc @ONLY)
install(FILES ${generated}/anyacl.pc DESTINATION lib64/pkgconfig)

include(CMakePackageConfigHelpers)
write_basic_package_version_file(${generated}/AnyACLConfigVersion.cmake COMPATIBILITY SameMinorVersion)
list(JOIN ANYACL_FILTERS " " ANYACL_FILTERS)
configure_file(${packaging}/AnyACLConfig.cmake.in ${generated}/AnyACLConfig.cmake @ONLY)
install(FILES ${generated}/AnyACLConfig.cmake ${generated}/AnyACLConfigVersion.cmake DESTINATION lib64/cmake/AnyACL)
separate_arguments(ANYACL_FILTERS)

# --- folders that programs look for ---------------------------------------------------------------------------------
install(FILES ${packaging}/opp-readme.txt DESTINATION opp RENAME README.txt)
install(DIRECTORY DESTINATION opp/vendors)
install(DIRECTORY DESTINATION python/site-packages)
install(DIRECTORY DESTINATION toolkit)

# --- licences -------------------------------------------------------------------------------------------------------
install(FILES LICENSE DESTINATION share/doc/anyacl)
foreach(row IN ITEMS "highway libhwy-dev" "fmt libfmt-dev" "nlohmann-json nlohmann-json3-dev" "CLI11 libcli11-dev"
                    "lapack liblapack-dev" "blas libblas-dev")
  separate_arguments(row)
  list(GET row 0 name)
  list(GET row 1 package)
  set(licence /usr/share/doc/${package}/copyright)
  if(EXISTS ${licence})
    install(FILES ${licence} DESTINATION share/doc/anyacl/licenses RENAME ${name}.txt)
  else()
    message(WARNING "No licence text of ${name} at ${licence}: the installed tree must not be passed on without it")
  endif()
endforeach()

# --- links ----------------------------------------------------------------------------------------------------------
set(links  # link=target, the target as seen from the link
  ${arch_folder}/include=../include
  ${arch_folder}/lib64=../lib64
  ${arch_folder}/devlib/linux/${CMAKE_SYSTEM_PROCESSOR}=../../../lib64
  devlib=lib64
  runtime/include=../include
  runtime/lib64=../lib64
  compiler/include=../include
  compiler/lib64=../lib64
  acllib/include=../include
  acllib/lib64=../lib64
  fwkacllib/include=../include
  fwkacllib/lib64=../lib64
  share/cmake=../lib64/cmake  # where CMake looks on Debian when CMAKE_PREFIX_PATH names our prefix
  bin/setenv.bash=../set_env.sh
  bin/setenv.csh=../set_env.csh
  bin/setenv.fish=../set_env.fish)
foreach(library IN LISTS ANYACL_FILTERS)  # the older folder of link stubs; links one by one, a loop would trap copies
  list(APPEND links lib64/stub/lib${library}.so=../lib${library}.so)
endforeach()
list(JOIN links " " links)
install(CODE "
  foreach(row IN ITEMS ${links})
    string(REPLACE \"=\" \";\" row \"\${row}\")
    list(GET row 0 link)
    list(GET row 1 target)
    set(path \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/\${link}\")
    get_filename_component(folder \"\${path}\" DIRECTORY)
    file(MAKE_DIRECTORY \"\${folder}\")
    file(CREATE_LINK \"\${target}\" \"\${path}\" SYMBOLIC)
  endforeach()")
