/* read_rows.c — reads a table by the names of its columns. */
#include "simulator/input/input.h"

#include <string.h>

/* Finds the columns of `names`, which are separated by commas. */
static mdot_status find_columns(const bs_csv *csv, const char *names, int *at, mdot_error *err)
{
    char name[128];
    for (size_t i = 0; *names != '\0'; i++) {
        size_t length = strcspn(names, ","), used = length < sizeof name ? length : sizeof name - 1;
        memcpy(name, names, used);
        name[used] = '\0';
        names += length + (names[length] == ',');
        bool may_be_absent = used > 0 && name[used - 1] == '?';
        if (may_be_absent) name[used - 1] = '\0';
        at[i] = bs_csv_find(csv, name);
        if (!may_be_absent) BS_TRY(bs_csv_need(csv, name, &at[i], err));
    }
    return MDOT_OK;
}

mdot_status sc_read_open_rows(bs_csv *csv, const char *names, sc_row_fn *row, void *context, mdot_error *err)
{
    int at[BS_CSV_MAX_FIELDS];
    BS_TRY(find_columns(csv, names, at, err));
    for (bool is_row;;) {
        BS_TRY(bs_csv_next(csv, &is_row, err));
        if (!is_row) return MDOT_OK;
        BS_TRY(row(csv, at, context, err));
    }
}

mdot_status sc_read_rows(const char *path, const char *names, sc_row_fn *row, void *context, mdot_error *err)
{
    bs_csv csv;
    BS_TRY(bs_csv_open(path, UINT64_MAX, NULL, &csv, err));
    mdot_status status = sc_read_open_rows(&csv, names, row, context, err);
    bs_csv_close(&csv);
    return status;
}

bool sc_csv_has(const bs_csv *csv, int column) { return column != BS_CSV_ABSENT && csv->field[column][0] != '\0'; }

mdot_status sc_csv_optional(const bs_csv *csv, int column, double minimum, double maximum, double *out_value,
                            mdot_error *err)
{
    return sc_csv_has(csv, column) ? bs_csv_number(csv, column, minimum, maximum, out_value, err) : MDOT_OK;
}
