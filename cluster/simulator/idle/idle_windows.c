/* idle_windows.c — reads idle windows from a file. */
#include "simulator/idle/idle.h"
#include "simulator/input/input.h"

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

typedef struct rows {
    named *items;
    size_t count;
} rows;

static mdot_status read_window(const bs_csv *csv, const int *at, void *context, mdot_error *err)
{
    rows *r = context;
    named window = {.gpu = csv->field[at[0]], .line = csv->line};
    BS_TRY(bs_csv_number(csv, at[1], 0, MAX_SECONDS, &window.window.from_s, err));
    BS_TRY(bs_csv_number(csv, at[2], window.window.from_s, MAX_SECONDS, &window.window.to_s, err));
    if (!sc_grow(&r->items, r->count, sizeof window)) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    r->items[r->count++] = window;
    return MDOT_OK;
}

mdot_status sc_read_idle_windows(const char *path, sc_idle_windows *out_windows, mdot_error *err)
{
    bs_csv csv;
    rows r = {0};
    BS_TRY(bs_csv_open(path, UINT64_MAX, NULL, &csv, err));
    mdot_status status = sc_read_open_rows(&csv, "gpu,from_s,to_s", read_window, &r, err);
    if (status == MDOT_OK && r.count == 0) status = mdot_fail(err, MDOT_MALFORMED, "%s: holds no windows", path);
    if (status == MDOT_OK) qsort(r.items, r.count, sizeof *r.items, by_gpu);
    for (size_t i = 1; status == MDOT_OK && i < r.count; i++)
        if (strcmp(r.items[i - 1].gpu, r.items[i].gpu) == 0 && r.items[i].window.from_s < r.items[i - 1].window.to_s)
            status = mdot_fail(err, MDOT_MALFORMED, "%s:%zu: GPU %s is idle twice at a time, as line %zu has it", path,
                               r.items[i].line, r.items[i].gpu, r.items[i - 1].line);
    sc_idle_windows windows = {.items = calloc(r.count + 1, sizeof *windows.items), .count = r.count};
    if (status == MDOT_OK && windows.items == NULL) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    if (status == MDOT_OK) {
        for (size_t i = 0; i < r.count; i++) windows.items[i] = r.items[i].window;
        qsort(windows.items, r.count, sizeof *windows.items, by_begin);
        *out_windows = windows;
    } else {
        free(windows.items);
    }
    free(r.items);
    bs_csv_close(&csv);
    return status;
}
