/* version.c — the version of libmdot. */
#include "mdot/mdot.h"

const char *mdot_version(void) { return MDOT_VERSION_STRING; }

uint32_t mdot_version_number(void) { return MDOT_VERSION_NUMBER; }
