/* main.c — the `mdot` command: finds the subcommand and runs it.
 *
 * LLVM takes 45 MB and 20 ms in every process that is linked with it. Therefore `mdot` is linked without, and a second
 * program with all subcommands, mdot-compiler, takes its place for those that compile, and for the help about them. */
#include "cli/cli.h"
#include "mdot/mdot.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#ifndef MDOT_HAVE_COMPILER
static bool is_own(const char *name)
{
    if (strcmp(name, cli_help.name) == 0) return false;
    for (const cli_command *const *command = cli_commands; *command != NULL; command++)
        if (strcmp(name, (*command)->name) == 0) return true;
    return strcmp(name, "--version") == 0;
}

/* Returns if there is no such program, for example in a wheel. */
static void run_compiler(char **argv)
{
    static const char *const places[] = {"mdot-compiler", "../libexec/mdot/mdot-compiler"}; /* built, and installed */
    char folder[PATH_MAX], path[PATH_MAX + 64];
    ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (length <= 0) return;
    folder[length] = '\0';
    *strrchr(folder, '/') = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, places[i]);
        execv(path, argv);
    }
}
#endif

int main(int argc, char **argv)
{
#ifndef MDOT_HAVE_COMPILER
    if (argc < 2 || !is_own(argv[1])) run_compiler(argv);
#endif
    if (argc < 2) {
        cli_print_help(stderr, &cli_program);
        return CLI_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        cli_print_help(stdout, &cli_program);
        return cli_finish("mdot", CLI_OK);
    }
    if (strcmp(name, "--version") == 0) {
        printf("mdot %s\n", mdot_version());
        return cli_finish("mdot", CLI_OK);
    }
    const cli_command *command = cli_find_command(name);
    return command == NULL ? CLI_USAGE : cli_finish(name, command->run(argc - 1, argv + 1));
}
