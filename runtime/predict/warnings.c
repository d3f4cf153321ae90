/* warnings.c — names and texts of warnings and implausible results, from the tables in mdot_predict.h. */
#include "mdot/mdot.h"

const char *mdot_warning_name(uint32_t warning)
{
    switch (warning) {
#define NAME(id, bit, name, text)                                                                                      \
    case MDOT_WARN_##id: return name;
        MDOT_WARNING_MAP(NAME)
#undef NAME
    default: return NULL;
    }
}

const char *mdot_warning_text(uint32_t warning)
{
    switch (warning) {
#define TEXT(id, bit, name, text)                                                                                      \
    case MDOT_WARN_##id: return text;
        MDOT_WARNING_MAP(TEXT)
#undef TEXT
    default: return NULL;
    }
}

const char *mdot_implausible_name(uint32_t implausible)
{
    switch (implausible) {
#define NAME(id, number, name, text)                                                                                   \
    case MDOT_IMPLAUSIBLE_##id: return name;
        MDOT_IMPLAUSIBLE_MAP(NAME)
#undef NAME
    default: return NULL;
    }
}

const char *mdot_implausible_text(uint32_t implausible)
{
    switch (implausible) {
#define TEXT(id, number, name, text)                                                                                   \
    case MDOT_IMPLAUSIBLE_##id: return text;
        MDOT_IMPLAUSIBLE_MAP(TEXT)
#undef TEXT
    default: return NULL;
    }
}
