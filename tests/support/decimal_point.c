/* decimal_point.c — see decimal_point.h. */
#include "tests/support/decimal_point.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

void decimal_point_begin(const char *point)
{
    char folder[] = "/tmp/mdot_locale_XXXXXX", command[512];
    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof command,
             "cd %s && printf 'LC_NUMERIC\\ndecimal_point \"%s\"\\nthousands_sep \"\"\\ngrouping -1\\n"
             "END LC_NUMERIC\\n' > source && localedef -c -i source -f UTF-8 ./made > log 2>&1; test -d made",
             folder, point);
    int failed = system(command);
    setenv("LOCPATH", folder, 1);
    if (failed == 0) failed = setlocale(LC_NUMERIC, "made") == NULL;
    unsetenv("LOCPATH");
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
    if (failed != 0) {
        print_message("skipped: localedef makes no locale here\n");
        skip();
    }
    char half[16];
    snprintf(half, sizeof half, "%.1f", 0.5);
    assert_string_not_equal(half, "0.5");
}

void decimal_point_end(void) { setlocale(LC_NUMERIC, "C"); }
