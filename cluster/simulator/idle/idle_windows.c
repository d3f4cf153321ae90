/* idle_windows.c — reads idle windows from a file. */
#include "base/csv.h"
#include "simulator/idle/idle.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SECONDS 1e12

void sc_idle_windows_free(sc_idle_windows *windows)
{
    free(windows->items);
    *windows = (sc_idle_windows){0};
}

typedef struct named {
    char *gpu;
    sc_idle_window window;
    size_t line;
} named;

static int by_gpu(const void *a, const void *b)
{
    const named *x = a, *y = b;
    int order = strcmp(x->gpu, y->gpu);
    return order != 0 ? order : (x->window.from_s > y->window.from_s) - (x->window.from_s < y->window.from_s);
}

static int by_begin(const void *a, const void *b)
{
    const sc_idle_window *x = a, *y = b;
    if (x->from_s != y->from_s) return x->from_s < y->from_s ? -1 : 1;
    return (x->to_s > y->to_s) - (x->to_s < y->to_s);
}

static mdot_status read_rows(bs_csv *csv, named **rows, size_t *count, mdot_error *err)
{
    int gpu, start, end;
    mdot_status status = bs_csv_need(csv, "gpu", &gpu, err);
    if (status == MDOT_OK) status = bs_csv_need(csv, "from_s", &start, err);
    if (status == MDOT_OK) status = bs_csv_need(csv, "to_s", &end, err);
    for (bool is_row = true; status == MDOT_OK;) {
        sc_idle_window window;
        status = bs_csv_next(csv, &is_row, err);
        if (status != MDOT_OK || !is_row) break;
        status = bs_csv_number(csv, start, 0, MAX_SECONDS, &window.from_s, err);
        if (status == MDOT_OK) status = bs_csv_number(csv, end, window.from_s, MAX_SECONDS, &window.to_s, err);
        if (status != MDOT_OK) break;
        if ((*count & (*count - 1)) == 0) {
            named *grown = realloc(*rows, (*count > 0 ? 2 * *count : 1) * sizeof *grown);
            if (grown == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
            *rows = grown;
        }
        (*rows)[*count] = (named){.gpu = csv->field[gpu], .window = window, .line = csv->line};
        ++*count;
    }
    return status;
}

mdot_status sc_read_idle_windows(const char *path, sc_idle_windows *out_windows, mdot_error *err)
{
    bs_csv csv;
    named *rows = NULL;
    size_t count = 0;
    mdot_status status = bs_csv_open(path, UINT64_MAX, NULL, &csv, err);
    if (status != MDOT_OK) return status;
    status = read_rows(&csv, &rows, &count, err);
    if (status == MDOT_OK && count == 0) status = mdot_fail(err, MDOT_MALFORMED, "%s: holds no windows", path);
    if (status == MDOT_OK) qsort(rows, count, sizeof *rows, by_gpu);
    for (size_t i = 1; status == MDOT_OK && i < count; i++)
        if (strcmp(rows[i - 1].gpu, rows[i].gpu) == 0 && rows[i].window.from_s < rows[i - 1].window.to_s)
            status = mdot_fail(err, MDOT_MALFORMED, "%s:%zu: GPU %s is idle twice at a time, as line %zu has it", path,
                               rows[i].line, rows[i].gpu, rows[i - 1].line);
    sc_idle_windows windows = {.count = count};
    if (status == MDOT_OK) windows.items = calloc(count, sizeof *windows.items);
    if (status == MDOT_OK && windows.items == NULL) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    if (status == MDOT_OK) {
        for (size_t i = 0; i < count; i++) windows.items[i] = rows[i].window;
        qsort(windows.items, count, sizeof *windows.items, by_begin);
        *out_windows = windows;
    }
    free(rows);
    bs_csv_close(&csv);
    return status;
}
