/* policies.c — the table of policies for --policy. */
#include "simulator/policy/policies.h"

#include <stdio.h>
#include <string.h>

const sc_policy *const sc_policies[] = {
#define SC_POLICY_ENTRY(name) &sc_policy_##name,
    SC_POLICY_MAP(SC_POLICY_ENTRY) NULL
#undef SC_POLICY_ENTRY
};

mdot_status sc_policy_find(const char *name, const sc_policy **out_policy, mdot_error *err)
{
    char names[512] = "";
    size_t used = 0;
    for (size_t i = 0; sc_policies[i] != NULL; i++) {
        if (strcmp(sc_policies[i]->name, name) == 0) {
            *out_policy = sc_policies[i];
            return MDOT_OK;
        }
        if (used < sizeof names)
            used +=
                (size_t)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "", sc_policies[i]->name);
    }
    return mdot_fail(err, MDOT_INVALID_ARGUMENT, "unknown policy \"%s\"; known are %s", name, names);
}
