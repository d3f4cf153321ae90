/* gpu_price.c — prices on the command line (gpu_argument.h). */
#include "base/command/quantity.h"
#include "base/csv.h"
#include "base/text.h"
#include "base/training/training_options.h"
#include "cli/gpu/gpu_argument.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_TABLE_BYTES = 1 << 20 };

/* A table of prices while it is read. */
typedef struct price_table {
    bs_csv csv;
    int gpu, price, currency, provider, region, date; /* columns; BS_CSV_ABSENT: the table lacks it */
    struct {
        int column;
        const char *value;
    } filter[4]; /* rows with other values are ignored */
    int filter_count;
} price_table;

static const char *field(const price_table *t, int column) { return column >= 0 ? t->csv.field[column] : ""; }

/* Reads "provider=X,region=Y"; `filters` may be NULL. */
static mdot_status read_filters(char *filters, price_table *t, mdot_error *err)
{
    for (char *key = filters != NULL ? strtok(filters, ",") : NULL; key != NULL; key = strtok(NULL, ",")) {
        char *value = strchr(key, '=');
        if (value == NULL || t->filter_count == (int)(sizeof t->filter / sizeof *t->filter))
            return BS_INVALID(err, "\"%s\" must have the form COLUMN=VALUE, at most four of them", key);
        *value = '\0';
        t->filter[t->filter_count].value = value + 1;
        BS_TRY(bs_csv_need(&t->csv, key, &t->filter[t->filter_count++].column, err));
    }
    return MDOT_OK;
}

/* Adds a row. A later date replaces an earlier one of the same GPU model and place. */
static mdot_status add_row(const price_table *t, cli_gpu_prices *prices, mdot_error *err)
{
    for (int i = 0; i < t->filter_count; i++)
        if (strcmp(t->csv.field[t->filter[i].column], t->filter[i].value) != 0) return MDOT_OK;
    cli_gpu_price row = {.an_hour = 0};
    const char *currency = "", *date = field(t, t->date);
    const char *reason = cli_read_price(field(t, t->price), &row.an_hour, &currency);
    if (*field(t, t->currency) != '\0') currency = field(t, t->currency);
    if (reason != NULL)
        return bs_csv_fail(&t->csv, err, MDOT_MALFORMED, "the price \"%s\": %s", field(t, t->price), reason);
    int year, month, day, length = 0;
    bool dated = sscanf(date, "%4d-%2d-%2d%n", &year, &month, &day, &length) == 3 && length == 10 && date[10] == '\0';
    if (*date != '\0' && !dated)
        return bs_csv_fail(&t->csv, err, MDOT_MALFORMED, "the date \"%s\" must have the form 2026-11-29", date);
    if (prices->count > 0 && strcmp(currency, prices->currency) != 0)
        return bs_csv_fail(&t->csv, err, MDOT_MALFORMED,
                           "the currency is \"%s\", but \"%s\" in a row before; choose one, for example %s,currency=%s",
                           currency, prices->currency, t->csv.path, currency);
    snprintf(prices->currency, sizeof prices->currency, "%s", currency);
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    const char *name = field(t, t->gpu); /* or the name of a --gpu-spec */
    cli_copy_gpu_name(mdot_gpu_find(name, &gpu, NULL) == MDOT_OK ? gpu.name : name, row.name);
    const char *region = field(t, t->region);
    snprintf(row.place, sizeof row.place, "%s%s%s", field(t, t->provider), *region != '\0' ? " " : "", region);
    bs_make_printable(row.place);
    snprintf(row.date, sizeof row.date, "%s", date);
    prices->has_origins |= *currency != '\0' || *row.place != '\0' || *row.date != '\0';
    size_t at = 0;
    while (at < prices->count &&
           (strcmp(prices->item[at].name, row.name) != 0 || strcmp(prices->item[at].place, row.place) != 0))
        at++;
    if (at == CLI_MAX_PRICES)
        return bs_csv_fail(&t->csv, err, MDOT_UNSUPPORTED, "there are more than %d prices", CLI_MAX_PRICES);
    if (at == prices->count || strcmp(row.date, prices->item[at].date) >= 0) prices->item[at] = row;
    if (at == prices->count) prices->count++;
    return MDOT_OK;
}

