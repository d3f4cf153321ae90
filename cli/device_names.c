/* device_names.c — the values of options that select code and devices. */
#include "cli/cli.h"

const char *const *cli_isa_names(void)
{
    static const char *const names[] = {"x86-64-v3",    "x86-64-v4",    "x86-64-bf16", "x86-64-amx",
                                        "aarch64-neon", "aarch64-bf16", NULL};
    return names;
}

const char *const *cli_device_names(void)
{
    static const char *const names[] = {"auto", "cpu", "cuda", NULL};
    return names;
}
