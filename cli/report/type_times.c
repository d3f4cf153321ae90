/* type_times.c — operator times by type, for the charts of a report (report.h). */
#include "cli/report/report.h"

#include <stdlib.h>
#include <string.h>

static int compare_types(const void *a, const void *b)
{
    const char *x = ((const cli_type_time *)a)->type, *y = ((const cli_type_time *)b)->type;
    return x == y ? 0 : strcmp(x, y); /* a job stores a type once; reading it for each pair would take long */
}

static double all_ms(const cli_type_time *t)
{
    double sum = 0;
    for (int part = 0; part < CLI_TYPE_PARTS; part++) sum += t->ms[part];
    return sum;
}

static int compare_times(const void *a, const void *b)
{
    double x = all_ms(a), y = all_ms(b);
    return x > y ? -1 : x < y ? 1 : compare_types(a, b);
}

size_t cli_sum_by_type(cli_type_time *rows, size_t count)
{
    size_t kept = 0;
    if (count == 0) return 0;
    qsort(rows, count, sizeof *rows, compare_types);
    for (size_t i = 1; i < count; i++) {
        if (compare_types(&rows[kept], &rows[i]) != 0) {
            rows[++kept] = rows[i];
            continue;
        }
        for (int part = 0; part < CLI_TYPE_PARTS; part++) rows[kept].ms[part] += rows[i].ms[part];
    }
    qsort(rows, kept + 1, sizeof *rows, compare_times);
    return kept + 1;
}
