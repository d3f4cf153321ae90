/* inject.h — inject.c inside a test program: one call of the linked libraries fails. The kinds are "memory", "read",
 * "write" and "start", as described in inject.c. */
#pragma once

/* Starts counting calls of this kind. Call number `at` fails; 0 = all succeed. */
void inject_arm(const char *kind, long at);
/* Ends the injection and returns the number of calls. */
long inject_disarm(void);

/* Resources held by the process: memory blocks and the program's mappings. */
typedef struct inject_held {
    long memory, mappings;
} inject_held;
inject_held inject_get_held(void);
