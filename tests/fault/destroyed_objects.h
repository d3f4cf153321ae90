/* destroyed_objects.h — to be included in one source of each test program with MDOT_VALIDATE. Handle validation keeps
 * destroyed objects' memory, because no address may be used again. This file excludes it from leak detection. */
#ifndef TEST_DESTROYED_OBJECTS_H
#define TEST_DESTROYED_OBJECTS_H

const char *__lsan_default_options(void);
const char *__lsan_default_options(void) { return "detect_leaks=0"; }

#endif
