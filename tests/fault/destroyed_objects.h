/* destroyed_objects.h — for test programs that set MDOT_VALIDATE, in one source of each: what armor keeps of dead objects, so that no
 * other gets their addresses, is no leak. */
#ifndef TEST_DESTROYED_OBJECTS_H
#define TEST_DESTROYED_OBJECTS_H

const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
    return "detect_leaks=0";
}

#endif
