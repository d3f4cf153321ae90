/* accounts.c — builds the tree of accounts. */
#include "simulator/core/cluster.h"

#include <stdlib.h>
#include <string.h>

sc_priority sc_priority_default(void)
{
    return (sc_priority){.age_weight = 1000,
                         .fairshare_weight = 10000,
                         .most_age_s = 7 * 86400.,
                         .half_life_s = 7 * 86400.,
                         .period_s = 300};
}

uint32_t sc_accounts_find(const sc_accounts *accounts, const char *name)
{
    for (size_t i = 0; i < accounts->count; i++)
        if (strcmp(accounts->items[i].name, name) == 0) return (uint32_t)i;
    return SC_NONE;
}

static mdot_status append(sc_accounts *accounts, uint32_t parent, const char *name, sc_account account, mdot_error *err)
{
    sc_account *items = realloc(accounts->items, (accounts->count + 1) * sizeof *items);
    if (items != NULL) accounts->items = items;
    account.name = items != NULL ? strdup(name) : NULL;
    account.parent = parent;
    if (account.name == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    items[accounts->count++] = account;
    return MDOT_OK;
}

mdot_status sc_accounts_create(sc_accounts *out_accounts, mdot_error *err)
{
    sc_accounts accounts = {.priority = sc_priority_default()};
    mdot_status status = append(&accounts, SC_NONE, "root", (sc_account){.shares = 1}, err);
    if (status == MDOT_OK) *out_accounts = accounts;
    return status;
}

mdot_status sc_accounts_add(sc_accounts *accounts, const char *parent, sc_account account, mdot_error *err)
{
    uint32_t entry = sc_accounts_find(accounts, parent);
    if (entry == SC_NONE)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "the parent \"%s\" is not above it; the first is below \"root\"",
                         parent);
    if (sc_accounts_find(accounts, account.name) != SC_NONE)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "there are two accounts \"%s\"", account.name);
    return append(accounts, entry, account.name, account, err);
}

typedef struct name {
    const char *text;
    uint32_t account;
} name;

static int by_text(const void *a, const void *b) { return strcmp(((const name *)a)->text, ((const name *)b)->text); }

static const char *group_of(const sc_job *job) { return job->group != NULL ? job->group : "nobody"; }

/* Adds the groups that the tree lacks. */
static mdot_status add_groups(sc_accounts *accounts, const sc_workload *workload, name *groups, mdot_error *err)
{
    for (size_t i = 0; i < workload->job_count; i++) groups[i].text = group_of(&workload->jobs[i]);
    qsort(groups, workload->job_count, sizeof *groups, by_text);
    for (size_t i = 0; i < workload->job_count; i++) {
        if (i > 0 && strcmp(groups[i].text, groups[i - 1].text) == 0) continue;
        if (sc_accounts_find(accounts, groups[i].text) != SC_NONE) continue;
        mdot_status status = append(accounts, 0, groups[i].text, (sc_account){.shares = 1}, err);
        if (status != MDOT_OK) return status;
    }
    return MDOT_OK;
}

/* A job must belong to a leaf, because shares and ranks are those of users. `scratch` has room for every account. */
static mdot_status check_leaves(const sc_accounts *accounts, const sc_workload *workload, const uint32_t *users,
                                name *scratch, mdot_error *err)
{
    for (size_t i = 0; i < accounts->count; i++) scratch[i].account = 0;
    for (size_t i = 1; i < accounts->count; i++) scratch[accounts->items[i].parent].account++;
    for (size_t i = 0; i < workload->job_count; i++)
        if (scratch[users[i]].account > 0 || users[i] == 0)
            return mdot_fail(err, MDOT_INVALID_ARGUMENT, "job %s is of the group %s, which is an account with members",
                             workload->jobs[i].id, accounts->items[users[i]].name);
    return MDOT_OK;
}

mdot_status sc_accounts_assign(sc_accounts *accounts, const sc_workload *workload, mdot_error *err)
{
    name *names = calloc(workload->job_count + 1, sizeof *names);
    uint32_t *users = calloc(workload->job_count + 1, sizeof *users);
    mdot_status status = MDOT_OK;
    if (names == NULL || users == NULL) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    if (status == MDOT_OK) status = add_groups(accounts, workload, names, err);
    free(names);
    names = status == MDOT_OK ? calloc(accounts->count, sizeof *names) : NULL;
    if (status == MDOT_OK && names == NULL) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; status == MDOT_OK && i < accounts->count; i++)
        names[i] = (name){accounts->items[i].name, (uint32_t)i};
    if (status == MDOT_OK) qsort(names, accounts->count, sizeof *names, by_text);
    for (size_t i = 0; status == MDOT_OK && i < workload->job_count; i++) {
        name wanted = {.text = group_of(&workload->jobs[i])};
        const name *found = bsearch(&wanted, names, accounts->count, sizeof *names, by_text);
        users[i] = found->account; /* every group is in the tree now */
    }
    if (status == MDOT_OK) status = check_leaves(accounts, workload, users, names, err);
    free(names);
    if (status == MDOT_OK)
        accounts->users = users;
    else
        free(users);
    return status;
}

void sc_accounts_free(sc_accounts *accounts)
{
    for (size_t i = 0; i < accounts->count; i++) free(accounts->items[i].name);
    free(accounts->items);
    free(accounts->users);
    *accounts = (sc_accounts){0};
}
