/* store.c — a program as a user of the installed libmdotstore writes it. ../abi/install.sh builds and runs it. */
#include <mdot/mdot_store.h>

#include <stdio.h>

int main(int argc, char **argv)
{
    mdot_store *store = NULL;
    mdot_store_info info = MDOT_INIT(mdot_store_info);
    mdot_error err = {0};
    if (argc != 2) return 2;
    mdot_status status = mdot_store_open(argv[1], NULL, &store, &err);
    if (status == MDOT_OK) status = mdot_store_get_info(store, &info, &err);
    mdot_store_close(store);
    if (status != MDOT_OK) return fprintf(stderr, "%s\n", err.message), 1;
    return printf("%u %s\n", info.schema_version, mdotstore_version()) < 0;
}
