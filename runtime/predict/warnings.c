/* warnings.c — names and texts of warnings and implausible results, from the tables in mdot_predict.h. */
#include "mdot/mdot.h"

typedef struct row {
    uint32_t number;
    const char *name, *text;
} row;

static const row warnings[] = {
#define ROW(id, bit, name, text) {MDOT_WARN_##id, name, text},
    MDOT_WARNING_MAP(ROW)
#undef ROW
        {0}};

static const row implausible_results[] = {
#define ROW(id, number, name, text) {MDOT_IMPLAUSIBLE_##id, name, text},
    MDOT_IMPLAUSIBLE_MAP(ROW)
#undef ROW
        {0}};

/* Returns the last row, without texts, for an unknown number. */
static const row *find(const row *rows, uint32_t number)
{
    while (rows->name != NULL && rows->number != number) rows++;
    return rows;
}

const char *mdot_warning_name(uint32_t warning) { return find(warnings, warning)->name; }

const char *mdot_warning_text(uint32_t warning) { return find(warnings, warning)->text; }

const char *mdot_implausible_name(uint32_t implausible) { return find(implausible_results, implausible)->name; }

const char *mdot_implausible_text(uint32_t implausible) { return find(implausible_results, implausible)->text; }
