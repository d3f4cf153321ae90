/* predict_command.h — runs `mdot predict` on the example jobs, for tests of the command. */
#pragma once

#include "tests/support/process.h"

#include <stddef.h>

enum { OK = 0, FAILED = 1, USAGE = 2 };

/* Paths of the jobs. */
extern const char resnet[], bert[];

typedef struct predict_command {
    char *folder; /* temporary folder of the test */
    process_result result;
} predict_command;

#define RUN(f, ...) process_run((const char *const[]){MDOT_CLI, "predict", __VA_ARGS__, NULL}, &(f)->result)

int predict_command_set_up(void **state);
int predict_command_tear_down(void **state);

size_t count_lines(const char *text);