static mdot_status read_table(const char *path, char *filters, cli_gpu_prices *prices, mdot_error *err)
{
    price_table t = {.filter_count = 0};
    BS_TRY(bs_csv_open(path, MAX_TABLE_BYTES, NULL, &t.csv, err));
    mdot_status status = bs_csv_need(&t.csv, "gpu", &t.gpu, err);
    if (status == MDOT_OK) status = bs_csv_need(&t.csv, "price", &t.price, err);
    t.currency = bs_csv_find(&t.csv, "currency");
    t.provider = bs_csv_find(&t.csv, "provider");
    t.region = bs_csv_find(&t.csv, "region");
    t.date = bs_csv_find(&t.csv, "date");
    if (status == MDOT_OK) status = read_filters(filters, &t, err);
    bool is_row = true;
    while (status == MDOT_OK && (status = bs_csv_next(&t.csv, &is_row, err)) == MDOT_OK && is_row)
        status = add_row(&t, prices, err);
    bs_csv_close(&t.csv);
    return status;
}

bool cli_read_gpu_prices(const char *command, char *text, void *out_prices)
{
    enum { MAX_TEXT_BYTES = 8192 };
    char copy[MAX_TEXT_BYTES];
    cli_gpu_prices *prices = out_prices;
    prices->is_set = true;
    prices->text = text;
    const char *currency = "", *reason = cli_read_price(text, &prices->of_all, &currency);
    snprintf(prices->currency, sizeof prices->currency, "%s", currency);
    prices->has_origins = *currency != '\0';
    if (reason == NULL) return true;
    prices->of_all = 0;
    if (strlen(text) >= sizeof copy) return cli_refuse(command, "--price takes at most %zu bytes", sizeof copy - 1);
    text = strcpy(copy, text);
    char *filters = access(text, F_OK) == 0 ? NULL : strchr(text, ',');
    if (filters != NULL) *filters++ = '\0';
    if (strchr("$+-.0123456789", *text) != NULL && access(text, F_OK) != 0)
        return cli_refuse(command, "--price \"%s\": %s", text, reason);
    mdot_error err;
    if (read_table(text, filters, prices, &err) == MDOT_OK) return true;
    cli_usage_error(command, "--price takes a price per hour, for example 2.5/h, or a table of prices: %s",
                    err.message);
    return false;
}

/* Returns the cheapest row of a GPU model; NULL if there is none. */
static const cli_gpu_price *find_row(const cli_gpu_prices *prices, const char *gpu)
{
    const cli_gpu_price *found = NULL;
    for (size_t i = 0; i < prices->count; i++)
        if (strcmp(prices->item[i].name, gpu) == 0 && (found == NULL || prices->item[i].an_hour < found->an_hour))
            found = &prices->item[i];
    return found;
}

double cli_gpu_hour_price(const cli_gpu_prices *prices, const char *gpu)
{
    const cli_gpu_price *row = find_row(prices, gpu);
    return prices->of_all > 0 ? prices->of_all : row != NULL ? row->an_hour : NAN;
}

void cli_print_price(const cli_gpu_prices *prices, const char *gpu)
{
    const cli_gpu_price *row = find_row(prices, gpu);
    printf("%.6g%s%s/h", cli_gpu_hour_price(prices, gpu), *prices->currency != '\0' ? " " : "", prices->currency);
    if (row == NULL || (*row->place == '\0' && *row->date == '\0')) return;
    printf(" (%s%s%s)", row->place, *row->place != '\0' && *row->date != '\0' ? ", " : "", row->date);
}

void cli_json_price(FILE *out, const cli_gpu_prices *prices, const char *gpu)
{
    const cli_gpu_price *row = find_row(prices, gpu);
    double an_hour = prices->is_set ? cli_gpu_hour_price(prices, gpu) : NAN;
    if (isnan(an_hour)) return;
    const char *const names[] = {"currency", "place", "date"};
    const char *const values[] = {prices->currency, row != NULL ? row->place : "", row != NULL ? row->date : ""};
    fprintf(out, "\"price\": {\"gpu_hour\": %.9g", an_hour);
    for (int i = 0; i < 3; i++) {
        if (*values[i] == '\0') continue;
        fprintf(out, ", \"%s\": ", names[i]);
        cli_json_string(out, values[i]);
    }
    fputs("}, ", out);
}

double cli_total_steps(const cli_total *total, const mdot_configuration *c)
{
    if (total->steps > 0) return (double)total->steps;
    return (double)total->epochs * ceil((double)total->dataset / cli_samples_of_step(c));
}

double cli_total_cost(const cli_total *total, const mdot_configuration *c, const mdot_prediction *p)
{
    if (!total->prices.is_set) return NAN;
    double steps = cli_total_steps(total, c);
    double ms = steps > 0 ? steps * p->step_ms : 1e6 / cli_samples_of_step(c) * p->step_ms;
    return ms / 3.6e6 * cli_gpu_count(c) * cli_gpu_hour_price(&total->prices, c->gpu_spec->name);
}
