# Language, warnings, sanitizers and hardening for mdot and the companions.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

option(MDOT_VERIFY "check the graph after every pass and every plan" OFF)
option(MDOT_ASAN "build with AddressSanitizer and UndefinedBehaviorSanitizer" OFF)
option(MDOT_TSAN "build with ThreadSanitizer" OFF)
option(MDOT_TESTS "build the tests" ON)
option(MDOT_FUZZ "build the libFuzzer targets (needs clang)" OFF)

# Functions in tables share a signature, so a parameter that one of them leaves unread is no fault.
add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
                    -Wvla)
# Errors that C has forbidden since 1999, but that GCC 12 accepts by default.
add_compile_options(-Werror=implicit-function-declaration -Werror=implicit-int -Werror=int-conversion
                    -Werror=incompatible-pointer-types)
add_compile_definitions(_GNU_SOURCE)
if(MDOT_VERIFY)
  add_compile_definitions(MDOT_VERIFY)
endif()
if(MDOT_VERIFY OR MDOT_ASAN OR MDOT_TSAN)
  add_compile_options(-UNDEBUG) # builds that look for faults keep their assertions
endif()
if(MDOT_ASAN OR MDOT_TSAN)
  add_compile_definitions(MDOT_SANITIZED) # disables tests that count allocations and calls, for every compiler
  add_compile_options(-g1) # reports need functions and lines alone; objects become 40 % smaller
  include(CheckLinkerFlag)
  check_linker_flag(C -fuse-ld=gold MDOT_HAS_GOLD)
  if(MDOT_HAS_GOLD)
    add_link_options(-fuse-ld=gold) # links the test programs in a quarter of the time
  endif()
endif()
if(MDOT_ASAN)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
if(MDOT_TSAN)
  add_compile_options(-fsanitize=thread)
  add_link_options(-fsanitize=thread)
endif()
# Hardening of optimised builds: checked calls of libc, a guard on each stack frame with an array, and address tables
# read-only after start. Sanitizers replace the first two. scripts/check-elf.sh --hardened tests the result.
if(NOT MDOT_ASAN AND NOT MDOT_TSAN)
  add_compile_options($<$<CONFIG:Release,RelWithDebInfo>:-U_FORTIFY_SOURCE>
                      $<$<CONFIG:Release,RelWithDebInfo>:-D_FORTIFY_SOURCE=2> -fstack-protector-strong)
  add_link_options(LINKER:-z,relro,-z,now,-z,noexecstack)
endif()
# Files contain no path of the machine that built them.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=. -ffile-prefix-map=${PROJECT_BINARY_DIR}=build)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)
if(MDOT_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
