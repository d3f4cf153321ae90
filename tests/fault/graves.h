/* graves.h — for test programs that set MDOT_ARMOR, in one source of each: what armor keeps of dead objects, so that no
 * other gets their addresses, is no leak. */
#ifndef TEST_GRAVES_H
#define TEST_GRAVES_H

const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
    return "detect_leaks=0";
}

#endif
