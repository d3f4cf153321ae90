/* destroyed_objects.h — to be included in one source of each test program with MDOT_VALIDATE. Handle validation keeps
 * destroyed objects' memory, because no address may be used again. This file excludes it from leak detection. */
#pragma once

const char *__lsan_default_options(void);
const char *__lsan_default_options(void) { return "detect_leaks=0"; }
