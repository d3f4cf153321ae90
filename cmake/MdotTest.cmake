# mdot_test(NAME [LABELS LABEL…] [ENVIRONMENT VARIABLE=VALUE…] [TIMEOUT SECONDS] COMMAND PROGRAM [ARGUMENT…]): one ctest entry, or
# one for each shard (tests/support/shard.h). Exit status 77 means skipped; the program prints the reason.
#
# Labels (docs/contributing/testing.md): without LABELS a test is `fast` unless mdot_full_tests names it. A fast test
# is `full`, too, because `ctest -L full` runs both.

# Lists that the caller may set: mdot_full_tests, names; mdot_shards, rows "NAME SHARDS"; mdot_shared_by_two,
# mdot_shared_by_three, mdot_sanitizer_tests and mdot_release_tests, names of tests that builds with and without sanitizers
# share.

# Sets `out` to whether this build leaves the shard to the label `exhaustive`.
function(mdot_leaves_shard out name shard)
  set(turn 2)
  if(MDOT_ASAN OR MDOT_TSAN)
    set(turn 1)
  endif()
  set(leaves OFF)
  foreach(list "mdot_shared_by_two;2" "mdot_shared_by_three;3")
    list(GET list 0 names)
    list(GET list 1 builds)
    math(EXPR place "(${shard} - ${turn}) % ${builds}")
    if(name IN_LIST ${names} AND place)
      set(leaves ON)
    endif()
  endforeach()
  if((name IN_LIST mdot_sanitizer_tests AND turn EQUAL 2) OR (name IN_LIST mdot_release_tests AND turn EQUAL 1))
    set(leaves ON)
  endif()
  set(${out} ${leaves} PARENT_SCOPE)
endfunction()

function(mdot_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "LABELS;ENVIRONMENT;COMMAND")
  set(labels ${arg_LABELS})
  if(NOT labels)
    set(labels fast full)
    if(name IN_LIST mdot_full_tests)
      set(labels full)
    endif()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600) # for hangs: under the sanitizers on a busy machine, some take 300 s
  endif()
  set(cost 0)
  if(name IN_LIST mdot_full_tests)
    set(cost 1) # begins first, so that no long test is left to one core at the end
  endif()
  set(shards 1)
  foreach(row IN LISTS mdot_shards)
    if(row MATCHES "^${name} ([0-9]+)$")
      set(shards ${CMAKE_MATCH_1})
    endif()
  endforeach()
  foreach(shard RANGE 1 ${shards})
    set(entry ${name})
    set(environment ${arg_ENVIRONMENT})
    set(shard_labels ${labels})
    mdot_leaves_shard(leaves ${name} ${shard})
    if(leaves)
      set(shard_labels exhaustive)
    endif()
    if(shards GREATER 1)
      set(entry ${name}_${shard})
      list(APPEND environment MDOT_TEST_SHARD=${shard}/${shards})
    endif()
    add_test(NAME ${entry} COMMAND ${arg_COMMAND})
    set_tests_properties(${entry} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${arg_TIMEOUT} LABELS "${shard_labels}"
                                             ENVIRONMENT "${environment}" COST ${cost})
  endforeach()
endfunction()
