/* accounts_file.c — reads the tree of accounts: account,parent,shares and, optionally, gpus and gpu_minutes, the
 * quotas. An empty parent is the root. A parent precedes its children. */
#include "base/csv.h"
#include "simulator/input/input.h"

static mdot_status read_account(const bs_csv *csv, const int *at, void *accounts, mdot_error *err)
{
    enum { NAME, PARENT, SHARES, GPUS, GPU_MINUTES };
    mdot_error reason = {0};
    sc_account account = {.name = csv->field[at[NAME]]};
    double minutes = 0;
    if (account.name[0] == '\0') return bs_csv_fail(csv, err, MDOT_MALFORMED, "account is empty");
    BS_TRY(bs_csv_number(csv, at[SHARES], 1e-6, 1e9, &account.shares, err));
    if (sc_csv_has(csv, at[GPUS])) BS_TRY(bs_csv_integer(csv, at[GPUS], 1, 1 << 24, &account.most_gpus, err));
    BS_TRY(sc_csv_optional(csv, at[GPU_MINUTES], 1, 1e12, &minutes, err));
    account.most_gpu_s = 60 * minutes;
    const char *above = csv->field[at[PARENT]][0] != '\0' ? csv->field[at[PARENT]] : "root";
    if (sc_accounts_add(accounts, above, account, &reason) == MDOT_OK) return MDOT_OK;
    return bs_csv_fail(csv, err, MDOT_MALFORMED, "%s", reason.message);
}

mdot_status sc_read_accounts(const char *path, sc_accounts *out_accounts, mdot_error *err)
{
    sc_accounts accounts = {0};
    BS_TRY(sc_accounts_create(&accounts, err));
    mdot_status status = sc_read_rows(path, "account,parent,shares,gpus?,gpu_minutes?", read_account, &accounts, err);
    if (status == MDOT_OK)
        *out_accounts = accounts;
    else
        sc_accounts_free(&accounts);
    return status;
}
