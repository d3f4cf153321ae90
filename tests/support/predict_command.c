/* predict_command.c — see predict_command.h. */
#include "tests/support/predict_command.h"

#include <stdlib.h>

const char resnet[] = MDOT_SOURCE_DIR "/examples/jobs/resnet50.onnx";
const char bert[] = MDOT_SOURCE_DIR "/examples/jobs/bert_base.onnx";

int predict_command_set_up(void **state)
{
    predict_command *f = calloc(1, sizeof *f);
    if (f == NULL) return -1;
    unsetenv("MDOT_PREDICTOR");
    f->folder = process_make_folder();
    *state = f;
    return 0;
}

int predict_command_tear_down(void **state)
{
    predict_command *f = *state;
    process_remove_folder(f->folder);
    free(f);
    return 0;
}

size_t count_lines(const char *text)
{
    size_t count = 0;
    for (; *text != '\0'; text++) count += *text == '\n';
    return count;
}
