/* type_times.h — the times of a job's operators, summed by type. */
#ifndef CLI_TYPE_TIMES_H
#define CLI_TYPE_TIMES_H

#include <stddef.h>

/* Parts use the colours of the report's charts: the optimizer is the fourth, waiting the fifth. */
enum { CLI_FORWARD_PART, CLI_BACKWARD_PART, CLI_OPTIMIZER_PART = 3, CLI_WAITING_PART, CLI_TYPE_PARTS };

typedef struct cli_type_time {
    const char *type; /* borrowed from the job */
    double ms[CLI_TYPE_PARTS];
} cli_type_time;

/* Replaces rows with equal type by one sum and sorts the sums, longest first. Returns the number of sums. Takes n log n
 * time, because a job may have as many types as operators. */
size_t cli_sum_by_type(cli_type_time *rows, size_t count);

#endif
