/* write_encoders.c — writes the encoders of encoder_patterns.h as ONNX files.
 *
 *     write_encoders FOLDER WIDTH HEADS INNER LAYERS f32|f16 [NAME]
 *
 * It writes all of them or, with NAME, one, and prints a line "FILE<tab>NAME" for each.
 */
#include "tests/support/encoder_model.h"
#include "tests/support/encoder_patterns.h"
#include "tests/support/graph_notation.h"
#include "tests/support/graph_onnx.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LENGTH = 4096 };

/* "selected, -1e9" → "selected-1e9-f32.onnx" */
static void file_of(const char *name, const char *dtype, char *file, size_t size)
{
    size_t at = 0;
    for (; *name && at + 16 < size; name++) {
        if (isalnum((unsigned char)*name)) {
            file[at++] = *name;
        } else if (at > 0 && file[at - 1] != '-') {
            file[at++] = '-';
        }
    }
    snprintf(file + at, size - at, "-%s.onnx", dtype);
}

static void write_one(const char *folder, const encoder_pattern *pattern, const encoder_form *form, const char *dtype)
{
    char file[256];
    ir_arena *arena = ir_arena_create(0);
    char *notation = encoder_notation(pattern, form);
    file_of(pattern->name, dtype, file, sizeof file);
    free(write_model(folder, file, graph_to_onnx(graph_from_notation(notation, MAX_LENGTH, arena))));
    printf("%s\t%s\n", file, pattern->name);
    free(notation);
    ir_arena_destroy(arena);
}

int main(int argc, char **argv)
{
    if (argc != 7 && argc != 8) {
        fprintf(stderr, "usage: write_encoders FOLDER WIDTH HEADS INNER LAYERS f32|f16 [NAME]\n");
        return 2;
    }
    const encoder_form form = {.width = atoi(argv[2]),
                               .heads = atoi(argv[3]),
                               .inner = atoi(argv[4]),
                               .layers = atoi(argv[5]),
                               .half = strcmp(argv[6], "f16") == 0};
    int written = 0;
    if (form.width < 1 || form.heads < 1 || form.inner < 1 || form.layers < 1 || form.width % form.heads != 0) {
        fprintf(stderr, "write_encoders: sizes are positive, and heads divide the width\n");
        return 2;
    }
    for (int i = 0; i < encoder_pattern_count; i++) {
        if (argc == 8 && strcmp(argv[7], encoder_patterns[i].name) != 0) continue;
        write_one(argv[1], &encoder_patterns[i], &form, argv[6]);
        written++;
    }
    if (written == 0) fprintf(stderr, "write_encoders: there is no encoder \"%s\"\n", argv[7]);
    return written > 0 ? 0 : 1;
}
