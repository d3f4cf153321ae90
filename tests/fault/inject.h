/* inject.h — inject.c within a test's own program: one call of the libraries that are linked into it fails.
 *
 * Kinds are "memory", "read", "write" and "start", as inject.c describes them.
 */
#ifndef TEST_INJECT_H
#define TEST_INJECT_H

/* From here on calls of that kind are counted, and the `at`th fails; at 0 none does. */
void inject_arm(const char *kind, long at);
/* No call fails any more; how many there were. */
long inject_disarm(void);

/* What the process holds: blocks of memory, and mappings that the program itself made. */
typedef struct inject_held {
    long memory, mappings;
} inject_held;
inject_held inject_what_is_held(void);

#endif
