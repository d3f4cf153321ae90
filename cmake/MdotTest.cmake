# mdot_test(NAME [LABELS LABEL…] [ENVIRONMENT VARIABLE=VALUE…] [TIMEOUT SECONDS] COMMAND PROGRAM [ARGUMENT…]): one ctest entry, or
# one for each shard (tests/support/shard.h). Exit status 77 means skipped; the program prints the reason.
#
# Labels (docs/contributing/testing.md): without LABELS a test is `fast` unless mdot_full_tests names it. A fast test
# is `full`, too, because `ctest -L full` runs both.

# Lists that the caller may set: mdot_full_tests, names; mdot_shards, rows "NAME SHARDS"; mdot_halved_tests, names whose second
# half of shards is exhaustive under sanitizers.
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
    set(arg_TIMEOUT 300)
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
    math(EXPR twice "2 * ${shard}")
    if((MDOT_ASAN OR MDOT_TSAN) AND name IN_LIST mdot_halved_tests AND twice GREATER shards)
      set(shard_labels exhaustive)
    endif()
    if(shards GREATER 1)
      set(entry ${name}_${shard})
      list(APPEND environment MDOT_TEST_SHARD=${shard}/${shards})
    endif()
    add_test(NAME ${entry} COMMAND ${arg_COMMAND})
    set_tests_properties(${entry} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${arg_TIMEOUT} LABELS "${shard_labels}"
                                             ENVIRONMENT "${environment}")
  endforeach()
endfunction()
