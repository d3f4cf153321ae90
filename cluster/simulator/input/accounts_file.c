/* accounts_file.c — reads the tree of accounts: account,parent,shares and, optionally, gpus and gpu_minutes, the
 * quotas. An empty parent is the root. A parent precedes its children. */
#include "base/csv.h"
#include "simulator/input/input.h"

static mdot_status read_quota(const bs_csv *csv, int gpus, int gpu_minutes, sc_account *account, mdot_error *err)
{
    mdot_status status = MDOT_OK;
    double minutes;
    if (gpus != BS_CSV_ABSENT && csv->field[gpus][0] != '\0')
        status = bs_csv_integer(csv, gpus, 1, 1 << 24, &account->most_gpus, err);
    if (status == MDOT_OK && gpu_minutes != BS_CSV_ABSENT && csv->field[gpu_minutes][0] != '\0') {
        status = bs_csv_number(csv, gpu_minutes, 1, 1e12, &minutes, err);
        if (status == MDOT_OK) account->most_gpu_s = 60 * minutes;
    }
    return status;
}

mdot_status sc_read_accounts(const char *path, sc_accounts *out_accounts, mdot_error *err)
{
    bs_csv csv;
    sc_accounts accounts = {0};
    int name, parent, shares;
    mdot_status status = bs_csv_open(path, UINT64_MAX, NULL, &csv, err);
    if (status != MDOT_OK) return status;
    status = sc_accounts_create(&accounts, err);
    if (status == MDOT_OK) status = bs_csv_need(&csv, "account", &name, err);
    if (status == MDOT_OK) status = bs_csv_need(&csv, "parent", &parent, err);
    if (status == MDOT_OK) status = bs_csv_need(&csv, "shares", &shares, err);
    int gpus = bs_csv_find(&csv, "gpus"), gpu_minutes = bs_csv_find(&csv, "gpu_minutes");
    for (bool is_row = true; status == MDOT_OK;) {
        mdot_error reason = {0};
        sc_account account = {0};
        status = bs_csv_next(&csv, &is_row, err);
        if (status != MDOT_OK || !is_row) break;
        account.name = csv.field[name];
        if (account.name[0] == '\0') status = bs_csv_fail(&csv, err, MDOT_MALFORMED, "account is empty");
        if (status == MDOT_OK) status = bs_csv_number(&csv, shares, 1e-6, 1e9, &account.shares, err);
        if (status == MDOT_OK) status = read_quota(&csv, gpus, gpu_minutes, &account, err);
        const char *above = csv.field[parent][0] != '\0' ? csv.field[parent] : "root";
        if (status == MDOT_OK && sc_accounts_add(&accounts, above, account, &reason) != MDOT_OK)
            status = bs_csv_fail(&csv, err, MDOT_MALFORMED, "%s", reason.message);
    }
    bs_csv_close(&csv);
    if (status == MDOT_OK)
        *out_accounts = accounts;
    else
        sc_accounts_free(&accounts);
    return status;
}
